// Plan files made for a small model, served, and answers held against the unsplit model's.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "heddle/cluster/discover.h"
#include "heddle/cost/cost.h"
#include "heddle/graph/coarsen.h"
#include "heddle/graph/model.h"
#include "heddle/plan/plan_file.h"
#include "heddle/planners/planner.h"
#include "heddle/runtime/rank_group.h"
#include "heddle/runtime/run.h"
#include "heddle/serve/fleet_server.h"
#include "heddle/serve/local_server.h"
#include "heddle/serve/opened_plan.h"
#include "model_files.h"
#include "onnx_writer.h"
#include "plane/fault.h"
#include "serve_support.h"
#include "skip_model.h"

namespace heddle {

// Two branches that meet twice; rows do not depend on each other. y and z are outputs.
inline std::string branched_model(float k = 2) {
  return onnx_writer::model(
      {{onnx_writer::node("Add", {"x", "w"}, {"y"}, "add"), onnx_writer::node("Relu", {"y"}, {"r"}, "relu"),
        onnx_writer::node("Mul", {"r", "k"}, {"m"}, "mul"), onnx_writer::node("Sigmoid", {"y"}, {"s"}, "sig"),
        onnx_writer::node("Add", {"m", "s"}, {"t"}, "meet"),
        onnx_writer::node("Mul", {"s", "k"}, {"u"}, "mul2"),
        onnx_writer::node("Add", {"t", "u"}, {"z"}, "end")},
       {onnx_writer::value("x", {-1, 3})},
       {onnx_writer::value("y", {-1, 3}), onnx_writer::value("z", {-1, 3})},
       {onnx_writer::float_tensor("w", {3}, {1, 2, 3}), onnx_writer::float_tensor("k", {3}, {k, 3, 4})}});
}

// The model's ops in `units` pieces of consecutive ops, each fast on one of the devices: what is planned is
// spread over all of them. `alike`: all are as fast.
struct Wanted {
  std::string planner = "heft";
  Objective objective = Objective::kLatency;
  int stages = 1;
  bool alike = false;
  int64_t batch = 1;
  size_t units = 100;
};

class ServedPlans : public testing::Test {
 protected:
  void SetUp() override {
    singles_ = single_cores();
    if (singles_.size() < 2) GTEST_SKIP() << "this machine has no two cores";
    singles_.resize(2);
    model_path_ = folder_.write("net.onnx", branched_model());
  }
  void TearDown() override {
    clear_fault();
    service_.stop(5);
    local_.reset();
  }

  Problem problem_on(std::shared_ptr<const Cluster> cluster, std::vector<DeviceId> devices,
                     const Wanted& wanted) {
    Problem p;
    auto model = Model::load(model_path_, {.batch = wanted.batch});
    EXPECT_TRUE(model.ok()) << model.error().to_string();
    models_.push_back(model_ = *model);
    std::vector<int> group;
    for (size_t op = 0; op < model_->graph()->num_ops(); ++op)
      group.push_back(model_->graph()->topological_position(OpId(op)) * static_cast<int>(wanted.units) /
                      static_cast<int>(std::max(wanted.units, model_->graph()->num_ops())));
    auto units = coarsen(*model_->graph(), group);
    EXPECT_TRUE(units.ok()) << units.error().to_string();
    p.graph = *units;
    p.cluster = std::move(cluster);
    p.devices = std::move(devices);
    p.objective = wanted.objective;
    p.execution.stage_width = wanted.stages;
    p.model = ModelReference{.path = model_path_, .file_hash = model_->file_hash(), .batch = wanted.batch};
    auto costs = std::make_shared<CostTable>(p.graph->num_ops(), p.cluster->num_devices());
    for (size_t op = 0; op < p.graph->num_ops(); ++op)
      for (size_t d = 0; d < p.cluster->num_devices(); ++d) {
        const bool fast = wanted.alike || op % p.devices.size() == d % p.devices.size();
        costs->set(OpId(op), DeviceId(d), {.us = fast ? 500.0 : 50'000.0, .origin = Origin::kGiven});
      }
    for (size_t d = 0; d < p.cluster->num_devices(); ++d)
      costs->set_stage_model(DeviceId(d), kSimulatedStages);
    p.costs = std::move(costs);
    return p;
  }
  // On two core sets of this machine.
  Problem problem_here(const Wanted& wanted) {
    auto cluster = discover_local();
    EXPECT_TRUE(cluster.ok());
    std::vector<DeviceId> devices;
    for (const auto& name : singles_) devices.push_back((*cluster)->find_device(name));
    std::sort(devices.begin(), devices.end());
    return problem_on(*cluster, devices, wanted);
  }
  std::string write_plan(const Problem& problem, const Wanted& wanted, const std::string& name = "net.json") {
    PlannerOptions options;
    options.deadline = Deadline::after_seconds(.5);
    const auto result = run_planner(*find_planner(wanted.planner), problem, options);
    EXPECT_TRUE(result.ok()) << wanted.planner << ": " << result.error().to_string();
    PlanFile file;
    file.problem = problem;
    file.plan = result->plan;
    file.predicted = result->timeline;
    file.bound = result->bound;
    file.planner = result->planner;
    plan_ = file.plan;
    EXPECT_TRUE(write_plan_file(folder_.path(name), file).ok());
    return folder_.path(name);
  }
  Status serve(const std::string& path, int in_flight = 0, const OpenedPlan* on_ranks = nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(auto sources,
                            find_models(std::vector<std::string>{path}, ModelSettings{.slo_us = 60e6}));
    LocalServerOptions options;
    options.measure_s = .001;
    options.in_flight = in_flight;
    options.on_ranks = on_ranks;
    HEDDLE_ASSIGN_OR_RETURN(local_, LocalServer::create(service_, std::move(sources), options));
    return {};
  }
  std::string refusal(const std::string& path) {
    const auto status = serve(path);
    EXPECT_FALSE(status.ok());
    return status.ok() ? "" : status.error().to_string();
  }

  Result<InferResponse> infer(const TensorValue& x, int64_t priority = 0) {
    InferRequest request;
    request.model = "net";
    request.priority = priority;
    request.inputs.push_back({model_->graph()->tensor(model_->graph()->inputs().front()).name, x.dtype,
                              x.shape, x.data.get(), x.bytes, nullptr});
    std::promise<Result<InferResponse>> promise;
    auto future = promise.get_future();
    service_.infer(std::move(request),
                   [&promise](Result<InferResponse> answer) { promise.set_value(std::move(answer)); });
    return future.get();
  }
  TensorValue random_input(uint64_t seed) const {
    return std::move(make_inputs(*model_->graph(), {.seed = seed}).value().front());
  }
  // By the unsplit model, which is compiled anew for each.
  const std::vector<TensorValue>& expected_outputs(uint64_t seed) {
    const std::lock_guard lock(mutex_);
    auto& known = expected_[{model_.get(), seed}];
    if (known.empty()) {
      std::vector<TensorValue> inputs;
      inputs.push_back(random_input(seed));
      auto outputs = reference_outputs(*model_, inputs);
      EXPECT_TRUE(outputs.ok());
      if (outputs.ok()) known = std::move(*outputs);
    }
    return known;
  }
  // The answer to a whole batch is what the unsplit model gives.
  void expect_right(uint64_t number) {
    const uint64_t seed = number % 5;
    const auto x = random_input(seed);
    const auto answer = infer(x);
    ASSERT_TRUE(answer.ok()) << answer.error().to_string();
    const auto& expected = expected_outputs(seed);
    const auto& graph = *model_->graph();
    ASSERT_EQ(answer->outputs.size(), graph.outputs().size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto& got = answer->outputs[i];
      EXPECT_EQ(got.name, graph.tensor(graph.outputs()[i]).name);
      ASSERT_EQ(got.bytes, expected[i].bytes);
      const TensorView view{got.dtype, got.shape, const_cast<std::byte*>(got.data), got.bytes};
      auto whole = expected[i].view();
      whole.shape = got.shape;
      EXPECT_TRUE(compare_tensors(view, whole, 1e-4, 1e-5).equal) << got.name << ", seed " << seed;
    }
  }
  void expect_right_from_many(int clients, int requests) {
    std::vector<std::thread> threads;
    for (int c = 0; c < clients; ++c)
      threads.emplace_back([this, c, requests] {
        for (int i = 0; i < requests; ++i) expect_right(static_cast<uint64_t>(1000 * c + i + 1));
      });
    for (auto& t : threads) t.join();
  }
  size_t devices_used() const {
    std::set<DeviceId> used;
    for (const auto& s : plan_.segments) used.insert(s.device);
    return used.size();
  }

  TestFolder folder_;
  std::string model_path_;
  std::vector<std::string> singles_;
  std::shared_ptr<const Model> model_;
  std::vector<std::shared_ptr<const Model>> models_;  // kept, so that addresses name them
  Plan plan_;
  std::mutex mutex_;
  std::map<std::pair<const Model*, uint64_t>, std::vector<TensorValue>> expected_;  // guarded by mutex_
  InferService service_;
  std::unique_ptr<LocalServer> local_;
};

}  // namespace heddle
