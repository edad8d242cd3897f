#include "assignment_problem.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "heddle/graph/generators.h"
#include "search/schedule_model.h"

namespace heddle::bench {
namespace {

constexpr double kTickUs = 200;  // so that makespans are some hundred ticks, within HiGHS's tolerances
constexpr int64_t kMostSchedules = 100'000, kMostAssignments = 300'000;

Result<std::shared_ptr<const Graph>> random_graph(Random& random, bool wired, int devices) {
  std::vector<std::pair<std::string, double>> classes = {{"d0", 1}};
  for (int d = 1; d < devices; ++d)
    classes.emplace_back("d" + std::to_string(d), 1 + static_cast<double>(random.below(30)) / 10);
  if (wired) {
    return generate_random_wired({.nodes = static_cast<int>(random.between(3, 5)),
                                  .er_p = 0.4,
                                  .modules = 1,
                                  .seed = random.next(),
                                  .device_class_factors = classes,
                                  .device_affinity = 0.5});
  }
  const int ops = static_cast<int>(random.between(4, 7)), layers = ops < 6 ? 3 : 4;
  return generate_layered({.ops = ops,
                           .layers = layers,
                           .deps = static_cast<int>(random.between(ops - 1, 2 * ops)),
                           .seed = random.next(),
                           .transfer_share = random.uniform(0.1, 1),
                           .device_class_factors = classes,
                           .device_spread = 0.5});
}

int64_t in_ticks(double us) { return std::max<int64_t>(1, std::llround(us / kTickUs)); }

// Ops are numbered in topological order.
AssignmentProblem on_devices(const Graph& graph, size_t devices, Random& random) {
  AssignmentProblem p{.ops = graph.num_ops(), .devices = devices};
  int64_t memory = 0;
  for (const OpId v : graph.topological_order()) {
    for (const GivenTime& time : graph.op(v).given_times) p.ticks.push_back(in_ticks(time.us));
    if (random.chance(0.1))
      p.ticks[p.ticks.size() - 1 - random.below(devices - 1)] = AssignmentProblem::kCannot;
    p.memory.push_back(random.between(0, 9));
    memory += p.memory.back();
  }
  const double bytes_per_s = 1e9 * random.uniform(0.5, 4);
  for (const Edge& edge : graph.edges()) {
    p.edges.push_back({static_cast<size_t>(graph.topological_position(edge.src)),
                       static_cast<size_t>(graph.topological_position(edge.dst)),
                       in_ticks(static_cast<double>(edge.bytes) / bytes_per_s * 1e6)});
  }
  const bool tight = random.chance(0.5);
  for (size_t d = 0; d < devices; ++d)
    p.limits.push_back(tight ? random.between(memory / 4, memory) : memory);
  p.shared = random.chance(0.2);
  return p;
}

// Calls `visit` with each assignment that the devices' memory holds; false if there are too many.
bool for_each_assignment(const AssignmentProblem& p, int64_t most,
                         const std::function<void(const std::vector<size_t>&)>& visit) {
  if (std::pow(static_cast<double>(p.devices), static_cast<double>(p.ops)) > static_cast<double>(most))
    return false;
  std::vector<size_t> device;
  std::vector<int64_t> left = p.limits;
  const std::function<void()> extend = [&] {
    const size_t v = device.size();
    if (v == p.ops) return visit(device);
    for (size_t d = 0; d < p.devices; ++d) {
      if (p.at(v, d) == AssignmentProblem::kCannot || left[d] < p.memory[v]) continue;
      left[d] -= p.memory[v];
      device.push_back(d);
      extend();
      device.pop_back();
      left[d] += p.memory[v];
    }
  };
  extend();
  return true;
}

// The least end of one assignment, over all orders.
class AllOrders {
 public:
  AllOrders(const AssignmentProblem& p, const std::vector<size_t>& device, std::optional<int64_t>& best)
      : p_(p), device_(device), best_(best), end_(p.ops, -1), free_(p.devices, 0) {}

  void run(size_t placed, int64_t makespan) {
    if (best_ && makespan >= *best_) return;
    if (placed == p_.ops) {
      best_ = makespan;
      return;
    }
    for (size_t v = 0; v < p_.ops; ++v) {
      const size_t d = device_[v];
      // The resource of the first two devices may be one.
      const size_t resource = p_.shared && d == 1 ? 0 : d;
      int64_t start = free_[resource];
      bool ready = end_[v] < 0;
      for (const auto& e : p_.edges) {
        if (e.to != v) continue;
        ready = ready && end_[e.from] >= 0;
        start = std::max(start, end_[e.from] + (device_[e.from] == d ? 0 : e.delay));
      }
      if (!ready) continue;
      const int64_t before = free_[resource];
      free_[resource] = end_[v] = start + p_.at(v, d);
      run(placed + 1, std::max(makespan, end_[v]));
      free_[resource] = before;
      end_[v] = -1;
    }
  }

 private:
  const AssignmentProblem& p_;
  const std::vector<size_t>& device_;
  std::optional<int64_t>& best_;
  std::vector<int64_t> end_, free_;
};

// Where each op may run, exactly one device each, within the devices' memory.
ScheduleModel placed_ops(const AssignmentProblem& p, int64_t reach) {
  ScheduleModel model(p.ops, p.devices, reach);
  for (size_t v = 0; v < p.ops; ++v) {
    for (size_t d = 0; d < p.devices; ++d) {
      if (p.at(v, d) != AssignmentProblem::kCannot) model.may_run(v, d);
    }
    model.choose_device(v);
  }
  for (size_t d = 0; d < p.devices; ++d)
    model.limit_memory([&](size_t v, size_t on) { return on == d ? p.memory[v] : 0; }, p.limits[d]);
  return model;
}

int64_t longest_end(const AssignmentProblem& p) {
  int64_t sum = 0;
  for (size_t v = 0; v < p.ops; ++v) {
    int64_t most = 0;
    for (size_t d = 0; d < p.devices; ++d) most = std::max(most, p.at(v, d));
    sum += most;
  }
  for (const auto& e : p.edges) sum += e.delay;
  return sum;
}

}  // namespace

Result<AssignmentProblem> random_assignment_problem(Random& random) {
  const auto devices = static_cast<size_t>(random.between(2, 3));
  const bool wired = random.chance(0.3);
  // Not every number of edges fits the layers.
  for (int tries = 0; tries < 1000; ++tries) {
    const auto graph = random_graph(random, wired, static_cast<int>(devices));
    if (graph.ok()) return on_devices(**graph, devices, random);
  }
  return Error(Code::kInternal, "no graph came up in 1,000 tries");
}

CpModel schedule_model(const AssignmentProblem& p) {
  const int64_t reach = longest_end(p);
  ScheduleModel model = placed_ops(p, reach);
  std::vector<CpVar> start;
  for (size_t v = 0; v < p.ops; ++v) start.push_back(model.cp.add_integer(0, reach));
  const CpVar end = model.cp.add_integer(0, reach);
  const auto length = [&](size_t v, size_t d) { return p.at(v, d); };
  const auto end_of = [&](size_t v) {
    return model.end_of(v, start[v], [&](size_t d) { return p.at(v, d); });
  };
  for (const auto& e : p.edges) {
    model.after(CpExpr(start[e.to]), end_of(e.from), 0);
    model.transfer(e.from, end_of(e.from), e.to, start[e.to], [&](size_t, size_t) { return e.delay; });
  }
  for (size_t v = 0; v < p.ops; ++v) model.after(CpExpr(end), end_of(v), 0);
  const uint32_t both[] = {0, 1};
  if (p.shared) model.exclude(both, start, length, end);
  for (uint32_t d = p.shared ? 2 : 0; d < p.devices; ++d) model.exclude(std::span(&d, 1), start, length, end);
  model.cp.minimise(CpExpr(end));
  return std::move(model.cp);
}

CpModel placement_model(const AssignmentProblem& p, Random& random) {
  const int64_t most = longest_end(p);
  ScheduleModel model = placed_ops(p, most);
  std::vector<CpExpr> loads(p.devices);
  for (size_t v = 0; v < p.ops; ++v) {
    int64_t delay = 0;
    for (const auto& e : p.edges) delay = e.from == v ? std::max(delay, e.delay) : delay;
    for (size_t d = 0; d < p.devices; ++d) {
      if (!model.possible(v, d)) continue;
      loads[d].add(model.on(v, d), p.at(v, d));
      if (delay == 0) continue;
      const CpLit sends = model.cp.add_literal();
      loads[d].add(sends, delay);
      for (const auto& e : p.edges) {
        if (e.from == v) model.forbid(model.all({model.on(v, d), !model.on(e.to, d), !sends}));
      }
    }
  }
  const CpVar largest = model.cp.add_integer(0, most);
  std::vector<CpExpr> parts;
  const bool by_maximum = random.chance(0.5);
  for (CpExpr& load : loads) {
    const CpVar own = by_maximum ? model.cp.add_integer(0, most) : largest;
    model.cp.linear(by_maximum ? 0 : -most, std::move(load.add(own, -1)), 0);
    parts.emplace_back(own);
  }
  if (by_maximum) model.cp.maximum(CpExpr(largest), std::move(parts));
  model.cp.minimise(CpExpr(largest));
  return std::move(model.cp);
}

std::optional<int64_t> least_end(const AssignmentProblem& p, bool& tried) {
  std::optional<int64_t> best;
  tried = p.ops <= 6 && for_each_assignment(p, kMostSchedules, [&](const std::vector<size_t>& device) {
            AllOrders(p, device, best).run(0, 0);
          });
  return best;
}

std::optional<int64_t> least_load(const AssignmentProblem& p, bool& tried) {
  std::optional<int64_t> best;
  tried = for_each_assignment(p, kMostAssignments, [&](const std::vector<size_t>& device) {
    std::vector<int64_t> load(p.devices, 0), sent(p.ops, 0);
    for (size_t v = 0; v < p.ops; ++v) load[device[v]] += p.at(v, device[v]);
    std::vector<int64_t> delay(p.ops, 0);
    for (const auto& e : p.edges) {
      delay[e.from] = std::max(delay[e.from], e.delay);
      if (device[e.from] != device[e.to]) sent[e.from] = 1;
    }
    for (size_t v = 0; v < p.ops; ++v) load[device[v]] += sent[v] * delay[v];
    const int64_t most = *std::ranges::max_element(load);
    if (!best || most < *best) best = most;
  });
  return best;
}

}  // namespace heddle::bench
