// The store that auto's workers share, and auto on several threads.
#include "core/plan_store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "heddle/planners/planner.h"
#include "planners_support.h"

namespace heddle {
namespace {

using namespace test;

Problem chain_problem(int ops, const std::vector<double>& times) {
  std::vector<Wire> wires;
  for (int v = 1; v < ops; ++v) wires.push_back({v - 1, v, 1});
  return make_problem(make_graph(ops, wires), make_mesh(static_cast<int>(times.size())),
                      std::vector<std::vector<double>>(static_cast<size_t>(ops), times), Objective::kLatency);
}

Assignment all_on(const Problem& problem, int device) {
  Assignment a;
  a.device.assign(problem.graph->num_ops(), DeviceId(device));
  a.order.assign(problem.graph->topological_order().begin(), problem.graph->topological_order().end());
  return a;
}

TEST(PlanStore, KeepsTheBestPlanAndTheBestBound) {
  const auto problem = chain_problem(3, {4, 2, 3});
  const CancelToken closed;
  PlanStore store(problem, closed);
  EXPECT_TRUE(store.empty());
  EXPECT_FALSE(store.best() != nullptr);
  EXPECT_TRUE(store.offer(all_on(problem, 0), "a"));
  EXPECT_TRUE(store.offer(all_on(problem, 2), "b"));
  EXPECT_FALSE(store.offer(all_on(problem, 0), "c"));
  EXPECT_EQ(store.value_us(), 9);
  EXPECT_EQ(store.winner(), "b");
  store.prove({5, "first"});
  store.prove({4, "worse"});
  EXPECT_EQ(store.bound().us, 5);
  EXPECT_TRUE(store.is_open());
  EXPECT_FALSE(closed.cancelled());
  store.prove({6, "tight"});
  EXPECT_TRUE(store.offer(all_on(problem, 1), "d"));
  EXPECT_FALSE(store.is_open());
  EXPECT_TRUE(closed.cancelled());
  const auto out = store.output(StopReason::kOptimal, {});
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->detail, "d");
  ASSERT_TRUE(out->bound.has_value());
  EXPECT_EQ(out->bound->proof.reason, "tight");
  // Values fall, bounds rise.
  for (size_t i = 1; i < out->trajectory.size(); ++i) {
    EXPECT_LE(out->trajectory[i].value_us, out->trajectory[i - 1].value_us);
    EXPECT_GE(out->trajectory[i].bound_us, out->trajectory[i - 1].bound_us);
    EXPECT_GE(out->trajectory[i].seconds, out->trajectory[i - 1].seconds);
  }
  EXPECT_EQ(out->trajectory.back().value_us, 6);
  EXPECT_EQ(out->trajectory.back().bound_us, 6);
}

TEST(PlanStore, GivesNoPlanWhereNoneWasOffered) {
  const auto problem = chain_problem(2, {1});
  PlanStore store(problem, {});
  EXPECT_EQ(store.output(StopReason::kFinished, {}).error().code(), Code::kInfeasible);
  // It may be for want of time then.
  const auto late = store.output(StopReason::kTimeLimit, Deadline::after_seconds(0));
  EXPECT_EQ(late.error().code(), Code::kInfeasible);
  EXPECT_NE(late.error().message().find("--time-limit"), std::string::npos);
}

TEST(PlanStore, AdvisesNoMoreTimeWhereNoTimeHelps) {
  const auto advice = [](int64_t memory) {
    const auto problem = make_problem(make_graph(2, {{0, 1, 1}}, {60, 60}), make_mesh(2, memory),
                                      {{1, 1}, {1, 1}}, Objective::kLatency);
    const auto late = PlanStore(problem, {}).output(StopReason::kTimeLimit, Deadline::after_seconds(0));
    EXPECT_EQ(late.error().code(), Code::kInfeasible);
    return late.error().message();
  };
  EXPECT_NE(advice(60).find("--time-limit"), std::string::npos);
  EXPECT_EQ(advice(59).find("--time-limit"), std::string::npos);  // 118 bytes for parameters of 120
}

TEST(PlanStore, TakesOffersFromManyThreads) {
  const auto problem = chain_problem(6, {5, 4, 3, 2});
  const CancelToken closed;
  PlanStore store(problem, closed);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        store.offer(all_on(problem, (t + i) % 4), "worker " + std::to_string(t));
        store.prove({static_cast<double>(i % 12), "bound"});
        if (const auto best = store.best_of_one_lane()) {
          EXPECT_EQ(best->segments.size(), 6U);
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(store.value_us(), 12);
  EXPECT_EQ(store.bound().us, 11);
}

Problem random_problem(Random& random, int ops, Objective objective) {
  const auto cluster = make_mixed();
  return make_problem(
      make_graph(ops, random_wires(random, ops, 0.2), std::vector<int64_t>(static_cast<size_t>(ops), 3)),
      cluster, random_times(random, static_cast<size_t>(ops), cluster->num_devices()), objective);
}

// Shows that the best only falls and the bound only rises, from whichever thread it is reported. Cancels
// after so many reports: while workers work, however slow the machine or a sanitizer is.
class MonotoneProgress final : public ProgressSink {
 public:
  explicit MonotoneProgress(int most) : most_(most) {}
  CancelToken token;
  void report(const ProgressUpdate& update) override {
    const std::lock_guard lock(mutex_);
    if (update.what != "auto" || !update.best_us || !update.bound_us) return;
    EXPECT_LE(*update.best_us, best_);
    EXPECT_GE(*update.bound_us, bound_);
    best_ = *update.best_us;
    bound_ = *update.bound_us;
    if (++reports == most_) token.cancel();
  }
  int reports = 0;

 private:
  const int most_;
  std::mutex mutex_;
  double best_ = kImpossible, bound_ = 0;
};

TEST(AutoThreads, PlansEveryObjectiveSideBySide) {
  Random random(7);
  for (const auto objective : {Objective::kLatency, Objective::kColdLatency, Objective::kThroughput}) {
    const auto problem = random_problem(random, 60, objective);
    MonotoneProgress progress(8);
    PlannerOptions options;
    options.threads = 4;
    options.deadline = Deadline::never(progress.token);
    options.progress = &progress;
    const auto result = run_planner(*find_planner("auto"), problem, options);
    ASSERT_TRUE(result.ok()) << result.error().to_string();
    EXPECT_TRUE(result->verified);
    EXPECT_GT(result->bound.us, 0);
    // Never behind the constructive planners.
    for (const char* name : {"single", "greedy", "met"}) {
      const auto other = run_planner(*find_planner(name), problem, {});
      ASSERT_TRUE(other.ok());
      EXPECT_LE(result->value_us, other->value_us * (1 + 1e-9)) << name;
    }
    EXPECT_GT(progress.reports, 0);
  }
}

TEST(AutoThreads, FindsTheOptimumAndStopsThere) {
  Random random(8);
  for (int i = 0; i < 6; ++i) {
    auto problem = make_problem(make_graph(5, random_wires(random, 5, 0.4)), make_mesh(2),
                                random_times(random, 5, 2), Objective::kLatency);
    PlannerOptions options;
    options.threads = 3;
    options.deadline = Deadline::after_seconds(20);
    const auto result = run_planner(*find_planner("auto"), problem, options);
    ASSERT_TRUE(result.ok()) << result.error().to_string();
    const double least = brute_force_us(problem);
    EXPECT_NEAR(result->value_us, least, 1e-9 * least) << "instance " << i;
    EXPECT_LE(result->bound.us, least * (1 + 1e-9)) << "instance " << i;
  }
}

TEST(AutoThreads, EndsWithItsBestWhenCancelled) {
  Random random(9);
  const auto problem = random_problem(random, 300, Objective::kLatency);
  MonotoneProgress progress(1);
  PlannerOptions options;
  options.threads = 2;
  options.deadline = Deadline::never(progress.token);
  options.progress = &progress;
  const auto result = run_planner(*find_planner("auto"), problem, options);
  if (result.ok()) {
    EXPECT_TRUE(result->verified);
    EXPECT_EQ(result->stop, StopReason::kCancelled);
  } else {
    EXPECT_EQ(result.error().code(), Code::kCancelled);
  }
}

}  // namespace
}  // namespace heddle
