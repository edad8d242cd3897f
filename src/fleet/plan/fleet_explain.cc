#include "heddle/fleet/fleet_explain.h"

#include <cmath>

#include "columns.h"

namespace heddle {
namespace {

// Latency of one request in a batch of `batch`; NaN if a time is missing.
double latency_us(const Fleet& fleet, size_t model, const FleetPipeline& pipeline, int batch) {
  const auto& m = fleet.models[model];
  double sum = batch_delay_us(fleet, model, batch);
  for (size_t k = 0; k < pipeline.partitions.size(); ++k) {
    const auto& p = pipeline.partitions[k];
    sum += blocks_us(m, p.device_class, p.share, batch, p.block_from, p.block_to);
    if (k + 1 < pipeline.partitions.size())
      sum +=
          transfer_us(fleet, m, batch, p.block_to, p.device_class, pipeline.partitions[k + 1].device_class);
  }
  return sum;
}

void view_pipeline(const Fleet& fleet, const FleetPlan& plan, size_t m, size_t i, FleetExplanation& out) {
  const auto& model = fleet.models[m];
  const auto& pipeline = plan.models[m].pipelines[i];
  PipelineView view{m, i, latency_us(fleet, m, pipeline, pipeline.batch),
                    model.slo_us - margin_us(fleet, plan, m), false};
  view.deadline_binds = latency_us(fleet, m, pipeline, pipeline.batch + 1) > view.limit_us;
  out.pipelines.push_back(view);
  for (size_t k = 0; k < pipeline.partitions.size(); ++k) {
    const auto& p = pipeline.partitions[k];
    const auto& dc = fleet.classes[static_cast<size_t>(p.device_class)];
    const double compute =
        kUsPerSecond * pipeline.batch /
        blocks_us(model, p.device_class, p.share, pipeline.batch, p.block_from, p.block_to);
    const double nic = nic_rate(model, nic_share(dc, p.share), p.block_from, p.block_to);
    PoolView pool{m,
                  i,
                  k,
                  static_cast<double>(p.count) / p.share,
                  static_cast<double>(p.count) * std::min(compute, nic),
                  0,
                  ""};
    pool.busy = pipeline.rate_per_s / pool.rate_per_s;
    if (pool.busy > 1 - 1e-9) pool.binds = nic < compute ? "NIC" : "devices";
    out.pools.push_back(std::move(pool));
  }
}

// NaN: the time was over, or Ctrl-C came, before there was a plan.
Result<double> value_planned(const Fleet& fleet, const std::string& planner,
                             const FleetPlanOptions& options) {
  const auto plan = plan_fleet(fleet, planner, options);
  if (plan.ok()) return plan->value;
  if (plan.error().code() == Code::kCancelled) return NAN;
  return plan.error();
}

}  // namespace

Result<FleetExplanation> explain_fleet_plan(const Fleet& fleet, const FleetPlan& plan,
                                            const std::string& planner, const FleetPlanOptions& options) {
  FleetExplanation out;
  for (size_t m = 0; m < plan.models.size(); ++m) {
    out.requests_per_s += plan.models[m].rate_per_s;
    for (size_t i = 0; i < plan.models[m].pipelines.size(); ++i) view_pipeline(fleet, plan, m, i, out);
  }
  const Fleet margined = with_margins_of(fleet, plan);
  if (!planner.empty()) {
    out.planned = plan.value;
    if (plan.planner != planner) {
      HEDDLE_ASSIGN_OR_RETURN(out.planned, value_planned(margined, planner, options));
    }
  }
  const auto used = devices_used(fleet, plan);
  for (size_t c = 0; c < fleet.classes.size(); ++c) {
    ClassView view{used[c], fleet.classes[c].count, NAN};
    out.cost_per_hour += static_cast<double>(used[c]) * fleet.classes[c].cost_per_hour;
    out.watts += static_cast<double>(used[c]) * fleet.classes[c].watts;
    const bool priced = options.objective != FleetObjective::kCost || fleet.classes[c].cost_per_hour > 0;
    const bool powered = options.objective != FleetObjective::kPower || fleet.classes[c].watts > 0;
    if (!planner.empty() && priced && powered) {
      Fleet more = margined;
      ++more.classes[c].count;
      more.classes[c].devices.clear();
      HEDDLE_ASSIGN_OR_RETURN(view.with_one_more, value_planned(more, planner, options));
    }
    out.classes.push_back(view);
  }
  if (out.requests_per_s > 0) out.cost_per_million = out.cost_per_hour / (out.requests_per_s * 3600) * 1e6;
  return out;
}

}  // namespace heddle
