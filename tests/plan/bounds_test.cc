#include "heddle/plan/bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "heddle/plan/builder.h"
#include "heddle/plan/checker.h"
#include "heddle/plan/evaluator.h"
#include "plan_support.h"

namespace heddle::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The best makespan over all devices and all orders of runs, transfers and loads, one segment per op: the
// optimum of problems without known segments, since uniting ops only delays what leaves them. (An order on
// each resource is a restriction of some list, and starting each step as early as its list allows is never
// worse.)
class BruteForce {
 public:
  explicit BruteForce(const Problem& problem) : p_(problem) {}

  double best() {
    device_.resize(p_.graph->num_ops());
    assign(0);
    return best_;
  }

 private:
  void assign(size_t v) {
    if (v == device_.size()) return search_orders();
    for (size_t d = 0; d < p_.cluster->num_devices(); ++d) {
      if (!(p_.costs->us(OpId(v), DeviceId(d)) < kInfinity)) continue;
      device_[v] = DeviceId(d);
      assign(v + 1);
    }
  }

  // Every step that this assignment may need, in no order; loads are one per op, whoever comes first brings
  // what is new.
  void search_orders() {
    plan_ = {};
    todo_.clear();
    for (size_t v = 0; v < device_.size(); ++v) {
      plan_.segments.push_back({p_.graph->ops()[v].name, {OpId(v)}, device_[v], 0});
      todo_.push_back({StepKind::kRun, SegmentId(v), TensorId(), device_[v], device_[v], -1});
    }
    for (size_t t = 0; t < p_.graph->num_tensors(); ++t) {
      const Tensor& tensor = p_.graph->tensors()[t];
      if (!tensor.producer.valid()) continue;
      std::vector<DeviceId> to;
      const DeviceId from = device_[tensor.producer.index()];
      for (const OpId reader : tensor.consumers) {
        const DeviceId d = device_[reader.index()];
        if (is_free(p_, from, d) || std::count(to.begin(), to.end(), d)) continue;
        if (p_.cluster->route(from, d) == nullptr) return;
        to.push_back(d);
        todo_.push_back({StepKind::kTransfer, SegmentId(tensor.producer.index()), TensorId(t), from, d, -1});
      }
    }
    if (p_.objective == Objective::kColdLatency && !add_loads()) return;
    used_.assign(todo_.size(), false);
    finish_.clear();
    extend(0);
  }

  bool add_loads() {
    for (size_t v = 0; v < device_.size(); ++v) {
      if (p_.cluster->device(device_[v]).kind == DeviceKind::kCpu) continue;
      int64_t bytes = 0;
      for (const ParamId q : p_.graph->ops()[v].params) bytes += p_.graph->param(q).bytes;
      if (bytes == 0) continue;
      if (p_.cluster->load_route(device_[v]) == nullptr) return false;
      todo_.push_back({StepKind::kLoad, SegmentId(v), TensorId(), DeviceId(), device_[v], -1});
    }
    return true;
  }

  bool ready(const Step& step) const {
    if (step.kind == StepKind::kLoad) return true;
    const auto done = [&](auto match) {
      for (size_t i = 0; i < todo_.size(); ++i) {
        if (!used_[i] && match(todo_[i])) return false;
      }
      return true;
    };
    if (step.kind == StepKind::kTransfer) {
      return done([&](const Step& s) { return s.kind == StepKind::kRun && s.segment == step.segment; });
    }
    const Op& op = p_.graph->ops()[step.segment.index()];
    return done([&](const Step& s) {
      if (s.kind == StepKind::kLoad) {
        if (s.to != step.to) return false;
        const auto& brings = p_.graph->ops()[s.segment.index()].params;
        return s.segment == step.segment || std::any_of(op.params.begin(), op.params.end(), [&](ParamId q) {
                 return std::count(brings.begin(), brings.end(), q) > 0 && !loaded(q, s.to);
               });
      }
      const bool made = std::any_of(op.inputs.begin(), op.inputs.end(), [&](TensorId t) {
        return p_.graph->tensor(t).producer.valid() &&
               p_.graph->tensor(t).producer.index() == s.segment.index();
      });
      if (s.kind == StepKind::kRun) return made;
      return s.to == step.to && std::count(op.inputs.begin(), op.inputs.end(), s.tensor) > 0;
    });
  }

  bool loaded(ParamId q, DeviceId to) const {
    return std::any_of(plan_.steps.begin(), plan_.steps.end(), [&](const Step& s) {
      if (s.kind != StepKind::kLoad || s.to != to) return false;
      const auto& brings = p_.graph->ops()[s.segment.index()].params;
      return std::count(brings.begin(), brings.end(), q) > 0;
    });
  }

  // A load whose parameters have all come with others is dropped.
  bool brings_nothing(const Step& step) const {
    if (step.kind != StepKind::kLoad) return false;
    const auto& params = p_.graph->ops()[step.segment.index()].params;
    return std::all_of(params.begin(), params.end(),
                       [&](ParamId q) { return p_.graph->param(q).bytes == 0 || loaded(q, step.to); });
  }

  void extend(double makespan) {
    if (makespan >= best_) return;
    if (std::all_of(used_.begin(), used_.end(), [](bool u) { return u; })) {
      best_ = makespan;
      return;
    }
    for (size_t i = 0; i < todo_.size(); ++i) {
      if (used_[i] || !ready(todo_[i])) continue;
      used_[i] = true;
      if (brings_nothing(todo_[i])) {
        extend(makespan);
        used_[i] = false;
        continue;
      }
      plan_.steps.push_back(todo_[i]);
      const size_t at = plan_.steps.size() - 1;
      double start = 0;
      for (size_t j = 0; j < at; ++j) {
        if (finish_[j] > start && must_wait(p_, plan_, at, j)) start = finish_[j];
      }
      finish_.push_back(start + naive_duration(p_, plan_, at));
      extend(std::max(makespan, finish_.back()));
      finish_.pop_back();
      plan_.steps.pop_back();
      used_[i] = false;
    }
  }

  const Problem& p_;
  std::vector<DeviceId> device_;
  Plan plan_;
  std::vector<Step> todo_;
  std::vector<bool> used_;
  std::vector<double> finish_;
  double best_ = kInfinity;
};

// a -> b -> c on devices that are fast for different ops, 10-byte tensors (12 us a move): staying costs 4 + 6
// + 4 = 14 on g0 and 2 + 9 + 9 = 20 on g1; with free moves 2 + 6 + 4 = 12, but a move costs 12, so the path
// bound is 14.
TEST(LowerBound, CountsTheMovesThatAPathCannotAvoid) {
  auto graph = make_graph({{"a", {}, 10}, {"b", {"a"}, 10}, {"c", {"b"}, 0}});
  const Problem p = make_problem(graph, make_gpu_cluster(2), {{4, 2}, {6, 9}, {4, 9}});
  EXPECT_NEAR(lower_bound(p).us, 14, 1e-6);
}

// Eight independent ops of 3 us on two equal devices: 12.
TEST(LowerBound, DividesTheAreaAmongEqualDevices) {
  std::vector<OpSpec> ops;
  for (int i = 0; i < 8; ++i) ops.push_back({"o" + std::to_string(i), {}, 1});
  const Problem p =
      make_problem(make_graph(ops), make_gpu_cluster(2), std::vector<std::vector<double>>(8, {3, 3}));
  EXPECT_NEAR(lower_bound(p).us, 12, 1e-3);
  EXPECT_LE(lower_bound(p).us, 12);
}

// One device of two cores or two of one core, each op 2 us on a core and 1 on both: cores {0}, {1}, {0, 1}.
// Per core and op 1 us whichever way, so eight ops take 8 us; counting the three devices apart would give 4.
TEST(LowerBound, KnowsThatDevicesShareCores) {
  std::vector<OpSpec> ops;
  for (int i = 0; i < 8; ++i) ops.push_back({"o" + std::to_string(i), {}, 1});
  const Problem p = make_problem(make_graph(ops), make_cpu_cluster({{0}, {1}, {0, 1}}),
                                 std::vector<std::vector<double>>(8, {2, 2, 1}));
  EXPECT_NEAR(lower_bound(p).us, 8, 1e-3);
  EXPECT_LE(lower_bound(p).us, 8);
}

// s (10 us) feeds eight ops of 3 us that feed e (10 us), tensors of no bytes but 2 us latency: head 10, tail
// 10, area 12 on two devices. One device carries s and half of the ops: 32 is a bound.
TEST(LowerBound, AddsHeadAndTailToTheArea) {
  std::vector<OpSpec> ops{{"s", {}, 0}};
  std::vector<std::vector<double>> times{{10, 10}};
  OpSpec e{"e", {}, 0};
  for (int i = 0; i < 8; ++i) {
    ops.push_back({"o" + std::to_string(i), {"s"}, 0});
    times.push_back({3, 3});
    e.inputs.push_back("o" + std::to_string(i));
  }
  ops.push_back(e);
  times.push_back({10, 10});
  const Problem p = make_problem(make_graph(ops), make_gpu_cluster(2), times);
  const Bound b = lower_bound(p);
  EXPECT_NEAR(b.us, 32, 1e-2);
  EXPECT_EQ(b.reason, "head + area + tail");
}

// Cold, two GPUs behind one half-duplex bus: 6 parameters of 10 bytes all cross it: at least 60 us.
TEST(LowerBound, CountsParametersOverTheSharedBus) {
  std::vector<OpSpec> ops;
  for (int i = 0; i < 6; ++i)
    ops.push_back({"o" + std::to_string(i), {}, 1, {{"w" + std::to_string(i), 10}}});
  const Problem p = make_problem(make_graph(ops), make_gpu_cluster(2, 2, /*with_bus=*/true),
                                 std::vector<std::vector<double>>(6, {1, 1}), Objective::kColdLatency);
  EXPECT_GE(lower_bound(p).us, 59.9);
  EXPECT_LE(lower_bound(p).us, 67);  // 6 loads of 11 us, then 1
}

// Ten ops with 10 bytes each; the fast GPU holds 50 bytes, so five ops run on the other, ten times slower.
TEST(LowerBound, CountsOpsThatMemoryForcesElsewhere) {
  ClusterBuilder builder("two");
  const HostId host = builder.add_host({.name = "h", .memory_bytes = 0});
  for (int i = 0; i < 2; ++i) {
    Device d;
    d.name = "g" + std::to_string(i);
    d.device_class = d.name;
    d.host = host;
    d.memory_bytes = i == 0 ? 50 : 1000;
    const DeviceId id = builder.add_device(d);
    builder.add_link({.name = "l" + std::to_string(i),
                      .a = builder.host_node(host),
                      .b = builder.device_node(id),
                      .bytes_per_s = 1e9,
                      .latency_us = 0.01,
                      .duplex = Duplex::kFull,
                      .bus = {}});
  }
  std::vector<OpSpec> ops;
  for (int i = 0; i < 10; ++i)
    ops.push_back({"o" + std::to_string(i), {}, 0, {{"w" + std::to_string(i), 10}}});
  const Problem p =
      make_problem(make_graph(ops), *builder.build(), std::vector<std::vector<double>>(10, {1, 10}));
  const Bound b = lower_bound(p);
  EXPECT_LE(b.us, 50);
  EXPECT_GE(b.us, 49);  // without the limit it would be 100 / 11
  EXPECT_NE(b.reason.find("memory"), std::string::npos);
}

TEST(LowerBound, IsTheSameEachTime) {
  Random random(5);
  for (int i = 0; i < 10; ++i) {
    const Problem p = random_problem(random, {.ops = 30, .max_devices = 5});
    EXPECT_EQ(lower_bound(p).us, lower_bound(p).us);
  }
}

TEST(LowerBound, IsABoundEvenWhenItMustStopAtOnce) {
  Random random(6);
  CancelToken token;
  token.cancel();
  for (int i = 0; i < 20; ++i) {
    const Problem p = random_problem(random, {.ops = 30, .max_devices = 5});
    const Bound hurried = lower_bound(p, Deadline::never(token));
    EXPECT_GT(hurried.us, 0);
    EXPECT_LE(hurried.us, lower_bound(p).us * (1 + 1e-9));
  }
}

class LowerBoundOf : public testing::TestWithParam<Objective> {};

TEST_P(LowerBoundOf, NeverExceedsTheBruteForceOptimum) {
  if (GetParam() == Objective::kThroughput) GTEST_SKIP() << "orders do not matter; see the checked plans";
  Random random(31);
  double closeness = 0;
  int count = 0;
  for (int round = 0; round < 150; ++round) {
    RandomShape shape{.ops = static_cast<int>(random.between(2, GetParam() == Objective::kLatency ? 5 : 3)),
                      .max_devices = 3,
                      .edge_probability = 0.4};
    shape.objective = GetParam();
    const Problem p = random_problem(random, shape);
    const double best = BruteForce(p).best();
    if (!(best < kInfinity) || best == 0) continue;
    const double bound = lower_bound(p).us;
    ASSERT_LE(bound, best * (1 + 1e-9)) << round;
    closeness += bound / best;
    ++count;
  }
  EXPECT_GT(count, 100);
  EXPECT_GT(closeness / count, 0.8);
}

TEST_P(LowerBoundOf, NeverExceedsACheckedPlan) {
  Random random(32);
  for (int round = 0; round < 150; ++round) {
    RandomShape shape{.ops = static_cast<int>(random.between(1, 10)), .max_devices = 5};
    shape.objective = GetParam();
    shape.known_segments = random.chance(0.5);
    const Problem p = random_problem(random, shape);
    const double bound = lower_bound(p).us;
    for (int i = 0; i < 20; ++i) {
      std::vector<Lane> lanes(GetParam() == Objective::kThroughput && random.chance(0.5) ? 2 : 1);
      for (Lane& lane : lanes) {
        lane.assignment = random_assignment(random, p);
        lane.share = 1.0 / static_cast<double>(lanes.size());
        if (random.chance(0.5)) lane.assignment.segment = merge_segments(p, lane.assignment);
      }
      const auto plan = build_plan(p, lanes);
      if (!plan.ok()) continue;
      const auto t = evaluate(p, *plan);
      ASSERT_TRUE(t.ok());
      const CheckReport report = check(p, *plan, *t, bound);
      ASSERT_TRUE(report.ok()) << round << ": " << report.findings[0].message;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Objectives, LowerBoundOf,
                         testing::Values(Objective::kLatency, Objective::kColdLatency,
                                         Objective::kThroughput),
                         [](const auto& i) {
                           std::string name = objective_name(i.param);
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace heddle::test
