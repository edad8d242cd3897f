// GPUs of made-up machines become devices, links and buses.
#include <gtest/gtest.h>

#include "heddle/cluster/cluster.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/cluster/discover.h"
#include "heddle/cluster/gpu_topology.h"

namespace heddle {
namespace {

constexpr double kUnknownRate = 5e9;

std::shared_ptr<const Cluster> machine(const GpuTopology& topology) {
  ClusterBuilder builder("machine");
  const HostId host = builder.add_host({.name = "host", .memory_bytes = 0});
  add_gpus(builder, host, topology, kUnknownRate);
  const auto cluster = builder.build();
  EXPECT_TRUE(cluster.ok()) << cluster.error().to_string();
  return cluster.ok() ? *cluster : nullptr;
}

GpuInfo gpu(int index, const std::string& port, double pcie = 32e9) {
  return {.index = index,
          .name = "NVIDIA X" + std::to_string(index % 2),
          .memory_bytes = int64_t{80} << 30,
          .flops = 60e12,
          .memory_bytes_per_s = 4e12,
          .pcie_bytes_per_s = pcie,
          .port = port};
}

TEST(Gpus, EachIsADeviceOfTheBackendTorchWithALinkToTheHost) {
  const auto cluster = machine({.gpus = {gpu(0, "a"), gpu(1, "b")}, .peers = {}});
  ASSERT_NE(cluster, nullptr);
  ASSERT_EQ(cluster->num_devices(), 2u);
  const Device& device = cluster->device(DeviceId(1));
  EXPECT_EQ(device.name, "gpu1");
  EXPECT_EQ(device.kind, DeviceKind::kGpu);
  EXPECT_EQ(device.backend, "torch");
  EXPECT_EQ(device.backend_device, "cuda:1");
  EXPECT_EQ(device.target, "torch:cuda:NVIDIA X1");
  EXPECT_EQ(device.memory_bytes, int64_t{80} << 30);
  EXPECT_TRUE(cluster->buses().empty()) << "a port of one GPU is no bus";
  EXPECT_EQ(cluster->load_route(DeviceId(1))->bytes_per_s, 32e9);
  EXPECT_EQ(cluster->route(DeviceId(0), DeviceId(1))->hops.size(), 2u) << "through the host";
}

TEST(Gpus, ThoseBehindOnePortShareABus) {
  const auto cluster =
      machine({.gpus = {gpu(0, "a"), gpu(1, "a", 16e9), gpu(2, "b"), gpu(3, "")}, .peers = {}});
  ASSERT_NE(cluster, nullptr);
  ASSERT_EQ(cluster->buses().size(), 1u);
  EXPECT_EQ(cluster->buses()[0].bytes_per_s, 32e9);
  EXPECT_EQ(cluster->buses()[0].duplex, Duplex::kFull);
  EXPECT_TRUE(cluster->links()[0].bus.valid());
  EXPECT_TRUE(cluster->links()[1].bus.valid());
  EXPECT_FALSE(cluster->links()[2].bus.valid());
  EXPECT_FALSE(cluster->links()[3].bus.valid());
}

TEST(Gpus, PeersHaveADirectWayAndThoseOverThePortUseItsBus) {
  const auto cluster = machine({.gpus = {gpu(0, "a"), gpu(1, "a"), gpu(2, "b")},
                                .peers = {{.a = 0, .b = 1, .bytes_per_s = 30e9, .by_port = true},
                                          {.a = 1, .b = 2, .bytes_per_s = 450e9}}});
  ASSERT_NE(cluster, nullptr);
  const Route* by_port = cluster->route(DeviceId(0), DeviceId(1));
  ASSERT_EQ(by_port->hops.size(), 1u);
  EXPECT_EQ(by_port->bytes_per_s, 30e9);
  EXPECT_TRUE(cluster->link(by_port->hops[0].link).bus.valid());
  const Route* own = cluster->route(DeviceId(2), DeviceId(1));
  ASSERT_EQ(own->hops.size(), 1u);
  EXPECT_EQ(own->bytes_per_s, 450e9);
  EXPECT_FALSE(cluster->link(own->hops[0].link).bus.valid());
}

TEST(Gpus, WhatIsNotKnownIsLeftOutOrGuessedAndPeersThatAreNotThereAreIgnored) {
  GpuInfo bare;
  bare.name = "GPU";
  const auto cluster = machine({.gpus = {bare}, .peers = {{.a = 0, .b = 7, .bytes_per_s = 1e9}}});
  ASSERT_NE(cluster, nullptr);
  EXPECT_EQ(cluster->links().size(), 1u);
  EXPECT_EQ(cluster->links()[0].bytes_per_s, kUnknownRate);
  EXPECT_EQ(cluster->device(DeviceId(0)).memory_bytes, 0);
}

TEST(Gpus, ThisMachineWithGpusIsAClusterFileThatReadsBackTheSame) {
  const auto cluster = discover_local(
      {}, {.gpus = {gpu(0, "a"), gpu(1, "a")}, .peers = {{.a = 0, .b = 1, .bytes_per_s = 450e9}}});
  ASSERT_TRUE(cluster.ok()) << cluster.error().to_string();
  EXPECT_TRUE((*cluster)->find_device("gpu1").valid());
  const std::string yaml = cluster_to_yaml(**cluster);
  const auto again = parse_cluster_yaml(yaml, "machine.yaml");
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ(cluster_to_yaml(**again), yaml);
  const auto without = discover_local();
  ASSERT_TRUE(without.ok());
  EXPECT_EQ((*without)->num_devices() + 2, (*cluster)->num_devices());
}

}  // namespace
}  // namespace heddle
