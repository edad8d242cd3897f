// Models served on the devices of a cluster file, which names others than the machine's own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heddle/cluster/cluster.h"
#include "heddle/cluster/variants.h"
#include "heddle/runtime/backend.h"
#include "heddle/serve/local_server.h"
#include "heddle/serve/rest_api.h"
#include "serve_support.h"
#include "skip_model.h"

namespace heddle {
namespace {

using testing::HasSubstr;

std::shared_ptr<const Cluster> cluster_of(const std::vector<Device>& devices) {
  ClusterBuilder builder("mine");
  const HostId host = builder.add_host({.name = "here", .memory_bytes = 0});
  for (Device device : devices) {
    device.host = host;
    builder.add_device(std::move(device));
  }
  return builder.build().value();
}

TEST(ServiceDevices, AreThoseOfAClusterThatCompute) {
  TestFolder folder;
  const auto sources =
      find_models(std::vector{folder.write("skip.onnx", skip_model())}, {.slo_us = 60e6, .max_batch = 4});
  ASSERT_TRUE(sources.ok());
  Device left = discover_machine().value()->devices().front();
  left.name = left.device_class = "left";
  const Device unreal{.name = "unreal", .backend = "emulated"};
  InferService service;
  LocalServerOptions options;
  options.measure_s = .001;
  const auto refusal = [&] {
    const auto local = LocalServer::create(service, *sources, options);
    return local.ok() ? std::string() : local.error().to_string();
  };
  options.cluster = cluster_of({unreal});
  EXPECT_THAT(refusal(), HasSubstr("no device of cluster 'mine' computes"));
  options.cluster = cluster_of({unreal, left});
  options.devices = {"right"};
  EXPECT_THAT(refusal(), HasSubstr("cluster 'mine' has 'left'"));
  options.devices.clear();
  const auto local = LocalServer::create(service, *sources, options);
  ASSERT_TRUE(local.ok()) << local.error().to_string();
  const auto server = start_rest(service);
  ASSERT_TRUE(server.ok());
  const Json pools = service.status()["pools"];
  EXPECT_FALSE(pools.empty());
  for (const auto& pool : pools) EXPECT_EQ(hardware_name(pool["class"]), "left");
  const auto answer = RawClient((*server)->port()).ask("POST", "/v2/models/skip/infer", R"({"inputs": [
    {"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 1, 1]}]})");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(parse_json(answer.body).value()["outputs"][1]["data"], Json({6, 12, 20}));
  (*server)->stop(5);
  service.stop(5);
}

}  // namespace
}  // namespace heddle
