// Fleets of hardware that is not here.
#include "heddle/session/fleet_new.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heddle/base/json.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/fleet/deployment.h"
#include "heddle/fleet/fleet_planner.h"
#include "heddle/fleet/sweep.h"
#include "heddle/graph/batch.h"
#include "small_model.h"

namespace heddle {
namespace {

using testing::HasSubstr;

NewFleetSettings settings_for(std::vector<std::string> models) {
  NewFleetSettings settings;
  settings.name = "fleet";
  settings.devices = {{"L4", 2}, {"T4", 3}};
  for (auto& path : models) settings.models.push_back({.path = std::move(path), .import = {}});
  settings.slo_us = 50e3;
  settings.cutting.output = "fleet.yaml";
  return settings;
}

std::string error_of(const NewFleetSettings& settings) {
  const auto fleet = new_fleet(settings, {});
  EXPECT_FALSE(fleet.ok());
  if (fleet.ok()) return "";
  EXPECT_EQ(fleet.error().code(), Code::kInvalidInput);
  return fleet.error().message();
}

double whole_us(const Fleet& fleet, size_t device_class, int batch) {
  const auto& m = fleet.models[0];
  double sum = 0;
  for (int k = 0; k < m.blocks; ++k) sum += m.block_us(device_class, 1, batch, k);
  return sum;
}

TEST(FleetNew, HasAnEstimateForEachClassShareBatchAndBlock) {
  auto settings = settings_for({"zoo:resnet-50", "zoo:bert-base,seq=64"});
  settings.slo_us_of["bert-base"] = 80e3;
  settings.share_levels = 2;
  settings.batches = 4;
  settings.cutting.blocks = 6;
  const auto fleet = new_fleet(settings, {});
  ASSERT_TRUE(fleet.ok()) << fleet.error().to_string();
  EXPECT_EQ(fleet->classes[0].memory_bytes, int64_t{24} << 30);
  EXPECT_EQ(fleet->models[0].slo_us, 50e3);
  EXPECT_EQ(fleet->models[1].slo_us, 80e3);
  for (const auto& m : fleet->models) {
    EXPECT_EQ(m.blocks, 6);
    EXPECT_GT(m.estimated_rate_per_s, 0);
    for (size_t c = 0; c < 2; ++c) {
      EXPECT_EQ(m.max_batch(c, 1), 4);
      EXPECT_EQ(m.max_batch(c, 2), 2);
      EXPECT_EQ(m.times_from[c]->origin, Origin::kEstimated);
      EXPECT_GT(m.times_from[c]->error_factor, 1.5);
    }
  }
}

TEST(FleetNew, ABatchReadsParametersOnce) {
  // BERT at a short sequence is bound by reading its parameters, so two requests take little longer than one.
  const auto fleet = new_fleet(settings_for({"zoo:bert-large,seq=1"}), {});
  ASSERT_TRUE(fleet.ok()) << fleet.error().to_string();
  EXPECT_LT(whole_us(*fleet, 0, 2), 1.1 * whole_us(*fleet, 0, 1));
  EXPECT_GE(whole_us(*fleet, 0, 2), whole_us(*fleet, 0, 1));
}

TEST(FleetNew, APrecisionSpeedsUpClassesThatHaveIt) {
  auto settings = settings_for({"zoo:resnet-152,image=448"});
  const auto f32 = new_fleet(settings, {});
  settings.precision = Precision::kTf32;
  const auto tf32 = new_fleet(settings, {});
  ASSERT_TRUE(f32.ok() && tf32.ok());
  EXPECT_LT(whole_us(*tf32, 0, 1), 0.9 * whole_us(*f32, 0, 1));  // L4
  EXPECT_EQ(whole_us(*tf32, 1, 1), whole_us(*f32, 1, 1));        // T4 has no tf32
}

TEST(FleetNew, TheSlowerOfLinkAndNetworkCounts) {
  auto settings = settings_for({"zoo:resnet-18"});
  settings.devices.emplace_back("EPYC-7763", 1);  // computes in its host's memory
  settings.nic_bytes_per_s = 20e9;
  const auto fleet = new_fleet(settings, {});
  ASSERT_TRUE(fleet.ok()) << fleet.error().to_string();
  EXPECT_EQ(fleet->classes[0].nic_bytes_per_s, 20e9);            // L4: PCIe 4
  EXPECT_NEAR(fleet->classes[1].nic_bytes_per_s, 15.75e9, 1e7);  // T4: PCIe 3
  EXPECT_EQ(fleet->classes[2].nic_bytes_per_s, 20e9);
}

TEST(FleetNew, MistakesNameClassAndModel) {
  auto settings = settings_for({"zoo:resnet-50"});
  settings.devices = {{"RTX4900", 1}};
  EXPECT_THAT(error_of(settings), HasSubstr("class 'RTX4900' (did you mean 'RTX4090'?)"));
  settings = settings_for({"zoo:resnet-50"});
  settings.slo_us = 0;
  EXPECT_THAT(error_of(settings), HasSubstr("model 'resnet-50' has no SLO"));
  settings = settings_for({"zoo:resnet-50"});
  settings.slo_us_of["resnet-5"] = 1;
  EXPECT_THAT(error_of(settings), HasSubstr("(did you mean 'resnet-50'?)"));
  settings = settings_for({"zoo:resnet-50"});
  settings.devices.emplace_back("L4", 1);
  EXPECT_THAT(error_of(settings), HasSubstr("class 'L4' is given twice"));
  settings = settings_for({"zoo:gpt3-13b"});
  settings.devices = {{"P4", 10}};
  EXPECT_THAT(error_of(settings),
              HasSubstr("48.8 GiB of parameters; a pipeline of 2 partitions on these classes"));
  settings = settings_for({"zoo:gpt3-13b"});
  settings.devices = {{"P4", 10}, {"H100", 1}};
  settings.cutting.blocks = 3;
  EXPECT_THAT(error_of(settings), HasSubstr("model 'gpt3-13b' on class 'P4': a block has"));
}

TEST(FleetNew, AClassOfAFileNeedsPeakRates) {
  auto settings = settings_for({"zoo:resnet-18"});
  const std::string file =
      "name: box\nhosts:\n  - {name: host}\ndevices:\n  - {name: a, kind: npu, class: own";
  settings.devices = {{"own", 4}};
  settings.cluster = *parse_cluster_yaml(file + "}\n", "box.yaml");
  EXPECT_THAT(error_of(settings), HasSubstr("class 'own' has no peak rates"));
  settings.cluster = *parse_cluster_yaml(file + ", flops: 1TFLOPS, memory_bandwidth: 50GB/s}\n", "box.yaml");
  const auto fleet = new_fleet(settings, {});
  ASSERT_TRUE(fleet.ok()) << fleet.error().to_string();
  EXPECT_EQ(fleet->classes[0].count, 4);
}

class FleetNewOfModel : public test::SmallModelTest {
 protected:
  NewFleetSettings settings_for_model() const {
    auto settings = settings_for({model().path});
    settings.store = settings_.store;
    settings.cutting.output = (folder_ / "fleet.yaml").string();
    settings.cutting.blocks = 2;
    return settings;
  }
};

TEST_F(FleetNewOfModel, NamesTheFileIfAllClassesCanRunIt) {
  auto settings = settings_for_model();
  auto fleet = new_fleet(settings, {});
  ASSERT_TRUE(fleet.ok()) << fleet.error().to_string();
  EXPECT_EQ(fleet->models[0].file.path, "");  // served by timed devices
  settings.devices = {{open_cluster("preset:local").value()->device(DeviceId(0)).device_class, 1}};
  fleet = new_fleet(settings, {});
  ASSERT_TRUE(fleet.ok()) << fleet.error().to_string();
  EXPECT_EQ(fleet->models[0].file.path, "model.onnx");
  EXPECT_FALSE(fleet->models[0].file.block_of.empty());
}

TEST_F(FleetNewOfModel, AScaledBatchIsTheImportedOne) {
  ModelSpec source = model();
  const auto one = load_model(source);
  source.import.batch = 3;
  const auto three = load_model(source);
  ASSERT_TRUE(one.ok() && three.ok());
  const auto scaled = with_batch(*one->graph, 3);
  ASSERT_TRUE(scaled.ok()) << scaled.error().to_string();
  ASSERT_EQ((*scaled)->num_ops(), three->graph->num_ops());
  for (size_t i = 0; i < (*scaled)->num_ops(); ++i) {
    EXPECT_EQ((*scaled)->op(OpId(i)).flops, three->graph->op(OpId(i)).flops);
    EXPECT_EQ((*scaled)->op(OpId(i)).bytes_accessed, three->graph->op(OpId(i)).bytes_accessed);
  }
}

TEST_F(FleetNewOfModel, PrefersWhatWasMeasuredHere) {
  FleetProfileSettings profile;
  profile.models = {{.path = model().path, .import = {}}};
  profile.cutting.blocks = 2;
  profile.batches = 1;
  profile.store = settings_.store;
  profile.cutting.output = (folder_ / "profile.yaml").string();
  const auto profiled = profile_fleet(profile, {});
  ASSERT_TRUE(profiled.ok()) << profiled.error().to_string();
  auto settings = settings_for_model();
  settings.devices = {{open_cluster("preset:local").value()->device(DeviceId(0)).device_class, 1}, {"L4", 1}};
  settings.batches = 1;
  auto fleet = new_fleet(settings, {});
  ASSERT_TRUE(fleet.ok()) << fleet.error().to_string();
  EXPECT_EQ(fleet->models[0].times_from[0]->origin, Origin::kMeasured);
  EXPECT_EQ(fleet->models[0].times_from[1]->origin, Origin::kEstimated);
  settings.batches = 2;
  fleet = new_fleet(settings, {});
  ASSERT_TRUE(fleet.ok()) << fleet.error().to_string();
  EXPECT_EQ(fleet->models[0].times_from[0]->origin, Origin::kScaled);
}

// examples/mixed-fleet.yaml and what README and docs/fleet.md say of it.
class MixedFleet : public testing::Test {
 protected:
  void SetUp() override {
    auto fleet = read_fleet(HEDDLE_SOURCE_DIR "/examples/mixed-fleet.yaml");
    ASSERT_TRUE(fleet.ok()) << fleet.error().to_string();
    fleet_ = std::move(*fleet);
  }

  FleetPlan plan(const char* planner) const {
    auto plan = plan_fleet(fleet_, planner);
    EXPECT_TRUE(plan.ok()) << plan.error().to_string();
    return plan.ok() ? *plan : FleetPlan{};
  }

  double attainment(const FleetPlan& plan, double rate_per_s) const {
    const auto deployment = deploy(fleet_, plan);
    EXPECT_TRUE(deployment.ok()) << deployment.error().to_string();
    SweepOptions options;
    options.load_factors = {1};
    options.rates_per_s.assign(fleet_.models.size(), rate_per_s / static_cast<double>(fleet_.models.size()));
    options.duration_s = 2;
    const auto points = sweep_loads(*deployment, options);
    EXPECT_TRUE(points.ok()) << points.error().to_string();
    return points.ok() ? points->front().result.total.attainment() : 0;
  }

  Fleet fleet_;
};

TEST_F(MixedFleet, IsWhatTheCommandMakes) {
  auto settings = settings_for({"zoo:inception-v3,image=598", "zoo:resnet-152,image=448", "zoo:swin-b"});
  settings.name = "mixed-fleet";
  settings.devices = {{"L4", 25}, {"T4", 75}};
  settings.slo_us = 0;
  settings.slo_us_of = {{"inception-v3", 16e3}, {"resnet-152", 30e3}, {"swin-b", 12e3}};
  const auto made = new_fleet(settings, {});
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  EXPECT_EQ(to_json(*made), to_json(fleet_));
}

TEST_F(MixedFleet, PoolsServeTwiceWhatEachClassServesForItself) {
  const auto pooled = plan("auto"), alone = plan("np");
  EXPECT_GT(pooled.value, 2 * alone.value);
  EXPECT_GT(attainment(pooled, 8000), 0.99);
  EXPECT_LT(attainment(alone, 8000), 0.6);
}

}  // namespace
}  // namespace heddle
