// Measured copies on streams, and their use in clusters and plans.
#include "heddle/runtime/copy_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "heddle/cluster/cluster_yaml.h"
#include "heddle/cost/cost_model.h"
#include "heddle/graph/graph.h"
#include "heddle/planners/planner.h"
#include "timed_runtime.h"

namespace heddle {
namespace {

using test::TimedCopies;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::shared_ptr<const Cluster> three_gpus(const std::string& links) {
  std::string text = "name: three\nhosts: [{name: h}]\ndevices:\n  - {name: c, kind: cpu}\n";
  for (const char* name : {"g0", "g1", "g2"})
    text += std::string("  - {name: ") + name + ", kind: gpu, flops: 1TFLOPS, memory_bandwidth: 100GB/s}\n";
  auto cluster = parse_cluster_yaml(text + links, "three.yaml");
  EXPECT_TRUE(cluster.ok()) << cluster.error().to_string();
  return *cluster;
}

const std::string kStar =
    "links:\n"
    "  - {from: h, to: g0, bandwidth: 16GB/s, latency: 10us}\n"
    "  - {from: h, to: g1, bandwidth: 16GB/s, latency: 10us}\n"
    "  - {from: h, to: g2, bandwidth: 16GB/s, latency: 10us}\n";

CopyOptions quick(std::map<std::string, TimedCopies> devices) {
  CopyOptions options;
  options.bytes = {1 << 12, 1 << 16, 1 << 20};
  options.seconds_per_size = 0;
  options.open = test::timed_opener(std::move(devices));
  return options;
}

const CopyRoute& route(const CopyProfile& profile, DeviceId from, DeviceId to) {
  for (const CopyRoute& w : profile.routes) {
    if (w.from == from && w.to == to) return w;
  }
  throw std::logic_error("not measured");
}

TEST(CopyFit, ALineGivesBackItsLatencyAndBandwidth) {
  const std::vector<CopyTime> times = {{1000, 11}, {2000, 12}, {1000000, 1010}};
  const CopyLine line = fit_copies(times);
  EXPECT_NEAR(line.latency_us, 10, 1e-6);
  EXPECT_NEAR(line.bytes_per_s, 1e9, 1);
}

TEST(CopyFit, WhatIsNoLineStillHasABandwidthAndNoNegativeLatency) {
  for (const std::vector<CopyTime>& times :
       {std::vector<CopyTime>{{1000, 4}}, std::vector<CopyTime>{{1000, 1}, {2000, 8}},
        std::vector<CopyTime>{{1000, 8}, {2000, 1}}, std::vector<CopyTime>{{500, 3}, {500, 5}}}) {
    const CopyLine line = fit_copies(times);
    EXPECT_EQ(line.latency_us, 0);
    EXPECT_GT(line.bytes_per_s, 0);
    EXPECT_TRUE(std::isfinite(line.bytes_per_s));
  }
  EXPECT_NEAR(fit_copies(std::vector<CopyTime>{{1000, 4}}).bytes_per_s, 250e6, 1);
}

TEST(CopyProfile, EachDirectionIsMeasuredAsSlowAsItIs) {
  const auto cluster = three_gpus(kStar);
  const auto profile = measure_copies(
      *cluster, quick({{"g0", {.latency_us = 20, .to_device = 2e9, .to_host = 1e9}}, {"g2", {}}}));
  ASSERT_TRUE(profile.ok()) << profile.error().to_string();
  const DeviceId g0 = cluster->find_device("g0"), g2 = cluster->find_device("g2"), host;
  EXPECT_NEAR(route(*profile, host, g0).line.bytes_per_s, 2e9, 2e6);
  EXPECT_NEAR(route(*profile, g0, host).line.bytes_per_s, 1e9, 1e6);
  EXPECT_NEAR(route(*profile, g0, host).line.latency_us, 20, 1e-3);
  // Without peer access, the copy goes through the host, as two copies.
  const CopyRoute& through = route(*profile, g0, g2);
  EXPECT_FALSE(through.direct);
  EXPECT_NEAR(through.line.latency_us, 30, 1e-3);
  EXPECT_NEAR(through.line.bytes_per_s, 0.5e9, 1e6);
  ASSERT_EQ(profile->left_out.size(), 1u);
  EXPECT_EQ(profile->left_out[0].first, cluster->find_device("g1"));
  EXPECT_THAT(profile->left_out[0].second, HasSubstr("not of this machine"));
}

TEST(CopyProfile, WhatTwoDevicesShareShowsWhenTheyCopyAtOnce) {
  const auto cluster = three_gpus(kStar);
  const auto profile =
      measure_copies(*cluster, quick({{"g0", {.to_device = 4e9, .to_host = 4e9, .bus = "root"}},
                                      {"g1", {.half_duplex = true}},
                                      {"g2", {.to_device = 4e9, .to_host = 4e9, .bus = "root"}}}));
  ASSERT_TRUE(profile.ok()) << profile.error().to_string();
  const DeviceId g0 = cluster->find_device("g0"), g1 = cluster->find_device("g1"),
                 g2 = cluster->find_device("g2");
  ASSERT_EQ(profile->links.shared.size(), 1u);
  EXPECT_THAT(profile->links.shared[0].devices, ElementsAre(g0, g2));
  EXPECT_THAT(profile->links.half_duplex, ElementsAre(g1));
  for (const CopiesAtOnce& set : profile->at_once) {
    const bool shares = set.devices == std::vector{g0, g2} || set.devices == std::vector{g1};
    EXPECT_EQ(set.shared, shares) << set.devices.size();
    EXPECT_NEAR(set.part, shares ? 0.5 : 1, 0.05);
  }
}

TEST(CopyProfile, ThreeOnOneBusAreOneSetMeasuredTogether) {
  const auto cluster = three_gpus(kStar);
  const TimedCopies shared{.bus = "root"};
  const auto profile = measure_copies(*cluster, quick({{"g0", shared}, {"g1", shared}, {"g2", shared}}));
  ASSERT_TRUE(profile.ok());
  ASSERT_EQ(profile->links.shared.size(), 1u);
  EXPECT_EQ(profile->links.shared[0].devices.size(), 3u);
  EXPECT_EQ(profile->at_once.back().devices.size(), 3u);
  EXPECT_NEAR(profile->at_once.back().part, 1. / 3, 0.02);
}

TEST(CopyProfile, LittleMemoryLeavesOutWhatDoesNotFit) {
  const auto cluster = three_gpus(kStar);
  const auto profile = measure_copies(*cluster, quick({{"g0", {.memory_bytes = 300'000}}, {"g1", {}}}));
  ASSERT_TRUE(profile.ok()) << profile.error().to_string();
  EXPECT_EQ(route(*profile, DeviceId(), cluster->find_device("g0")).times.size(), 2u);
  EXPECT_EQ(route(*profile, DeviceId(), cluster->find_device("g1")).times.size(), 3u);
}

TEST(CopyProfile, WithoutAnAcceleratorTheErrorSaysWhy) {
  const auto none = measure_copies(*three_gpus(kStar), quick({}));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), Code::kUnsupported);
  EXPECT_THAT(none.error().to_string(), HasSubstr("'g0': it is not of this machine"));
  const auto cpu =
      parse_cluster_yaml("name: c\nhosts: [{name: h}]\ndevices: [{name: c, kind: cpu}]", "c").value();
  EXPECT_THAT(measure_copies(*cpu).error().to_string(), HasSubstr("compute in host memory"));
}

TEST(CopyProfile, AcceleratorsOfTwoHostsAreRefused) {
  const auto cluster =
      parse_cluster_yaml(
          "name: two\nhosts: [{name: a}, {name: b}]\ndevices:\n"
          "  - {name: g0, kind: gpu, host: a}\n  - {name: g1, kind: gpu, host: b}\n"
          "links:\n  - {from: a, to: g0, bandwidth: 1GB/s}\n"
          "  - {from: b, to: g1, bandwidth: 1GB/s}\n  - {from: a, to: b, bandwidth: 1GB/s}\n",
          "two.yaml")
          .value();
  const auto profile = measure_copies(*cluster, quick({{"g0", {}}, {"g1", {}}}));
  ASSERT_FALSE(profile.ok());
  EXPECT_THAT(profile.error().to_string(), HasSubstr("two hosts"));
}

TEST(CopyProfile, ADeadlineEndsItWithAnError) {
  auto options = quick({{"g0", {}}});
  options.deadline = Deadline::after_seconds(0);
  const auto profile = measure_copies(*three_gpus(kStar), options);
  ASSERT_FALSE(profile.ok());
  EXPECT_EQ(profile.error().code(), Code::kCancelled);
}

// Real copies on the host's streams; their times are not checked.
TEST(CopyProfile, TheHostsStreamsAreMeasured) {
  const auto cluster = three_gpus(kStar);
  CopyOptions options;
  options.bytes = {1 << 12, 1 << 18};
  options.seconds_per_size = 1e-3;
  options.at_once_s = 1e-3;
  options.open = [](const Device& device) -> Result<std::unique_ptr<RuntimeDevice>> {
    class Host final : public RuntimeDevice {
     public:
      explicit Host(const std::string& name) : runtime_(make_host_runtime({.name = name})) {}
      Result<std::unique_ptr<CompiledSegment>> compile(const SegmentSpec&, int) override {
        return Error(Code::kUnsupported, "copies only");
      }
      StreamRuntime* stream_runtime() const override { return runtime_.get(); }

     private:
      std::shared_ptr<StreamRuntime> runtime_;
    };
    return std::unique_ptr<RuntimeDevice>(std::make_unique<Host>(device.name));
  };
  const auto profile = measure_copies(*cluster, options);
  ASSERT_TRUE(profile.ok()) << profile.error().to_string();
  EXPECT_EQ(profile->routes.size(), 12u);
  for (const CopyRoute& w : profile->routes) {
    EXPECT_TRUE(w.direct);
    EXPECT_GT(w.line.bytes_per_s, 0);
  }
  EXPECT_TRUE(with_measured_links(*cluster, profile->links).ok());
}

// Two branches of equal work on two devices: the plan splits them if copies are cheap, but not if they turn
// out to be a thousand times slower than the file says.
TEST(CopyProfile, APlanChangesWithWhatWasMeasured) {
  const auto declared = three_gpus(kStar);
  constexpr int64_t kBytes = 1 << 20;
  GraphBuilder g("branches");
  const auto add = [&](const std::string& name, std::vector<TensorId> inputs) {
    Op op{.name = name, .type = "Op"};
    op.given_times = {{"g0", 2000}, {"g1", 2000}};
    op.inputs = std::move(inputs);
    const OpId id =
        g.add_op(std::move(op), {{.name = name + ":out", .dtype = DType::kU8, .shape = {kBytes}}});
    return g.outputs_of(id)[0];
  };
  const TensorId first = add("first", {g.add_input("in", DType::kU8, {8})});
  g.add_output(add("last", {add("left", {first}), add("right", {first})}));
  const auto graph = g.build();
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  const auto devices_used = [&](std::shared_ptr<const Cluster> cluster) {
    Problem problem;
    problem.graph = *graph;
    problem.cluster = cluster;
    problem.devices = {cluster->find_device("g0"), cluster->find_device("g1")};
    problem.costs = std::make_shared<const CostTable>(
        build_cost_table(**graph, *cluster, *given_cost_model(), {}).value());
    const auto result = run_planner(*find_planner("heft"), problem, {});
    EXPECT_TRUE(result.ok()) << result.error().to_string();
    std::set<DeviceId> used;
    for (const Segment& s : result->plan.segments) used.insert(s.device);
    return used.size();
  };
  EXPECT_EQ(devices_used(declared), 2u);
  const TimedCopies slow{.to_device = 16e6, .to_host = 16e6};
  const auto profile = measure_copies(*declared, quick({{"g0", slow}, {"g1", slow}}));
  ASSERT_TRUE(profile.ok());
  const auto measured = with_measured_links(*declared, profile->links);
  ASSERT_TRUE(measured.ok()) << measured.error().to_string();
  EXPECT_EQ(devices_used(*measured), 1u);
}

}  // namespace
}  // namespace heddle
