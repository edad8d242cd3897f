// Moirai: optimal placement by a mixed-integer program. B. Zhang et al., "Moirai: towards optimal placement
// for distributed inference on heterogeneous devices", section III-D, equations 4 to 8 (moirai_milp.cc). The
// cluster is a full mesh whose channels are the fastest routes (section III-A); times are the problem's, be
// they measured, scaled from another device as the paper does (section III-C), or estimated.
//
// Minimises the makespan of one request. The best constructive plan is the solver's start. A graph whose
// program would be too large is planned on units (group_to_size), each op taking its unit's device; the bound
// is the program's only where it saw the ops themselves. Exploits unequal devices, transfers, ports and
// memory; ignores links that several pairs of devices share.
#include <algorithm>

#include "core/fastest_routes.h"
#include "core/portfolio.h"
#include "heddle/graph/coarsen.h"
#include "heddle/solve/solution.h"
#include "lists/construction.h"
#include "moirai_milp.h"

namespace heddle {
namespace {

constexpr size_t kMostRows = 30'000;
constexpr size_t kMostUnits = 48, kLeastUnits = 6;

// The same problem over units; costs are sums.
Result<Problem> over_units(const Problem& problem, const std::vector<int>& group) {
  Problem coarse = problem;
  coarse.resident.clear();  // the units' parameters have other numbers
  HEDDLE_ASSIGN_OR_RETURN(coarse.graph, coarsen(*problem.graph, group));
  const size_t k = problem.cluster->num_devices();
  auto costs = std::make_shared<CostTable>(coarse.graph->num_ops(), k);
  std::vector<double> us(coarse.graph->num_ops() * k, 0);
  for (size_t v = 0; v < group.size(); ++v) {
    for (size_t d = 0; d < k; ++d)
      us[static_cast<size_t>(group[v]) * k + d] += problem.costs->us(OpId(v), DeviceId(d));
  }
  for (size_t u = 0; u < coarse.graph->num_ops(); ++u) {
    for (size_t d = 0; d < k; ++d) {
      if (us[u * k + d] < kImpossible)
        costs->set(OpId(u), DeviceId(d), {us[u * k + d], Origin::kEstimated, 0});
    }
  }
  coarse.costs = std::move(costs);
  HEDDLE_RETURN_IF_ERROR(validate(coarse));
  return coarse;
}

// Decisions over units for the ops: a unit's ops follow each other in topological order.
Assignment for_ops(const Problem& problem, const std::vector<int>& group, const Assignment& units) {
  Assignment ops;
  std::vector<int> place(units.order.size());
  for (size_t i = 0; i < units.order.size(); ++i) place[units.order[i].index()] = static_cast<int>(i);
  for (const int g : group) ops.device.push_back(units.device[static_cast<size_t>(g)]);
  const auto topological = problem.graph->topological_order();
  ops.order.assign(topological.begin(), topological.end());
  std::stable_sort(ops.order.begin(), ops.order.end(), [&](OpId a, OpId b) {
    return place[static_cast<size_t>(group[a.index()])] < place[static_cast<size_t>(group[b.index()])];
  });
  return ops;
}

std::optional<MoiraiStart> start_of(const Problem& problem, const FlatProblem& flat, const Plan& plan) {
  auto assignment = assignment_of(problem, plan);
  assignment.segment.clear();
  auto decisions = to_flat_plan(flat, assignment);
  if (!decisions) return std::nullopt;
  const auto single = build_plan(problem, assignment);
  if (!single.ok()) return std::nullopt;
  const auto timeline = evaluate(problem, *single);
  if (!timeline.ok()) return std::nullopt;
  MoiraiStart start{std::move(*decisions), std::vector<double>(flat.num_ops(), 0), {}, timeline->makespan_us};
  start.sent_us.assign(flat.num_tensors(), std::vector<double>(flat.num_devices(), 0));
  for (size_t s = 0; s < single->steps.size(); ++s) {
    const Step& step = single->steps[s];
    if (step.kind == StepKind::kRun) {
      for (const OpId v : single->segments[step.segment.index()].ops)
        start.op_start_us[v.index()] = timeline->start_us[s];
    } else if (step.kind == StepKind::kTransfer && flat.local(step.to) >= 0) {
      start.sent_us[step.tensor.index()][static_cast<size_t>(flat.local(step.to))] = timeline->start_us[s];
    }
  }
  return start;
}

class Moirai {
 public:
  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions& options) {
    PlanStore candidates(problem);
    if (options.start != nullptr) candidates.offer(*options.start, "the plan to improve");
    run_planners(problem, options, constructive_planners(problem.objective), candidates);
    if (candidates.empty()) return candidates.output(StopReason::kTimeLimit, options.deadline);
    const std::string first = candidates.winner();
    const double first_us = candidates.value_us();
    HEDDLE_ASSIGN_OR_RETURN(const ProgramRun run, improve(problem, options, candidates));
    const bool better = candidates.winner() != first;
    if (run.bound_us > 0) {
      candidates.prove({run.bound_us, {"Moirai's program, equations 4 to 8", highs_name()}});
    }
    HEDDLE_ASSIGN_OR_RETURN(auto out, candidates.output(run.stop, options.deadline));
    out.detail = run.detail +
                 (better ? ", better than its start (" + first + ")" : "; best is its start (" + first + ")");
    out.counters.insert(run.counters.begin(), run.counters.end());
    out.counters["start_us"] = first_us;
    return out;
  }

 private:
  struct ProgramRun {
    StopReason stop = StopReason::kFinished;
    std::string detail;
    double bound_us = 0;
    std::map<std::string, double> counters;
  };

  Result<ProgramRun> improve(const Problem& problem, const PlannerOptions& options, PlanStore& candidates) {
    // Devices that share cores exclude each other only in the evaluator: the program takes the most promising
    // set.
    const auto devices = configurations(problem).front();
    const bool whole = devices.size() == problem.usable_devices().size();
    if (FlatProblem flat(problem, devices); count_moirai_rows(flat, kMostRows) <= kMostRows)
      return solve(problem, devices, options, candidates, *candidates.best(), {}, whole);
    for (size_t units = std::min(kMostUnits, problem.graph->num_ops()); units >= kLeastUnits;
         units = units * 3 / 4) {
      const auto group = group_to_size(*problem.graph, units);
      auto coarse = over_units(problem, group);
      if (!coarse.ok()) break;
      const FlatProblem flat(*coarse, devices);
      if (count_moirai_rows(flat, kMostRows) > kMostRows) continue;
      PlanStore starts(*coarse);
      PlannerOptions start_options = options;
      start_options.start = nullptr;
      run_planners(*coarse, start_options, constructive_planners(problem.objective), starts);
      if (starts.empty()) break;
      const auto for_all = [&](const Assignment& a) { return for_ops(problem, group, a); };
      candidates.offer(for_all(assignment_of(*coarse, *starts.best())), "construction on units");
      return solve(*coarse, devices, options, candidates, *starts.best(), for_all, false);
    }
    ProgramRun run;
    run.detail = "the graph is too large for the program, even as a few units";
    return run;
  }

  using ForOps = std::function<Assignment(const Assignment&)>;
  Result<ProgramRun> solve(const Problem& problem, const std::vector<DeviceId>& devices,
                           const PlannerOptions& options, PlanStore& candidates, const Plan& from,
                           const ForOps& for_all, bool may_bound) {
    ProgramRun run;
    const FlatProblem flat(problem, devices);
    const auto start = start_of(problem, flat, from);
    if (!start) {
      run.detail = "the start uses devices that share cores, which the program cannot express";
      return run;
    }
    SolveOptions solve_options{
        .deadline = options.deadline, .threads = options.threads, .seed = options.seed};
    solve_options.on_progress = [&](const SolveProgress& p) {
      report_progress(options, "planner moirai", p.elapsed_s, 0, p.incumbent, p.bound);
    };
    HEDDLE_ASSIGN_OR_RETURN(const auto answer, solve_moirai(flat, *start, std::move(solve_options)));
    run.counters["rows"] = static_cast<double>(answer.rows);
    run.counters["columns"] = static_cast<double>(answer.columns);
    run.counters["nodes"] = static_cast<double>(answer.nodes);
    run.detail = (for_all ? "program over " + std::to_string(flat.num_ops()) + " units: " : "program: ") +
                 std::string(solve_status_name(answer.status));
    run.stop = options.deadline.should_stop() ? StopReason::kTimeLimit : StopReason::kFinished;
    if (may_bound && problem.costs->segments().empty() && has_fastest_routes(flat))
      run.bound_us = answer.bound_us;
    if (answer.plan) {
      const auto decisions = to_assignment(flat, *answer.plan);
      candidates.offer(for_all ? for_all(decisions) : decisions, "moirai");
      run.counters["program_us"] = answer.program_us;
    }
    return run;
  }
};

}  // namespace

PlannerEntry moirai_planner() {
  return {
      {.name = "moirai",
       .description =
           "mixed-integer program of placement, order and transfers, from the best constructive plan",
       .source = "Moirai, section III-D, equations 4 to 8",
       .objectives = {Objective::kLatency},
       .exploits = "unequal devices, transfers, copy engines, memory limits",
       .ignores = "links that several pairs of devices share; ops of large graphs are grouped into units"},
      [](const Problem& problem, const PlannerOptions& options) { return Moirai().plan(problem, options); }};
}

}  // namespace heddle
