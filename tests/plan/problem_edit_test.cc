// Problems with one change of their hardware.
#include "heddle/plan/problem_edit.h"

#include <gtest/gtest.h>

#include "heddle/plan/builder.h"
#include "plan_support.h"
#include "workload_support.h"

namespace heddle::test {
namespace {

TEST(ProblemEdit, TimesFollowTheDevicesThatAreAddedRemovedAndScaled) {
  const Problem p =
      make_problem(make_graph({{"a", {}, 4}, {"b", {"a"}, 4}}), make_gpu_cluster(2), {{4, 6}, {8, 10}});
  const Problem more = made(edit_problem(p, {.cluster = {.add = "g1"}}));
  ASSERT_EQ(more.cluster->num_devices(), 3u);
  EXPECT_EQ(more.costs->us(OpId(1), DeviceId(2)), 10);
  const Problem less = made(edit_problem(p, {.cluster = {.remove = "g0"}}));
  ASSERT_EQ(less.cluster->num_devices(), 1u);
  EXPECT_EQ(less.costs->us(OpId(0), DeviceId(0)), 6);
  const Problem faster = made(edit_problem(p, {.cluster = {.scale = "g0", .factor = 2}}));
  EXPECT_EQ(faster.costs->us(OpId(1), DeviceId(0)), 4);
  EXPECT_EQ(faster.costs->us(OpId(1), DeviceId(1)), 10);
}

TEST(ProblemEdit, KnownSegmentsAndUsableDevicesAreKept) {
  Problem p = make_problem(make_graph({{"a", {}, 4}, {"b", {"a"}, 4}}), make_gpu_cluster(3),
                           {{4, 6, 6}, {8, 10, 10}});
  auto costs = std::make_shared<CostTable>(*p.costs);
  costs->set_segment({{OpId(0), OpId(1)}, DeviceId(2), {.us = 12, .origin = Origin::kMeasured}});
  costs->set_core_taken(DeviceId(2), 1.5);
  p.costs = costs;
  p.devices = {DeviceId(1), DeviceId(2)};
  const Problem less = made(edit_problem(p, {.cluster = {.remove = "g1"}}));
  EXPECT_EQ(less.devices, (std::vector<DeviceId>{DeviceId(1)}));
  const OpId both[] = {OpId(0), OpId(1)};
  EXPECT_EQ(less.costs->segment(both, DeviceId(1)).us, 12);
  EXPECT_EQ(less.costs->core_taken(DeviceId(1)), 1.5);
}

// A set of cores that also computes in bfloat16 is one piece of hardware.
TEST(ProblemEdit, VariantsChangeWithTheirDevice) {
  ClusterBuilder builder("cpus");
  const HostId host = builder.add_host({.name = "h", .memory_bytes = 1000});
  Device device{.name = "c", .kind = DeviceKind::kCpu, .device_class = "c", .host = host, .cores = {0}};
  builder.add_device(device);
  device.variant_of = "c";
  device.name = device.device_class = "c+bf16";
  device.precision = Precision::kBf16;
  builder.add_device(device);
  Device other{.name = "d", .kind = DeviceKind::kCpu, .device_class = "d", .host = host, .cores = {1}};
  builder.add_device(other);
  Problem p = make_problem(make_graph({{"a", {}, 4}}), must(builder.build()), {{8, 4, 10}});
  p.resident.assign(static_cast<size_t>(p.cluster->num_memory_pools()), {});

  for (const char* name : {"c", "c+bf16"}) {
    const Problem faster = made(edit_problem(p, {.cluster = {.scale = name, .factor = 2}}));
    EXPECT_EQ(faster.costs->us(OpId(0), DeviceId(0)), 4);
    EXPECT_EQ(faster.costs->us(OpId(0), DeviceId(1)), 2);
    EXPECT_EQ(faster.costs->us(OpId(0), DeviceId(2)), 10);
    const Problem less = made(edit_problem(p, {.cluster = {.remove = name}}));
    ASSERT_EQ(less.cluster->num_devices(), 1u);
    EXPECT_EQ(less.costs->us(OpId(0), DeviceId(0)), 10);
    const Problem more = made(edit_problem(p, {.cluster = {.add = name}}));
    ASSERT_EQ(more.cluster->num_devices(), 5u);
    EXPECT_EQ(more.costs->us(OpId(0), DeviceId(3)), 8);
    EXPECT_EQ(more.costs->us(OpId(0), DeviceId(4)), 4);
  }
}

TEST(ProblemEdit, OneOfTheUsableDevicesIsLeft) {
  Problem p = make_problem(make_graph({{"a", {}, 4}}), make_gpu_cluster(2), {{4, 6}});
  p.devices = {DeviceId(1)};
  const auto less = edit_problem(p, {.cluster = {.remove = "g1"}});
  ASSERT_FALSE(less.ok());
  EXPECT_EQ(less.error().code(), Code::kInvalidInput);
}

TEST(ProblemEdit, GivenTransferTimesFollowTheDevices) {
  Random random(2);
  const Problem p = random_flow_problem(random, {.ops = 3, .devices = 3, .edge_probability = 1});
  const TensorId tensor(0);
  ASSERT_FALSE(p.is_order_only(tensor));
  const Problem more = made(edit_problem(p, {.cluster = {.add = "device1"}}));
  EXPECT_EQ(more.given_transfer_us(tensor, DeviceId(3), DeviceId(2)),
            p.given_transfer_us(tensor, DeviceId(1), DeviceId(2)));
  double most = 0;
  for (const int other : {0, 2}) {
    most = std::max({most, p.given_transfer_us(tensor, DeviceId(1), DeviceId(other)),
                     p.given_transfer_us(tensor, DeviceId(other), DeviceId(1))});
  }
  EXPECT_EQ(more.given_transfer_us(tensor, DeviceId(1), DeviceId(3)), most);
  const Problem less = made(edit_problem(p, {.cluster = {.remove = "device0"}}));
  EXPECT_EQ(less.given_transfer_us(tensor, DeviceId(0), DeviceId(1)),
            p.given_transfer_us(tensor, DeviceId(1), DeviceId(2)));
  const Problem faster = made(edit_problem(p, {.transfers = 2}));
  EXPECT_EQ(faster.given_transfer_us(tensor, DeviceId(0), DeviceId(1)),
            p.given_transfer_us(tensor, DeviceId(0), DeviceId(1)) / 2);
}

TEST(ProblemEdit, MemoryGrowsAndHasALimitStill) {
  const Problem p = random_placement_problem({}, 1, {});
  const DeviceId accelerator = p.cluster->find_device("accelerator0");
  const int64_t before = p.cluster->device(accelerator).memory_bytes;
  const Problem larger = made(edit_problem(p, {.cluster = {.memory = 2}}));
  EXPECT_EQ(larger.cluster->device(accelerator).memory_bytes, 2 * before);
  const Problem tiny = made(edit_problem(p, {.cluster = {.memory = 1e-6}}));
  EXPECT_EQ(tiny.cluster->device(accelerator).memory_bytes, 1);
}

}  // namespace
}  // namespace heddle::test
