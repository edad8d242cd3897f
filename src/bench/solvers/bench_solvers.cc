// The suite solvers: random models answered by both solvers, with presolve and without, and by trying everything. A
// model whose answers contradict each other is kept in a file.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "heddle/base/file.h"
#include "heddle/base/random.h"
#include "heddle/base/status.h"
#include "heddle/graph/generators.h"
#include "heddle/solve/cp.h"
#include "heddle/solve/cross_check.h"
#include "heddle/solve/small_models.h"
#include "search/schedule_model.h"
#include "suites.h"

namespace heddle::bench {
namespace {

// Ops on devices, small enough to try all assignments: as constraint programs of the planners' form, and by trying
// everything.
struct AssignmentProblem {
  static constexpr int64_t kCannot = -1;  // as a time
  struct Edge {
    size_t from = 0, to = 0;
    int64_t delay = 0;  // ticks, if the ops are on different devices
  };
  size_t ops = 0, devices = 0;
  std::vector<int64_t> ticks;   // [op * devices + device]
  std::vector<Edge> edges;      // from < to
  std::vector<int64_t> memory;  // by op
  std::vector<int64_t> limits;  // of memory, by device
  bool shared = false;          // the first two devices exclude each other, as devices that share cores do

  int64_t at(size_t op, size_t device) const { return ticks[op * devices + device]; }
};

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
  const int64_t ops = random.between(4, 7);
  return generate_layered({.ops = static_cast<int>(ops),
                           .layers = ops < 6 ? 3 : 4,
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

// On a graph of HIOS's family `layered` with 4 to 7 ops, or of DiviML's family `er` with some ten; 2 or 3 devices of
// unequal speed.
Result<AssignmentProblem> random_assignment_problem(Random& random) {
  const auto devices = static_cast<size_t>(random.between(2, 3));
  const bool wired = random.chance(0.3);
  // Not every number of edges fits the layers.
  for (int tries = 0; tries < 1000; ++tries) {
    const auto graph = random_graph(random, wired, static_cast<int>(devices));
    if (graph.ok()) return on_devices(**graph, devices, random);
  }
  return internal_error("no graph came up in 1,000 tries");
}

// Minimise the end of the last op. Ops of one device run one after the other.
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

// Minimise the largest load: a device's ops, and for each op with a reader elsewhere its longest delay.
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

// The optimum; nothing: no assignment fits the memory. `tried` is false if there are too many to try.
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

constexpr double kWork = 10;  // of each answer; then it is undecided

// A model's answers, and its text for a file.
struct CheckedModel {
  std::vector<SolverAnswer> answers;
  std::string extension, text;
};

SolverAnswer by_trying_all(std::optional<double> least) {
  const double value = least.value_or(kNoBound);
  return {"trying all solutions", least ? SolveStatus::kOptimal : SolveStatus::kInfeasible, value, value, ""};
}

CheckedModel checked(const CpModel& model, const SolveOptions& options) {
  return {all_answers(model, options), ".pb.txt", to_text(model)};
}

Result<CheckedModel> check_small(Random& random, const SolveOptions& options) {
  const auto shape = static_cast<ModelShape>(random.below(kModelShapes));
  const SmallModel small = random_small_model(random, shape);
  CheckedModel result;
  if (small.unit == 1) {
    result = checked(to_cp(small), options);
  } else {
    const Milp milp = to_milp(small);
    HEDDLE_ASSIGN_OR_RETURN(result.text, to_lp(milp));
    result.answers = all_answers(milp, options);
    result.extension = ".lp";
  }
  const auto least = small.least();
  std::optional<double> value;
  if (least) value = static_cast<double>(*least) / static_cast<double>(small.unit);
  result.answers.push_back(by_trying_all(value));
  return result;
}

Result<CheckedModel> check_assignment(bool schedule, Random& random, const SolveOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const auto problem, random_assignment_problem(random));
  CheckedModel result =
      checked(schedule ? schedule_model(problem) : placement_model(problem, random), options);
  bool tried = false;
  const auto least = schedule ? least_end(problem, tried) : least_load(problem, tried);
  if (tried) result.answers.push_back(by_trying_all(least));
  return result;
}

// What a part of the suite has counted.
class SolversPart {
 public:
  explicit SolversPart(std::string name) : name_(std::move(name)) {}

  Status check(uint64_t seed, const SolveOptions& options) {
    Random random(seed);
    HEDDLE_ASSIGN_OR_RETURN(const CheckedModel model,
                            name_ == "shapes" ? check_small(random, options)
                                              : check_assignment(name_ == "schedules", random, options));
    if (options.deadline.cancelled()) return {};
    ++models_;
    answers_ += model.answers.size();
    const auto count = [&](auto match) { return std::ranges::count_if(model.answers, match) > 0; };
    infeasible_ += count([](const auto& a) { return a.status == SolveStatus::kInfeasible; });
    undecided_ += count([](const auto& a) {
      return a.status == SolveStatus::kFeasible || a.status == SolveStatus::kUnknown;
    });
    tried_ += count([](const auto& a) { return a.by == by_trying_all({}).by; });
    milps_ += count([](const auto& a) { return a.by.starts_with("HiGHS"); });
    const std::string wrong = contradiction(model.answers);
    return wrong.empty() ? Status() : keep(seed, model, wrong);
  }

  void add_rows(std::vector<BenchRow>& rows) const {
    const auto add = [&](const char* metric, uint64_t value) {
      rows.push_back(bench_row("solvers", name_, "", metric, "", static_cast<double>(value)));
    };
    add("models", models_);
    add("answers", answers_);
    add("models solved by HiGHS, too", milps_);
    add("models with all solutions tried", tried_);
    add("models without a solution", infeasible_);
    add("models with an undecided answer", undecided_);
    add("contradictions", kept_.size());
    rows.back().fails = !kept_.empty();
    for (const std::string& kept : kept_) {
      rows.push_back(bench_row("solvers", name_, "", kept, "", 1));
      rows.back().fails = true;
    }
  }

 private:
  Status keep(uint64_t seed, const CheckedModel& model, const std::string& wrong) {
    const std::string file = "solvers-" + name_ + "-" + std::to_string(seed) + model.extension;
    const std::string comment = model.extension == ".lp" ? "\\ " : "# ";
    std::string text = comment + wrong + "\n";
    for (const SolverAnswer& a : model.answers) {
      text += comment + a.by + ": " + solve_status_name(a.status) + ", value " + std::to_string(a.value) +
              ", bound " + std::to_string(a.bound) + (a.fault.empty() ? "" : ", " + a.fault) + "\n";
    }
    kept_.push_back(file + ": " + wrong);
    return write_file_atomic(file, text + model.text);
  }

  const std::string name_;
  uint64_t models_ = 0, answers_ = 0, milps_ = 0, tried_ = 0, infeasible_ = 0, undecided_ = 0;
  std::vector<std::string> kept_;  // files, each with what is wrong
};

}  // namespace

Status bench_solvers(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows) {
  // Without CP-SAT there is little to compare.
  HEDDLE_RETURN_IF_ERROR(solve(CpModel()));
  std::vector<SolversPart> parts;
  for (const char* name : {"shapes", "schedules", "placements"}) {
    if (wanted(options, name)) parts.emplace_back(name);
  }
  const auto first = static_cast<uint64_t>(options.seed);
  for (uint64_t i = 0; !parts.empty() && i < static_cast<uint64_t>(options.instances); ++i) {
    if (control.cancel.cancelled()) break;
    control.report("models", static_cast<double>(i), static_cast<double>(options.instances));
    SolveOptions solve_options{.deadline = control.deadline(), .work = kWork};
    solve_options.seed = first + i;
    HEDDLE_RETURN_IF_ERROR(parts[i % parts.size()].check(first + i, solve_options));
  }
  for (const SolversPart& part : parts) part.add_rows(rows);
  return {};
}

}  // namespace heddle::bench
