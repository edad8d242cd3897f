#include "candidates.h"

#include "heddle/base/units.h"

namespace heddle {

Result<double> Judge::value_us(const Plan& plan) {
  EvaluateOptions options;
  options.critical = false;
  bool limited = false;
  for (int p = 0; p < problem_.cluster->num_memory_pools(); ++p)
    limited |= problem_.cluster->memory_pool_bytes(p) > 0;
  options.resources = limited;
  HEDDLE_RETURN_IF_ERROR(evaluator_.evaluate(plan, options, timeline_));
  for (int p = 0; limited && p < problem_.cluster->num_memory_pools(); ++p) {
    const auto limit = problem_.cluster->memory_pool_bytes(p);
    if (limit > 0 && timeline_.peak_memory_bytes[static_cast<size_t>(p)] > limit) return kImpossible;
  }
  return objective_us(problem_, timeline_);
}

double BestPlan::offer(const Assignment& assignment, const std::string& how) {
  auto plan = build_plan(problem_, assignment);
  if (plan.ok()) return offer(std::move(plan).value(), how);
  last_error_ = std::move(plan).error();
  return kImpossible;
}

double BestPlan::offer(const std::vector<Lane>& lanes, const std::string& how) {
  auto plan = build_plan(problem_, lanes);
  if (plan.ok()) return offer(std::move(plan).value(), how);
  last_error_ = std::move(plan).error();
  return kImpossible;
}

double BestPlan::offer(Plan plan, const std::string& how) {
  auto value = judge_.value_us(plan);
  if (!value.ok()) {
    last_error_ = std::move(value).error();
    return kImpossible;
  }
  if (*value < value_us_) {
    plan_ = std::move(plan);
    value_us_ = *value;
    how_ = how;
  }
  return *value;
}

Result<PlannerOutput> BestPlan::output(StopReason stop) const {
  if (!found()) {
    if (last_error_) return *last_error_;
    int64_t bytes = 0;
    for (const auto& p : problem_.graph->params()) bytes += p.bytes;
    return Error(Code::kInfeasible,
                 "the plan needs more memory than its devices have (all parameters: " + format_bytes(bytes) +
                     "); add devices or memory, or use another planner");
  }
  PlannerOutput out;
  out.plan = plan_;
  out.stop = stop;
  out.detail = how_;
  return out;
}

Assignment all_on(const Problem& problem, DeviceId device, bool one_segment) {
  Assignment a;
  const auto n = problem.graph->num_ops();
  a.device.assign(n, device);
  const auto topo = problem.graph->topological_order();
  a.order.assign(topo.begin(), topo.end());
  if (one_segment) a.segment.assign(n, 0);
  return a;
}

}  // namespace heddle
