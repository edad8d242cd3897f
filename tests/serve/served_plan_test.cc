// Plan files of every family of planners, served: each answer is the unsplit model's, whatever runs at once.
#include <gmock/gmock.h>

#include "served_plans.h"

namespace heddle {
namespace {

using testing::HasSubstr;
namespace ow = onnx_writer;

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

TEST_F(ServedPlans, AnOutputHasTheSizeThatTheDataGiveIt) {
  model_path_ = folder_.write(
      "net.onnx", ow::model({{ow::node("Relu", {"x"}, {"r"}, "relu"), ow::node("Abs", {"r"}, {"a"}, "abs"),
                              ow::node("NonZero", {"a"}, {"i"}, "set")},
                             {ow::value("x", {2, 3})},
                             {ow::value("i", {2, -1}, ow::kInt64), ow::value("r", {2, 3})},
                             {}}));
  const auto status = serve(write_plan(problem_here({}), {}));
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  const auto served = service_.models().front();
  EXPECT_EQ(served->outputs[0].shown(), (Shape{2, -1}));
  auto x = make_tensor(DType::kF32, {2, 3}).value();
  auto* values = reinterpret_cast<float*>(x.data.get());
  for (const auto& [set, at] : std::vector<std::pair<std::vector<int>, std::vector<int64_t>>>{
           {{1, 3, 5}, {0, 1, 1, 1, 0, 2}}, {{2}, {0, 2}}, {{}, {}}}) {
    std::fill_n(values, 6, -1.0F);
    for (const int i : set) values[i] = 1;
    const auto answer = infer(x);
    ASSERT_TRUE(answer.ok()) << answer.error().to_string();
    ASSERT_EQ(answer->outputs.size(), 2U);
    EXPECT_EQ(answer->outputs[0].shape, (Shape{2, static_cast<int64_t>(set.size())}));
    EXPECT_EQ(answer->outputs[0].bytes, static_cast<int64_t>(at.size() * sizeof(int64_t)));
    const auto* const found = reinterpret_cast<const int64_t*>(answer->outputs[0].data);
    EXPECT_TRUE(std::equal(at.begin(), at.end(), found));
  }
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
