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
