#include "heddle/session/fleet_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "heddle/cluster/variants.h"
#include "heddle/session/clusters.h"
#include "small_model.h"

namespace heddle {
namespace {

class FleetProfile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("heddle-fleet-profile-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_ / "models");
    const auto path = folder_ / "models" / "model.onnx";
    std::ofstream(path, std::ios::binary) << test::small_model();
    settings_.models = {{.path = path.string(), .import = {}}};
    settings_.cutting.blocks = 2;
    settings_.batches = 2;
    settings_.store = (folder_ / "store.sqlite").string();
    settings_.cutting.output = (folder_ / "fleet.json").string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
  FleetProfileSettings settings_;
};

TEST_F(FleetProfile, HasATimeForEachClassBatchSizeAndBlock) {
  const auto fleet = profile_fleet(settings_, {});
  ASSERT_TRUE(fleet.ok()) << fleet.error().to_string();
  ASSERT_EQ(fleet->models.size(), 1u);
  const FleetModel& model = fleet->models[0];
  EXPECT_EQ(model.file.path, "models/model.onnx");
  // Light ops are one unit, and a unit is in one block: there may be fewer than asked for.
  ASSERT_GE(model.blocks, 1);
  ASSERT_LE(model.blocks, 2);
  ASSERT_EQ(model.latency_us.size(), fleet->classes.size());
  for (const auto& of_class : model.latency_us) {
    ASSERT_EQ(of_class.size(), 1u);     // shares
    ASSERT_EQ(of_class[0].size(), 2u);  // batch sizes
    for (const auto& blocks : of_class[0]) {
      ASSERT_EQ(blocks.size(), static_cast<size_t>(model.blocks));
      for (const double us : blocks) EXPECT_GT(us, 0);
    }
  }
  EXPECT_GT(model.slo_us, model.margin_us);
  ASSERT_EQ(model.times_from.size(), fleet->classes.size());
  for (const auto& from : model.times_from) EXPECT_EQ(from->origin, Origin::kMeasured);
}

// The small model errs in narrow types by rounding alone.
TEST_F(FleetProfile, ABudgetDecidesTheTypeOfAllClasses) {
  settings_.calibration.random = 2;
  settings_.variants.budget = ErrorBudget{.agreement = 0, .mean = 1};
  const auto wide = under_budget(settings_, {});
  ASSERT_TRUE(wide.ok()) << wide.error().to_string();
  EXPECT_FALSE(wide->variants.budget.has_value());
  EXPECT_TRUE(wide->variants.precisions.empty());
  if (wide->narrow == Precision::kF32) GTEST_SKIP() << "this processor has float32 only";
  ASSERT_EQ(wide->models.size(), 1u);
  EXPECT_TRUE(wide->models[0].allowed);
  EXPECT_GT(wide->models[0].mean, 0);

  settings_.variants.budget = ErrorBudget{.agreement = 0, .mean = wide->models[0].mean / 2};
  const auto tight = under_budget(settings_, {});
  ASSERT_TRUE(tight.ok()) << tight.error().to_string();
  EXPECT_FALSE(tight->models[0].allowed);
  EXPECT_THAT(tight->variants.precisions, testing::ElementsAre("f32"));
  settings_.variants = tight->variants;
  const auto fleet = profile_fleet(settings_, {});
  ASSERT_TRUE(fleet.ok()) << fleet.error().to_string();
  for (const auto& c : fleet->classes) EXPECT_EQ(precision_in_name(c.name), Precision::kF32);
}

TEST_F(FleetProfile, ABudgetThatTheClusterFilesTypeBreaksIsInfeasibleWithTheError) {
  const auto here = open_cluster("preset:local").value();
  const auto types = engines_of(*here).value().front().precisions;
  const auto narrow = std::ranges::find_if(types, [](Precision p) { return p != Precision::kF32; });
  if (narrow == types.end()) GTEST_SKIP() << "this processor has float32 only";
  std::vector<std::vector<Variant>> forced(here->num_devices());
  forced[0] = {{"openvino", *narrow}};
  Device fixed = with_variants(*here, forced).value()->devices()[0];
  fixed.fixed_precision = true;
  ClusterBuilder builder("fixed");
  builder.add_host(here->hosts()[0]);
  builder.add_device(fixed);
  settings_.cluster = builder.build().value();
  settings_.variants.budget = ErrorBudget{.agreement = 0, .mean = 1e-12};
  const auto refused = under_budget(settings_, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::kInfeasible);
  EXPECT_THAT(refused.error().to_string(), testing::HasSubstr("which the cluster file fixes"));
}

// A shape that is given for one request says nothing against batches.
TEST_F(FleetProfile, AGivenShapeTakesTheBatchSizes) {
  settings_.models[0].import.shapes = {{"x", {1, 64}}};
  const auto given = profile_fleet(settings_, {});
  ASSERT_TRUE(given.ok()) << given.error().to_string();
  ASSERT_EQ(given->models[0].latency_us[0][0].size(), 2u);
  const auto loaded = load_model({settings_.models[0].path, settings_.models[0].import.at_batch(2)});
  ASSERT_TRUE(loaded.ok()) << loaded.error().to_string();
  EXPECT_EQ(loaded->graph->tensor(loaded->graph->inputs()[0]).shape, (Shape{2, 64}));
}

TEST_F(FleetProfile, AFixedBatchIsMeasuredAlone) {
  using namespace onnx_writer;
  std::ofstream(settings_.models[0].path, std::ios::binary)
      << model({{node("Relu", {"x"}, {"y"}, "relu")}, {value("x", {1, 64})}, {value("y", {1, 64})}});
  const auto fleet = profile_fleet(settings_, {});
  ASSERT_TRUE(fleet.ok()) << fleet.error().to_string();
  EXPECT_EQ(fleet->models[0].latency_us[0][0].size(), 1u);
}

TEST_F(FleetProfile, CancelledSaysThatItGoesOn) {
  Control control;
  control.cancel.cancel();
  const auto fleet = profile_fleet(settings_, control);
  ASSERT_FALSE(fleet.ok());
  EXPECT_EQ(fleet.error().code(), Code::kCancelled);
  EXPECT_THAT(fleet.error().to_string(), testing::HasSubstr("run the same command again"));
}

TEST_F(FleetProfile, TheNetworksRateIsThatBetweenHosts) {
  const auto here = open_cluster("preset:local").value();
  ClusterBuilder builder("hosts");
  std::vector<NodeId> nodes;
  for (const char* name : {"a", "b"}) {
    const HostId host = builder.add_host({.name = name});
    nodes.push_back(builder.host_node(host));
    Device device = here->devices()[0];
    device.name = std::string("cpu-") + name;
    device.host = host;
    const DeviceId id = builder.add_device(device);
    builder.add_link({.a = nodes.back(), .b = builder.device_node(id), .bytes_per_s = 25e9});
  }
  builder.add_link({.a = nodes[0], .b = nodes[1], .bytes_per_s = 2e9});
  settings_.cluster = builder.build().value();
  const auto fleet = profile_fleet(settings_, {});
  ASSERT_TRUE(fleet.ok()) << fleet.error().to_string();
  ASSERT_EQ(fleet->classes.size(), 1U);
  EXPECT_EQ(fleet->classes[0].nic_bytes_per_s, 2e9);
}

TEST_F(FleetProfile, NeedsDevicesThatAreHere) {
  settings_.cluster = open_cluster("preset:v100").value();
  const auto fleet = profile_fleet(settings_, {});
  ASSERT_FALSE(fleet.ok());
  EXPECT_EQ(fleet.error().code(), Code::kInvalidInput);
}

}  // namespace
}  // namespace heddle
