// Real models on OpenVINO's CPU core sets: for any cuts and any placement, the outputs equal those of the
// whole model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "backends/openvino/openvino_session.h"
#include "graph/model_files.h"
#include "graph/onnx_writer.h"
#include "heddle/base/own_cores.h"
#include "heddle/base/random.h"
#include "heddle/graph/model.h"
#include "heddle/plan/builder.h"
#include "heddle/plan/evaluator.h"
#include "heddle/runtime/cold.h"
#include "heddle/runtime/device_shares.h"
#include "heddle/runtime/executor.h"
#include "heddle/runtime/profiler.h"
#include "heddle/runtime/recheck.h"
#include "heddle/runtime/run.h"
#include "heddle/runtime/segment_measurer.h"

namespace heddle {
namespace {

// At most two cores.
std::vector<int> allowed_cores() {
  auto cores = own_cores();
  if (cores.size() > 2) cores.resize(2);
  return cores;
}

// Two devices of one core, and one of both; they overlap as on a real machine.
std::shared_ptr<const Cluster> core_sets() {
  ClusterBuilder builder("cores");
  const HostId host = builder.add_host({.name = "here", .memory_bytes = 0});
  const std::vector<int> cores = allowed_cores();
  const auto add = [&](const std::string& name, std::vector<int> set) {
    Device device;
    device.name = name;
    device.kind = DeviceKind::kCpu;
    device.device_class = "cpu" + std::to_string(set.size());
    device.host = host;
    device.backend = "openvino";
    device.backend_device = "CPU";
    device.target = "openvino:CPU:" + std::to_string(set.size());
    device.cores = std::move(set);
    builder.add_device(device);
  };
  add("cpu0", {cores.front()});
  add("cpu1", {cores.back()});
  add("cpus", cores);
  return builder.build().value();
}

struct Loaded {
  std::shared_ptr<const Model> model;
  Problem problem;
};

std::optional<Loaded> load(const std::string& name, ImportOptions options = {}) {
  const std::string path = wheel_model(name);
  if (path.empty()) return std::nullopt;
  auto model = Model::load(path, options);
  EXPECT_TRUE(model.ok()) << model.error().to_string();
  if (!model.ok()) return std::nullopt;
  Loaded loaded{*model, {}};
  loaded.problem.graph = (*model)->graph();
  loaded.problem.cluster = core_sets();
  auto costs = std::make_shared<CostTable>(loaded.problem.graph->num_ops(), 3);
  for (size_t op = 0; op < loaded.problem.graph->num_ops(); ++op) {
    for (size_t d = 0; d < 3; ++d)
      costs->set(OpId(op), DeviceId(d), {.us = 10, .origin = Origin::kGiven, .rel_spread = 0});
  }
  loaded.problem.costs = costs;
  return loaded;
}

// Slices of the topological order, each on a random device.
Assignment random_cuts(const Graph& graph, int segments, uint64_t seed, int only_device = -1) {
  Random random(seed);
  Assignment a;
  const auto order = graph.topological_order();
  a.order.assign(order.begin(), order.end());
  a.device.resize(order.size());
  a.segment.resize(order.size());
  std::vector<size_t> cuts;
  for (int i = 1; i < segments; ++i) cuts.push_back(random.below(order.size()));
  std::sort(cuts.begin(), cuts.end());
  std::vector<DeviceId> devices;
  for (int i = 0; i < segments; ++i)
    devices.emplace_back(only_device >= 0 ? only_device : static_cast<int>(random.below(3)));
  for (size_t i = 0; i < order.size(); ++i) {
    const auto s = static_cast<size_t>(std::upper_bound(cuts.begin(), cuts.end(), i) - cuts.begin());
    a.segment[order[i].index()] = static_cast<int>(s);
    a.device[order[i].index()] = devices[s];
  }
  return a;
}

TEST(OpenVino, RandomCutsOnOverlappingCoreSetsEqualTheWholeModel) {
  const auto loaded = load("light_squeezenet.onnx");
  if (!loaded) GTEST_SKIP() << "the wheel onnx is not in .venv";
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const Plan plan =
        build_plan(loaded->problem, random_cuts(*loaded->problem.graph, static_cast<int>(2 * seed), seed))
            .value();
    const auto record = run_plan(loaded->problem, plan, loaded->model, {.warmups = 1, .repeats = 3});
    ASSERT_TRUE(record.ok()) << record.error().to_string();
    EXPECT_TRUE(record->verified);
    EXPECT_TRUE(record->outputs_equal) << "seed " << seed << ": " << record->max_rel_error;
    EXPECT_EQ(record->steps.size(), plan.steps.size());
    EXPECT_GT(record->measured_us, 0);
  }
}

TEST(OpenVino, TrainedModelsEqualTheWholeModel) {
  const auto loaded = load("ch_ppocr_mobile_v2.0_cls_infer.onnx", {.shapes = {{"x", {1, 3, 48, 192}}}});
  if (!loaded) GTEST_SKIP() << "the wheel rapidocr-onnxruntime is not in .venv";
  const Plan plan = build_plan(loaded->problem, random_cuts(*loaded->problem.graph, 6, 3)).value();
  const auto record = run_plan(loaded->problem, plan, loaded->model, {.warmups = 1, .repeats = 3});
  ASSERT_TRUE(record.ok()) << record.error().to_string();
  EXPECT_TRUE(record->outputs_equal) << record->max_rel_error;
}

// Two lanes, the first on core 0 and `second` on core 1.
void expect_right_outputs(Loaded& loaded, const Assignment& second) {
  loaded.problem.objective = Objective::kThroughput;
  const Graph& graph = *loaded.problem.graph;
  const Plan plan =
      build_plan(loaded.problem, std::vector<Lane>{{random_cuts(graph, 2, 1, 0), 0.5}, {second, 0.5}})
          .value();
  auto executor = Executor::create(loaded.problem, plan, loaded.model, {.in_flight = 4});
  ASSERT_TRUE(executor.ok()) << executor.error().to_string();
  constexpr int kRequests = 12, kKinds = 3;
  std::vector<std::vector<TensorValue>> inputs, expected;
  for (int k = 0; k < kKinds; ++k) {
    inputs.push_back(make_inputs(graph, {.seed = static_cast<uint64_t>(k) + 1}).value());
    expected.push_back(reference_outputs(*loaded.model, inputs.back()).value());
  }
  std::vector<char> equal(kRequests, 0);
  const auto result = (*executor)->run_stream(
      {.requests = kRequests,
       .fill =
           [&](int64_t request, int slot) {
             const TensorValue& value = inputs[static_cast<size_t>(request % kKinds)][0];
             std::memcpy((*executor)->inputs(slot)[0].data, value.data.get(),
                         static_cast<size_t>(value.bytes));
           },
       .done =
           [&](const RequestTiming& t) {
             const TensorView expect = expected[static_cast<size_t>(t.request % kKinds)][0].view();
             equal[static_cast<size_t>(t.request)] =
                 compare_tensors((*executor)->outputs(t.slot)[0], expect, 1e-3, 1e-5).equal;
           }});
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(std::count(equal.begin(), equal.end(), 1), kRequests);
}

TEST(OpenVino, PipelinedLanesReturnTheRightOutputsForEachRequest) {
  auto loaded = load("light_squeezenet.onnx");
  if (!loaded) GTEST_SKIP() << "the wheel onnx is not in .venv";
  expect_right_outputs(*loaded, random_cuts(*loaded->problem.graph, 3, 2, 1));
}

TEST(OpenVino, LanesThatAreCopiesShareSegmentsAndReturnTheRightOutputs) {
  auto loaded = load("light_squeezenet.onnx");
  if (!loaded) GTEST_SKIP() << "the wheel onnx is not in .venv";
  expect_right_outputs(*loaded, random_cuts(*loaded->problem.graph, 2, 1, 1));
}

TEST(OpenVino, ACoreThatIsNotHereIsRefusedByName) {
  auto loaded = load("light_squeezenet.onnx");
  if (!loaded) GTEST_SKIP() << "the wheel onnx is not in .venv";
  ClusterBuilder builder("c");
  Device device;
  device.name = "far";
  device.kind = DeviceKind::kCpu;
  device.device_class = "cpu";
  device.host = builder.add_host({.name = "h", .memory_bytes = 0});
  device.backend = "openvino";
  device.cores = {1000};
  builder.add_device(device);
  loaded->problem.cluster = builder.build().value();
  auto costs = std::make_shared<CostTable>(loaded->problem.graph->num_ops(), 1);
  for (size_t op = 0; op < loaded->problem.graph->num_ops(); ++op)
    costs->set(OpId(op), DeviceId(0), {.us = 1, .origin = Origin::kGiven, .rel_spread = 0});
  loaded->problem.costs = costs;
  const Plan plan = build_plan(loaded->problem, random_cuts(*loaded->problem.graph, 1, 1, 0)).value();
  const auto executor = Executor::create(loaded->problem, plan, loaded->model);
  ASSERT_FALSE(executor.ok());
  EXPECT_NE(executor.error().to_string().find("device 'far' needs core 1000"), std::string::npos)
      << executor.error().to_string();
}

TEST(OpenVino, ProfilingTakesOnlyWhatIsMissing) {
  const auto loaded = load("light_squeezenet.onnx");
  if (!loaded) GTEST_SKIP() << "the wheel onnx is not in .venv";
  const auto folder = std::filesystem::temp_directory_path() / ("heddle-profile-" + std::to_string(getpid()));
  auto store = ProfileStore::open((folder / "p.sqlite").string(), "test");
  ASSERT_TRUE(store.ok()) << store.error().to_string();
  const auto measurer = make_segment_measurer(loaded->model, {.min_s = 0.01, .max_s = 0.02, .min_runs = 3});
  const Graph& graph = *loaded->problem.graph;
  const Cluster& cluster = *loaded->problem.cluster;
  auto requests = profile_requests(graph, cluster, *measurer);
  ASSERT_GT(requests.size(), 4U);
  requests.resize(4);
  const SignatureFn signature = [&](std::span<const OpId> ops) { return loaded->model->signature(ops); };
  const auto first = profile(graph, cluster, requests, signature, *measurer, **store);
  ASSERT_TRUE(first.ok()) << first.error().to_string();
  EXPECT_TRUE(first->complete);
  EXPECT_EQ(first->failed, 0) << first->first_failure;
  EXPECT_GT(first->measured, 0);
  const auto second = profile(graph, cluster, requests, signature, *measurer, **store);
  EXPECT_EQ(second->measured, 0);
  EXPECT_EQ(second->present, 4);
  auto records = (*store)->all().value();
  ASSERT_FALSE(records.empty());
  auto& disturbed = records.front();
  disturbed.median_us = 1e9;
  disturbed.rel_spread = 100;
  disturbed.taken_at = "2026-01-02T03:04:05Z";
  ASSERT_TRUE((*store)->put(disturbed).ok());
  const auto repeated = profile(graph, cluster, requests, signature, *measurer, **store);
  EXPECT_EQ(repeated->measured, 1) << "what other work disturbed is measured again";
  EXPECT_LT((*store)->find(disturbed.key).value()->median_us, 1e9);
  const auto stopped = profile(graph, cluster, requests, signature, *measurer, **store,
                               {.deadline = Deadline::after_seconds(0), .again = true});
  ASSERT_TRUE(stopped.ok());
  EXPECT_FALSE(stopped->complete);
  store->reset();
  std::filesystem::remove_all(folder);
}

TEST(DevicePart, PartsAreApartAndTogetherTheWholeDevice) {
  Device device;
  device.cores = {7, 3, 5, 1, 9};
  for (int of = 1; of <= 5; ++of) {
    std::vector<int> all;
    for (int i = 0; i < of; ++i) {
      const auto part = device_part(device, i, of).cores;
      EXPECT_GE(part.size(), static_cast<size_t>(5 / of));
      all.insert(all.end(), part.begin(), part.end());
    }
    EXPECT_EQ(all, (std::vector<int>{1, 3, 5, 7, 9})) << of;
  }
  device.cores.clear();
  EXPECT_TRUE(device_part(device, 1, 2).cores.empty());
}

TEST(DevicePart, AnAcceleratorIsDividedByNameAndMemory) {
  Device device{.name = "gpu", .kind = DeviceKind::kGpu};
  device.backend = "torch";
  device.backend_device = "cuda:0/2-4/4";
  device.memory_bytes = 1000;
  EXPECT_EQ(most_shares(device), 16);
  const Device half = device_part(device, 1, 2);
  EXPECT_EQ(half.backend_device, "cuda:0/6-8/8");
  EXPECT_EQ(half.memory_bytes, 500);
  EXPECT_EQ(device_part(device, 0, 1).backend_device, "cuda:0/2-4/4");
  EXPECT_EQ(device_part(device, 0, 17).backend_device, "cuda:0/2-4/4");
  device.backend = "openvino";
  device.backend_device = "GPU.0";
  EXPECT_EQ(most_shares(device), 1);
  EXPECT_EQ(device_part(device, 1, 2).backend_device, "GPU.0");
}

TEST(ProfileKey, ConditionsOfAMeasurementAreInItsKey) {
  Device device;
  device.target = "torch:cuda:0";
  EXPECT_EQ(profile_key(7, device, 2).target, device.target);
  EXPECT_EQ(profile_key(7, device, 2).share, 1);
  EXPECT_EQ(profile_key(7, device, 2, {.share = 4}).share, .25);
  EXPECT_EQ(profile_key(7, device, 2, {.host_access = true}).target, host_access_target(device.target));
}

TEST(OpenVino, SharesAreMeasuredWithAllOfThemBusyAndKeptApartInTheStore) {
  const auto loaded = load("light_squeezenet.onnx");
  if (!loaded) GTEST_SKIP() << "the wheel onnx is not in .venv";
  const Cluster& cluster = *loaded->problem.cluster;
  const MeasureOptions brief{.min_s = 0.01, .max_s = 0.02, .min_runs = 3};
  const auto half = make_segment_measurer(loaded->model, brief, {.share = 2});
  EXPECT_FALSE(half->supports(cluster.device(DeviceId(0))));  // one core is not split
  if (allowed_cores().size() < 2) GTEST_SKIP() << "this machine has one core";
  ASSERT_TRUE(half->supports(cluster.device(DeviceId(2))));
  EXPECT_FALSE(
      make_segment_measurer(loaded->model, brief, {.share = 3})->supports(cluster.device(DeviceId(2))));

  const auto folder = std::filesystem::temp_directory_path() / ("heddle-shares-" + std::to_string(getpid()));
  auto store = ProfileStore::open((folder / "p.sqlite").string(), "test");
  ASSERT_TRUE(store.ok()) << store.error().to_string();
  const SignatureFn signature = [&](std::span<const OpId> ops) { return loaded->model->signature(ops); };
  const std::vector<OpId> ops = {OpId(0), OpId(1)};
  const std::vector<ProfileRequest> requests = {{ops, DeviceId(2)}};
  const auto measured = [&](SegmentMeasurer& measurer) {
    return profile(*loaded->problem.graph, cluster, requests, signature, measurer, **store);
  };
  const auto whole = make_segment_measurer(loaded->model, brief);
  for (const int round : {1, 2}) {
    EXPECT_EQ(measured(*whole)->measured, round == 1);
    EXPECT_EQ(measured(*half)->measured, round == 1);
  }
  const auto records = (*store)->find_segment(signature(ops), cluster.device(DeviceId(2)).target);
  ASSERT_TRUE(records.ok());
  ASSERT_EQ(records->size(), 2u);
  EXPECT_EQ((*records)[0].key.share, .5);
  EXPECT_EQ((*records)[1].key.share, 1);
  for (const auto& r : *records) {
    EXPECT_GT(r.median_us, 0);
    EXPECT_GE(r.runs, 3);
  }
  store->reset();
  std::filesystem::remove_all(folder);
}

// The problem's own costs are invented (10 us per op), so the prediction must come from this machine.
TEST(OpenVino, RecheckPredictsFromSegmentsTimedInTheSameRound) {
  auto loaded = load("light_squeezenet.onnx");
  if (!loaded) GTEST_SKIP() << "the wheel onnx is not in .venv";
  for (const auto objective : {Objective::kLatency, Objective::kThroughput}) {
    loaded->problem.objective = objective;
    const Plan plan = build_plan(loaded->problem, random_cuts(*loaded->problem.graph, 3, 5)).value();
    const auto timeline = evaluate(loaded->problem, plan);
    ASSERT_TRUE(timeline.ok());
    const auto recheck =
        recheck_prediction(loaded->problem, plan, loaded->model, {.rounds = 1, .round_s = 0.02});
    ASSERT_TRUE(recheck.ok()) << recheck.error().to_string();
    EXPECT_EQ(recheck->rounds, 1);
    EXPECT_GT(recheck->predicted_us, 0);
    EXPECT_NEAR(recheck->error, recheck->measured_us / recheck->predicted_us - 1, 1e-12);
    EXPECT_NEAR(recheck->drift, recheck->predicted_us / objective_us(loaded->problem, *timeline) - 1, 1e-12);
  }
  EXPECT_EQ(recheck_prediction(loaded->problem, {}, nullptr).error().code(), Code::kInvalidInput);
}

TEST(OpenVino, AColdStartOfTheWholeModelIsTimedInParts) {
  const auto path = wheel_model("light_squeezenet.onnx");
  if (path.empty()) GTEST_SKIP() << "the wheel onnx is not in .venv";
  Problem problem = load("light_squeezenet.onnx")->problem;
  EXPECT_EQ(openvino_cold_start(problem, {}, "", Engine::kOpenVino).error().code(), Code::kInvalidInput);
  problem.model = ModelReference{.path = path};
  for (const Engine engine : {Engine::kOpenVino, Engine::kOpenVinoF32}) {
    const auto cold = openvino_cold_start(problem, {}, "", engine);
    ASSERT_TRUE(cold.ok()) << cold.error().to_string();
    EXPECT_GT(cold->read_us, 0);
    EXPECT_GT(cold->compile_us, 0);
    EXPECT_GT(cold->run_us, 0);
    EXPECT_GT(cold->cpu_s, 0);
    EXPECT_NEAR(cold->first_output_us, cold->read_us + cold->compile_us + cold->run_us,
                1e-6 * cold->first_output_us);
  }
  problem.model->values["data_0"] = {1};
  EXPECT_EQ(openvino_cold_start(problem, {}, "", Engine::kOpenVino).error().code(), Code::kUnsupported);
  problem.model = ModelReference{.path = path + ".gone"};
  EXPECT_FALSE(openvino_cold_start(problem, {}, "", Engine::kOpenVino).ok());
}

TEST(OpenVino, OtherDevicesAreNamedAsDiscoveryTakesThem) {
  for (const auto& name : openvino::other_devices()) EXPECT_FALSE(name.starts_with("CPU")) << name;
}

// Few runs before a stop would be stored as a calm measurement.
TEST(SegmentProbe, AStoppedMeasurementIsNone) {
  auto loaded = load("light_shufflenet.onnx");
  if (!loaded) GTEST_SKIP() << "the wheel onnx is not in .venv";
  const std::vector<OpId> ops{OpId(0)};
  std::vector<std::unique_ptr<SegmentProbe>> probes;
  probes.push_back(
      SegmentProbe::make(loaded->model, ops, loaded->problem.cluster->device(DeviceId(0))).value());
  constexpr int kNever = 2'000'000'000;
  const auto alone =
      probes[0]->sample({.min_s = 0, .max_s = 1e6, .min_runs = kNever}, Deadline::after_seconds(.05));
  EXPECT_EQ(alone.error().code(), Code::kCancelled);
  EXPECT_EQ(time_at_once(probes, 0, kNever, Deadline::after_seconds(.05)).error().code(), Code::kCancelled);
  EXPECT_EQ(time_at_once(probes, 0, 5, {}).value().runs, 5);
}

// ONNX Runtime refuses the index 3 of a table with two rows, for which OpenVINO gives zeros.
TEST(Engines, OneThatFailsAtItsFirstRequestIsARowWithTheReason) {
  namespace ow = onnx_writer;
  TestFolder folder;
  const auto path =
      folder.write("gather.onnx", ow::model({{ow::node("Gather", {"table", "at"}, {"y"}, "gather")},
                                             {ow::value("at", {64}, ow::kInt64)},
                                             {ow::value("y", {64, 1})},
                                             {ow::float_tensor("table", {2, 1}, {1, 2})}}));
  Loaded loaded{Model::load(path).value(), {}};
  loaded.problem.graph = loaded.model->graph();
  loaded.problem.cluster = core_sets();
  auto costs = std::make_shared<CostTable>(loaded.problem.graph->num_ops(), 3);
  for (size_t op = 0; op < loaded.problem.graph->num_ops(); ++op)
    for (size_t d = 0; d < 3; ++d) costs->set(OpId(op), DeviceId(d), {1, Origin::kGiven});
  loaded.problem.costs = costs;
  const Plan plan = build_plan(loaded.problem, random_cuts(*loaded.problem.graph, 1, 1, 1)).value();
  const Engine engines[] = {Engine::kOnnxRuntime, Engine::kOpenVinoF32};
  const auto result =
      compare_with_engines(loaded.problem, plan, loaded.model, engines, {.rounds = 3, .round_s = 0.001});
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_NE(result->engines[0].absent, "");
  EXPECT_EQ(result->engines[1].absent, "");
  EXPECT_GT(result->engines[1].us, 0);
}

TEST(Engines, RunTheModelAloneAndAreTimedInTurnsWithThePlan) {
  auto loaded = load("light_shufflenet.onnx");
  if (!loaded) GTEST_SKIP() << "the wheel onnx is not in .venv";
  for (const Objective objective : {Objective::kLatency, Objective::kThroughput}) {
    loaded->problem.objective = objective;
    const Plan plan = build_plan(loaded->problem, random_cuts(*loaded->problem.graph, 1, 1, 2)).value();
    const Engine engines[] = {Engine::kOnnxRuntime, Engine::kOpenVinoF32, Engine::kOpenVino};
    const auto result =
        compare_with_engines(loaded->problem, plan, loaded->model, engines, {.rounds = 3, .round_s = 0.02});
    ASSERT_TRUE(result.ok()) << result.error().to_string();
    EXPECT_EQ(result->rounds, 3);
    EXPECT_GT(result->ours_us, 0);
    ASSERT_EQ(result->engines.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      const EngineComparison& e = result->engines[i];
      EXPECT_EQ(e.engine, engines[i]);
      EXPECT_EQ(e.absent, "");
      EXPECT_GT(e.us, 0);
      EXPECT_GT(e.ratio, 0);
      EXPECT_LE(e.ratio_low, e.ratio_high);
      EXPECT_GE(e.requests, 1);
    }
    EXPECT_LT(result->engines[0].error.largest(), 1e-3);
    EXPECT_GT(result->engines[0].error.cosine(), 0.999);
    EXPECT_EQ(result->engines[1].error.largest(), 0);
  }
}

}  // namespace
}  // namespace heddle
