// Plan files of every family of planners, served: each answer is the unsplit model's, whatever runs at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "heddle/cluster/discover.h"
#include "heddle/cost/cost.h"
#include "heddle/graph/coarsen.h"
#include "heddle/graph/model.h"
#include "heddle/plan/plan_file.h"
#include "heddle/planners/planner.h"
#include "heddle/runtime/run.h"
#include "heddle/serve/fleet_server.h"
#include "heddle/serve/local_server.h"
#include "model_files.h"
#include "onnx_writer.h"
#include "plane/fault.h"
#include "serve_support.h"
#include "skip_model.h"

namespace heddle {
namespace {

using testing::HasSubstr;
namespace ow = onnx_writer;

// Two branches that meet twice; rows do not depend on each other. y and z are outputs.
std::string branched_model(float k = 2) {
  return ow::model({{ow::node("Add", {"x", "w"}, {"y"}, "add"), ow::node("Relu", {"y"}, {"r"}, "relu"),
                     ow::node("Mul", {"r", "k"}, {"m"}, "mul"), ow::node("Sigmoid", {"y"}, {"s"}, "sig"),
                     ow::node("Add", {"m", "s"}, {"t"}, "meet"), ow::node("Mul", {"s", "k"}, {"u"}, "mul2"),
                     ow::node("Add", {"t", "u"}, {"z"}, "end")},
                    {ow::value("x", {-1, 3})},
                    {ow::value("y", {-1, 3}), ow::value("z", {-1, 3})},
                    {ow::float_tensor("w", {3}, {1, 2, 3}), ow::float_tensor("k", {3}, {k, 3, 4})}});
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
  Status serve(const std::string& path, int in_flight = 0) {
    HEDDLE_ASSIGN_OR_RETURN(auto sources,
                            find_models(std::vector<std::string>{path}, ModelSettings{.slo_us = 60e6}));
    LocalServerOptions options;
    options.measure_s = .001;
    options.in_flight = in_flight;
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

// One plan of each paper's planners, on two cores of this machine.
TEST_F(ServedPlans, EveryFamilysPlanAnswersAsTheUnsplitModel) {
  const std::vector<Wanted> families = {
      {.planner = "heft"},
      {.planner = "milp-split"},
      {.planner = "diviml-milp"},
      {.planner = "diviml-throughput", .objective = Objective::kThroughput},
      {.planner = "moirai"},
      {.planner = "hios-lp", .stages = 2},
      {.planner = "hios-mr", .stages = 2},
      {.planner = "sortinghat", .objective = Objective::kColdLatency},
      {.planner = "cold-search", .objective = Objective::kColdLatency},
      {.planner = "pipeline", .objective = Objective::kThroughput},
      {.planner = "replicate", .objective = Objective::kThroughput, .alike = true},
  };
  int in_time = 0;
  for (const auto& wanted : families) {
    SCOPED_TRACE(wanted.planner);
    const auto status = serve(write_plan(problem_here(wanted), wanted));
    ASSERT_TRUE(status.ok()) << status.error().to_string();
    expect_right_from_many(3, 10);
    const auto json = service_.status();
    EXPECT_EQ(json["planner"], wanted.planner);
    EXPECT_THAT(json["models"][0]["note"].get<std::string>(), HasSubstr("differ from the unsplit model's"));
    EXPECT_EQ(json["models"][0]["requests"]["in_time"], in_time + 30) << json["models"][0]["requests"].dump();
    for (const auto& [name, statistics] : service_.all_statistics())
      EXPECT_EQ(statistics.requests[static_cast<size_t>(Outcome::kInvalid)], 0U);
    in_time += 30;
    local_.reset();
  }
}

TEST_F(ServedPlans, LanesArePoolsOfTheirOwnAndRequestsWaitForAFreeOne) {
  const Wanted wanted{.planner = "replicate", .objective = Objective::kThroughput, .alike = true};
  ASSERT_TRUE(serve(write_plan(problem_here(wanted), wanted)).ok());
  ASSERT_EQ(plan_.lane_shares.size(), 2U);
  auto pools = service_.status()["pools"];
  ASSERT_EQ(pools.size(), 2U);
  EXPECT_EQ(pools[0]["class"], singles_[0]);
  EXPECT_EQ(pools[1]["class"], singles_[1]);
  expect_right_from_many(4, 20);  // the first time, computing the expected outputs keeps the clients apart
  // Runs take a while, so that four clients keep both lanes busy.
  set_fault({FaultPoint::kRun, FaultAction::kDelay, 1, 2000});
  expect_right_from_many(4, 20);
  pools = service_.status()["pools"];
  EXPECT_EQ(pools[0]["runs"].get<int>() + pools[1]["runs"].get<int>(), 160);
  for (const auto& pool : pools) EXPECT_GT(pool["runs"], 0);
}

TEST_F(ServedPlans, APipelineHasSeveralRequestsInFlight) {
  const Wanted wanted{.planner = "pipeline", .objective = Objective::kThroughput};
  auto problem = problem_here(wanted);
  const auto path = write_plan(problem, wanted);
  ASSERT_EQ(devices_used(), 2U);
  ASSERT_TRUE(serve(path).ok());
  EXPECT_EQ(service_.status()["pools"][0]["devices"], 3);  // one more than devices
  expect_right_from_many(6, 20);
  local_.reset();
  ASSERT_TRUE(serve(path, 5).ok());
  EXPECT_EQ(service_.status()["pools"][0]["devices"], 5);
  expect_right_from_many(6, 10);
}

TEST_F(ServedPlans, RowsOfSeveralRequestsShareThePlansBatch) {
  const Wanted wanted{.planner = "heft", .batch = 4};
  ASSERT_TRUE(serve(write_plan(problem_here(wanted), wanted)).ok());
  const auto served = service_.models().front();
  EXPECT_TRUE(served->batched);
  EXPECT_EQ(served->max_rows, 4);
  EXPECT_EQ(served->inputs.front().row, (Shape{3}));
  expect_right(3);  // four rows
  // One row gives what it gives among others.
  const auto four = random_input(7);
  auto one = make_tensor(four.dtype, {1, 3}).value();
  std::memcpy(one.data.get(), four.data.get(), 12);
  const auto all = infer(four), alone = infer(one);
  ASSERT_TRUE(all.ok() && alone.ok());
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(std::memcmp(all->outputs[i].data, alone->outputs[i].data, 12), 0) << i;
}

// Rows that depend on each other must not be those of different clients: a request has all of them.
TEST_F(ServedPlans, RowsThatDependOnEachOtherAreOneRequest) {
  model_path_ = folder_.write(
      "net.onnx", ow::model({{ow::node("Relu", {"x"}, {"r"}, "relu"),
                              ow::node("Softmax", {"r"}, {"z"}, "mix", {ow::attribute_int("axis", 0)})},
                             {ow::value("x", {-1, 3})},
                             {ow::value("z", {-1, 3})},
                             {}}));
  const Wanted wanted{.planner = "heft", .batch = 4};
  const auto status = serve(write_plan(problem_here(wanted), wanted));
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  const auto served = service_.models().front();
  EXPECT_FALSE(served->batched);
  EXPECT_EQ(served->inputs.front().row, (Shape{4, 3}));
  EXPECT_THAT(served->note, HasSubstr("differs from what it is alone"));
  expect_right(1);
}

TEST_F(ServedPlans, ARealModelsPlansAnswerAsTheUnsplitModel) {
  const auto real = wheel_model("light_squeezenet.onnx");
  if (real.empty()) GTEST_SKIP() << "the wheel onnx is not there";
  model_path_ = folder_.path("net.onnx");
  std::filesystem::copy_file(real, model_path_, std::filesystem::copy_options::overwrite_existing);
  for (const Wanted& wanted :
       {Wanted{.planner = "heft", .units = 5},
        Wanted{.planner = "pipeline", .objective = Objective::kThroughput, .units = 4}}) {
    SCOPED_TRACE(wanted.planner);
    const auto path = write_plan(problem_here(wanted), wanted);
    EXPECT_EQ(devices_used(), 2U);
    const auto status = local_ ? local_->load("net") : serve(path);
    ASSERT_TRUE(status.ok()) << status.error().to_string();
    expect_right_from_many(3, 4);
  }
}

// Nothing is computed: a request takes the plan's time.
TEST_F(ServedPlans, PlansForEmulatedDevicesTakeThePlansTime) {
  ClusterBuilder builder("two-gpus");
  const auto host = builder.add_host({.name = "host"});
  for (const char* name : {"gpu0", "gpu1"}) {
    const auto d = builder.add_device({.name = name, .device_class = name, .host = host});
    builder.add_link({.name = std::string("pcie-") + name,
                      .a = builder.host_node(host),
                      .b = builder.device_node(d),
                      .bytes_per_s = 1e9});
  }
  const auto cluster = builder.build();
  ASSERT_TRUE(cluster.ok()) << cluster.error().to_string();
  for (const Wanted& wanted : {Wanted{.planner = "heft"}, Wanted{.planner = "hios-lp", .stages = 2},
                               Wanted{.planner = "sortinghat", .objective = Objective::kColdLatency},
                               Wanted{.planner = "pipeline", .objective = Objective::kThroughput}}) {
    SCOPED_TRACE(wanted.planner);
    const auto path = write_plan(problem_on(*cluster, {DeviceId(0), DeviceId(1)}, wanted), wanted);
    const auto status = local_ ? local_->load("net") : serve(path);
    ASSERT_TRUE(status.ok()) << status.error().to_string();
    EXPECT_TRUE(service_.models().front()->any_payload);
    const auto file = read_plan_file(path);
    InferRequest request;
    request.model = "net";
    const std::byte nothing{};
    request.inputs.push_back({kPayloadInput, DType::kU8, {1}, &nothing, 1, nullptr});
    std::promise<Result<InferResponse>> promise;
    auto future = promise.get_future();
    service_.infer(std::move(request), [&](Result<InferResponse> a) { promise.set_value(std::move(a)); });
    const auto answer = future.get();
    ASSERT_TRUE(answer.ok()) << answer.error().to_string();
    // One percent of room: the devices and the request read their clocks at different moments.
    EXPECT_GE(answer->timing.compute, file->predicted.makespan_us * .99);
  }
}

TEST_F(ServedPlans, WhatWaitsIsServedByPriority) {
  const Wanted wanted;
  ASSERT_TRUE(serve(write_plan(problem_here(wanted), wanted)).ok());
  // The first run holds the plan until all others wait.
  set_fault({FaultPoint::kRun, FaultAction::kDelay, 1, 300'000});
  std::mutex mutex;
  std::vector<int64_t> order;
  const auto x = random_input(1);
  std::vector<std::promise<void>> ended(4);
  const auto ask = [&](size_t i, int64_t priority) {
    InferRequest request;
    request.model = "net";
    request.priority = priority;
    request.inputs.push_back({"x", x.dtype, x.shape, x.data.get(), x.bytes, nullptr});
    service_.infer(std::move(request), [&, i, priority](const Result<InferResponse>&) {
      {
        const std::lock_guard lock(mutex);
        order.push_back(priority);
      }
      ended[i].set_value();
    });
  };
  ask(0, 1);
  ASSERT_TRUE(eventually([&] { return service_.status()["pools"][0]["running"] == 1; }));
  ask(1, 9);
  ask(2, 5);
  ask(3, 2);
  clear_fault();
  for (auto& e : ended) e.get_future().wait();
  EXPECT_EQ(order, (std::vector<int64_t>{1, 2, 5, 9}));
}

TEST_F(ServedPlans, AFailedRunFailsItsRequestAndTheServerServesOn) {
  const Wanted wanted{.planner = "pipeline", .objective = Objective::kThroughput};
  ASSERT_TRUE(serve(write_plan(problem_here(wanted), wanted)).ok());
  expect_right(1);
  set_fault({FaultPoint::kRan, FaultAction::kFail, 1, 0});
  EXPECT_FALSE(infer(random_input(2)).ok());
  clear_fault();
  expect_right_from_many(3, 5);
}

TEST_F(ServedPlans, AnotherPlanTakesOverWhileRequestsCome) {
  const Wanted first{.planner = "heft"};
  const auto path = write_plan(problem_here(first), first);
  ASSERT_TRUE(serve(path).ok());
  std::atomic<bool> stop{false};
  std::vector<std::thread> clients;
  for (int c = 0; c < 3; ++c)
    clients.emplace_back([&, c] {
      for (uint64_t i = 1; !stop; ++i) expect_right(static_cast<uint64_t>(c) * 1000 + i);
    });
  // The model is loaded again by problem_here(): the same content, so the clients' references hold.
  for (const auto& [planner, objective] :
       {std::pair("pipeline", Objective::kThroughput), std::pair("milp-split", Objective::kLatency)}) {
    const Wanted next{.planner = planner, .objective = objective};
    Problem problem;
    {
      const auto kept = model_;
      problem = read_plan_file(path)->problem;
      problem.objective = objective;
      ASSERT_EQ(model_, kept);
    }
    write_plan(problem, next);
    const auto status = local_->load("net");
    EXPECT_TRUE(status.ok()) << status.error().to_string();
    EXPECT_EQ(service_.status()["planner"], planner);
  }
  stop = true;
  for (auto& t : clients) t.join();
  // A file that cannot be served changes nothing.
  folder_.write("net.json", "{}");
  EXPECT_FALSE(local_->load("net").ok());
  EXPECT_EQ(service_.status()["planner"], "milp-split");
  expect_right(5);
}

TEST_F(ServedPlans, StoppingAnswersWhatIsUnderWay) {
  const Wanted wanted{.planner = "pipeline", .objective = Objective::kThroughput};
  ASSERT_TRUE(serve(write_plan(problem_here(wanted), wanted)).ok());
  set_fault({FaultPoint::kRun, FaultAction::kDelay, 1, 50'000});
  std::thread client([this] { expect_right(1); });
  ASSERT_TRUE(eventually([&] { return service_.status()["pools"][0]["running"] == 1; }));
  service_.stop(20);
  client.join();
  EXPECT_FALSE(infer(random_input(2)).ok());
}

TEST_F(ServedPlans, WhatCannotBeServedIsRefusedAtTheStart) {
  const Wanted wanted;
  const auto problem = problem_here(wanted);
  const auto path = write_plan(problem, wanted);
  EXPECT_THAT(refusal(folder_.write("broken.json", R"({"format": "heddle-plan"})")),
              HasSubstr("broken.json"));
  const auto both = find_models(std::vector<std::string>{path, model_path_}, {});
  ASSERT_FALSE(both.ok());
  EXPECT_THAT(both.error().to_string(), HasSubstr("serve it alone"));

  folder_.write("net.onnx", branched_model(7));
  EXPECT_THAT(refusal(path), HasSubstr("plan it again"));
  std::filesystem::remove(model_path_);
  EXPECT_THAT(refusal(path), HasSubstr("net.onnx"));
  folder_.write("net.onnx", branched_model());

  // Devices that are not here.
  auto file = read_plan_file(path);
  ASSERT_TRUE(file.ok());
  const auto elsewhere = [&](int core, const char* second_host) {
    ClusterBuilder builder("elsewhere");
    const auto a = builder.add_host({.name = "a"}), b = builder.add_host({.name = second_host});
    for (const auto& d : problem.cluster->devices()) {
      auto moved = d;
      moved.host = moved.name == singles_[1] && core == 0 ? b : a;
      if (moved.name == singles_[0] && core > 0) moved.cores = {core};
      builder.add_device(moved);
    }
    const auto net = builder.add_switch("net");
    for (const auto h : {a, b})
      builder.add_link(
          {.name = "net" + std::to_string(h.value), .a = builder.host_node(h), .b = net, .bytes_per_s = 1e9});
    auto cluster = builder.build();
    EXPECT_TRUE(cluster.ok()) << cluster.error().to_string();
    auto moved = problem;
    moved.cluster = *cluster;
    return write_plan(moved, wanted, "elsewhere.json");
  };
  EXPECT_THAT(refusal(elsewhere(900, "b")), HasSubstr("core 900"));
  EXPECT_THAT(refusal(elsewhere(0, "b")), HasSubstr("2 hosts"));
}

}  // namespace
}  // namespace heddle
