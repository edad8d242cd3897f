#include "heddle/cluster/edit.h"

#include <gtest/gtest.h>

#include "heddle/cluster/cluster_yaml.h"

namespace heddle {
namespace {

// The CPU of this preset sits in its host's memory and has no node of its own in use.
TEST(EditCluster, ScalingAGpuLeavesTheRoutesOfALinklessCpu) {
  const auto before = load_cluster("preset:diviml").value();
  ClusterEdit edit;
  edit.scale = "t4";
  edit.factor = 2;
  const auto edited = edit_cluster(*before, edit);
  ASSERT_TRUE(edited.ok()) << edited.error().to_string();
  const Cluster& after = **edited;
  for (size_t i = 0; i < before->num_devices(); ++i) {
    for (size_t j = 0; j < before->num_devices(); ++j) {
      const Route *x = before->route(DeviceId(i), DeviceId(j)), *y = after.route(DeviceId(i), DeviceId(j));
      ASSERT_NE(y, nullptr);
      EXPECT_EQ(x->hops.size(), y->hops.size());
      EXPECT_EQ(x->bytes_per_s, y->bytes_per_s);
    }
  }
  EXPECT_EQ(after.device(after.find_device("t4")).speed, 2);
}

// The link between the two is copied with each of them.
TEST(EditCluster, DevicesThatALinkJoinsMayBothBeAdded) {
  const auto before = load_cluster("preset:v100").value();
  const auto one = edit_cluster(*before, {.add = "gpu1"});
  ASSERT_TRUE(one.ok()) << one.error().to_string();
  const auto two = edit_cluster(**one, {.add = "gpu2"});
  ASSERT_TRUE(two.ok()) << two.error().to_string();
  ASSERT_EQ((*two)->num_devices(), 6U);
  const Route* route = (*two)->route(DeviceId(4), DeviceId(5));
  ASSERT_NE(route, nullptr);
  EXPECT_EQ(route->bytes_per_s, before->route(DeviceId(0), DeviceId(1))->bytes_per_s);
}

}  // namespace
}  // namespace heddle
