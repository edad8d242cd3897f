// DiviML's throughput program (section IV-A) where requests follow each other without end: equations 1, 4, 5
// and 6 with L parts; equations 2, 3 and 7 become that no device has more work per request than the period.
//
// Minimises the period. Without starts the identity of an op matters only through its times and parameters:
// ops that have equal ones are a kind, and a whole number n(kind, device) of executions replaces their x.
// Equal devices are ordered (section VI), which keeps one plan of each class of permutations. The executions
// are then laid along the topological order, L parts of an op side by side, device after device, so that
// neighbours in the graph are neighbours in the cluster; part l of each op makes lane l. O(kinds * devices)
// variables. Exploits unequal devices, data and model parallelism, parameter memory. Ignores transfers while
// it chooses (the evaluator counts them) and activations' memory.
#include "heddle/planners/diviml_throughput.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include "core/configurations.h"
#include "core/plan_store.h"
#include "core/portfolio.h"
#include "heddle/solve/milp.h"
#include "lists/construction.h"

namespace heddle {
namespace {

constexpr double kScale = 1000;  // the start's value in the program's unit
constexpr double kUntimedSeconds = 60;

class PeriodProgram {
 public:
  PeriodProgram(const FlatProblem& flat, const ThroughputOptions& options, double start_us)
      : flat_(flat),
        k_(flat.num_devices()),
        parts_(static_cast<size_t>(options.parts)),
        unit_(std::max(start_us, 1e-6) / kScale) {
    find_kinds();
    add_counts();
    add_devices();
    if (options.symmetry != Symmetry::kNone) order_equal_devices(options.symmetry);
  }

  Result<Solution> run(const SolveOptions& options) const { return solve(milp_, options); }

  // The lanes of a solution.
  std::vector<Lane> lanes(const std::vector<double>& values) const {
    std::vector<FlatPlan> plans(parts_);
    for (FlatPlan& p : plans) {
      p.device.assign(flat_.num_ops(), 0);
      p.order.assign(flat_.topological().begin(), flat_.topological().end());
    }
    // Device after device takes its executions of each kind; kinds share the order of devices, so that what
    // is close in the graph comes to the same or a neighbouring device.
    std::vector<std::vector<int64_t>> left(kinds_.size(), std::vector<int64_t>(k_, 0));
    for (size_t g = 0; g < kinds_.size(); ++g) {
      for (size_t d = 0; d < k_; ++d) {
        if (n_[g * k_ + d].index >= 0)
          left[g][d] = std::llround(values[static_cast<size_t>(n_[g * k_ + d].index)]);
      }
    }
    std::vector<size_t> at(kinds_.size(), 0);
    for (const uint32_t v : flat_.topological()) {
      const size_t g = kind_of_[v];
      for (size_t l = 0; l < parts_; ++l) {
        while (at[g] + 1 < k_ && left[g][at[g]] == 0) ++at[g];
        --left[g][at[g]];
        plans[l].device[v] = static_cast<uint32_t>(at[g]);
      }
    }
    std::vector<Lane> lanes;
    for (const FlatPlan& p : plans)
      lanes.push_back({to_assignment(flat_, p), 1.0 / static_cast<double>(parts_)});
    return lanes;
  }

 private:
  void find_kinds() {
    std::map<std::vector<double>, size_t> numbers;
    kind_of_.resize(flat_.num_ops());
    for (size_t v = 0; v < flat_.num_ops(); ++v) {
      std::vector<double> key(flat_.row(v).begin(), flat_.row(v).end());
      int64_t bytes = 0;
      for (const uint32_t p : flat_.params(v)) bytes = plus_bytes(bytes, flat_.param_bytes(p));
      key.push_back(static_cast<double>(bytes));
      const auto [it, fresh] = numbers.try_emplace(std::move(key), kinds_.size());
      if (fresh) kinds_.push_back({v, 0, static_cast<double>(bytes)});
      ++kinds_[it->second].count;
      kind_of_[v] = it->second;
    }
  }

  // Equations 1 and 4: all parts of all ops of a kind are executed somewhere.
  void add_counts() {
    n_.resize(kinds_.size() * k_);
    for (size_t g = 0; g < kinds_.size(); ++g) {
      const double all = static_cast<double>(parts_) * kinds_[g].count;
      std::vector<Term> sum;
      for (size_t d = 0; d < k_; ++d) {
        if (!(flat_.us(kinds_[g].first, d) < kImpossible)) continue;
        n_[g * k_ + d] = milp_.add_integer(0, all);
        sum.push_back({n_[g * k_ + d], 1});
      }
      milp_.equal(std::move(sum), all, "executions");
    }
  }

  void add_devices() {
    period_ = milp_.add_continuous(0, kNoBound, "period");
    milp_.add_cost(period_, 1);
    const double parts = static_cast<double>(parts_);
    for (size_t d = 0; d < k_; ++d) {
      std::vector<Term> work = time_terms(d);
      work.push_back({period_, -1});
      milp_.at_most(std::move(work), 0, "work");
      const int64_t limit = flat_.pool_limit(flat_.pool(d));
      if (limit <= 0) continue;
      // Equation 6. An op's parameters are there once for all its parts; a device's share of a kind touches
      // at most n / L + 2 - 2 / L ops.
      std::vector<Term> bytes;
      for (size_t g = 0; g < kinds_.size(); ++g) {
        const Var n = n_[g * k_ + d];
        const double share = kinds_[g].bytes / static_cast<double>(limit);
        if (n.index < 0 || !(share > 0)) continue;
        bytes.push_back({n, share / parts});
        if (parts_ == 1) continue;
        const Var used = milp_.add_binary();
        milp_.at_most({{n, 1}, {used, -parts * kinds_[g].count}}, 0, "used");
        bytes.push_back({used, share * (2 - 2 / parts)});
      }
      if (!bytes.empty()) milp_.at_most(std::move(bytes), kMemoryShare, "memory");
    }
  }

  std::vector<Term> time_terms(size_t d) const {
    std::vector<Term> terms;
    for (size_t g = 0; g < kinds_.size(); ++g) {
      const Var n = n_[g * k_ + d];
      if (n.index >= 0)
        terms.push_back({n, flat_.us(kinds_[g].first, d) / unit_ / static_cast<double>(parts_)});
    }
    return terms;
  }

  void order_equal_devices(Symmetry symmetry) {
    for (size_t d = 0; d + 1 < k_; ++d) {
      for (size_t e = d + 1; e < k_; ++e) {
        if (!equal(d, e)) continue;
        std::vector<Term> terms = quantity(d, symmetry);
        for (Term t : quantity(e, symmetry)) terms.push_back({t.var, -t.coefficient});
        milp_.at_most(std::move(terms), 0, "equal_devices");
        break;  // neighbours in the class are enough
      }
    }
  }
  bool equal(size_t d, size_t e) const {
    for (const Kind& kind : kinds_) {
      if (flat_.us(kind.first, d) != flat_.us(kind.first, e)) return false;
    }
    return flat_.pool_limit(flat_.pool(d)) == flat_.pool_limit(flat_.pool(e));
  }
  std::vector<Term> quantity(size_t d, Symmetry symmetry) {
    if (symmetry == Symmetry::kTime) return time_terms(d);
    std::vector<Term> terms;
    for (size_t g = 0; g < kinds_.size(); ++g) {
      const Var n = n_[g * k_ + d];
      if (n.index < 0) continue;
      if (symmetry == Symmetry::kTasks) {
        terms.push_back({n, 1});
        continue;
      }
      // 1 exactly where the kind is executed there.
      const double all = static_cast<double>(parts_) * kinds_[g].count;
      const auto [it, fresh] = here_.try_emplace(g * k_ + d);
      if (fresh) {
        it->second = milp_.add_binary();
        milp_.at_most({{n, 1}, {it->second, -all}}, 0, "here");
        milp_.at_most({{it->second, 1}, {n, -1}}, 0, "here");
      }
      terms.push_back({it->second, 1});
    }
    return terms;
  }

  struct Kind {
    size_t first = 0;
    double count = 0, bytes = 0;
  };
  // Room for tensors.
  static constexpr double kMemoryShare = 0.98;
  const FlatProblem& flat_;
  const size_t k_, parts_;
  const double unit_;
  std::vector<Kind> kinds_;
  std::vector<size_t> kind_of_;
  std::vector<Var> n_;
  std::map<size_t, Var> here_;
  Var period_;
  Milp milp_;
};

Status offer_program(const FlatProblem& flat, const PlannerOptions& options,
                     const ThroughputOptions& throughput, double seconds, PlanStore& candidates) {
  // Where nothing is known yet the sum of the least times gives the scale.
  const auto least = flat.least_us();
  const double scale =
      candidates.empty() ? std::accumulate(least.begin(), least.end(), 0.0) : candidates.value_us();
  const PeriodProgram program(flat, throughput, scale);
  SolveOptions o;
  o.deadline = options.deadline.sooner(std::min(seconds, kUntimedSeconds));
  o.seed = options.seed;
  o.threads = options.threads;
  o.rel_gap = 1e-4;
  HEDDLE_ASSIGN_OR_RETURN(const Solution solution, program.run(o));
  if (!solution.has_values()) return {};
  auto lanes = program.lanes(solution.values);
  candidates.offer(lanes.size() == 1 ? std::vector<Lane>{{lanes[0].assignment, 1.0}} : lanes,
                   "diviml-throughput, " + std::to_string(throughput.parts) +
                       (throughput.parts == 1 ? " lane" : " lanes"));
  return {};
}

Result<PlannerOutput> plan_diviml_throughput(const Problem& problem, const PlannerOptions& options) {
  PlanStore candidates(problem);
  run_planners(problem, options, constructive_planners(problem.objective), candidates);
  const auto sets = configurations(problem);
  static constexpr std::array<int, 2> kParts{1, 4};
  for (size_t s = 0; s < sets.size() && !options.deadline.should_stop(); ++s) {
    const FlatProblem flat(problem, sets[s]);
    for (size_t i = 0; i < kParts.size() && !options.deadline.should_stop(); ++i) {
      const double share = static_cast<double>((sets.size() - s) * kParts.size() - i);
      HEDDLE_RETURN_IF_ERROR(offer_program(flat, options, {.parts = kParts[i], .symmetry = Symmetry::kTime},
                                           options.deadline.seconds_left() / share, candidates));
    }
    report_progress(options, "planner diviml-throughput", static_cast<double>(s + 1),
                    static_cast<double>(sets.size()));
  }
  const bool late = options.deadline.should_stop();
  return candidates.output(late ? StopReason::kTimeLimit : StopReason::kFinished, options.deadline);
}

}  // namespace

const char* symmetry_name(Symmetry symmetry) {
  switch (symmetry) {
    case Symmetry::kNone:
      return "none";
    case Symmetry::kBatches:
      return "batches";
    case Symmetry::kTasks:
      return "tasks";
    case Symmetry::kTime:
      return "time";
  }
  return "?";
}

Result<PlannerOutput> plan_diviml_throughput(const Problem& problem, const PlannerOptions& options,
                                             const ThroughputOptions& throughput) {
  if (throughput.parts < 1 || throughput.parts > 64) {
    return invalid_input("parts is " + std::to_string(throughput.parts) + ", expected 1 to 64");
  }
  if (problem.objective != Objective::kThroughput) {
    return unsupported(std::string("diviml-throughput plans for throughput, not for ") +
                       objective_name(problem.objective));
  }
  HEDDLE_RETURN_IF_ERROR(validate(problem));
  PlanStore candidates(problem);
  for (const auto& set : configurations(problem)) {
    const FlatProblem flat(problem, set);
    HEDDLE_RETURN_IF_ERROR(
        offer_program(flat, options, throughput, options.deadline.seconds_left(), candidates));
  }
  const bool late = options.deadline.should_stop();
  return candidates.output(late ? StopReason::kTimeLimit : StopReason::kFinished, options.deadline);
}

PlannerEntry diviml_throughput_planner() {
  return {
      {.name = "diviml-throughput",
       .description = "DiviML's program in the steady state: data and model parallelism over kinds of ops",
       .source = "DiviML, sections IV-A and VI",
       .objectives = {Objective::kThroughput},
       .exploits = "unequal devices, lanes, equal ops and equal devices, parameter memory",
       .ignores = "transfers while it chooses, memory for tensors"},
      plan_diviml_throughput};
}

}  // namespace heddle
