#include "heddle/fleet/fleet_plan.h"

#include <algorithm>
#include <cmath>

#include "fleet_formulas.h"
#include "heddle/base/gap.h"

namespace heddle {
namespace {

constexpr const char* kObjectiveNames[] = {"max-min", "cost", "power", "goodput"};

}  // namespace

const char* fleet_objective_name(FleetObjective objective) {
  return kObjectiveNames[static_cast<int>(objective)];
}

std::optional<FleetObjective> fleet_objective_named(std::string_view name) {
  for (int i = 0; i < 4; ++i)
    if (name == kObjectiveNames[i]) return static_cast<FleetObjective>(i);
  return std::nullopt;
}

bool more_is_better(FleetObjective objective) {
  return objective == FleetObjective::kMaxMin || objective == FleetObjective::kGoodput;
}

double FleetPlan::gap() const {
  return more_is_better(objective) ? relative_gap(bound, value) : relative_gap(value, bound);
}

double margin_us(const Fleet& fleet, const FleetPlan& plan, size_t model) {
  return plan.models[model].margin_us.value_or(fleet.models[model].margin_us);
}

Fleet with_margins_of(const Fleet& fleet, const FleetPlan& plan) {
  Fleet with = fleet;
  for (size_t m = 0; m < with.models.size(); ++m) with.models[m].margin_us = margin_us(fleet, plan, m);
  return with;
}

double model_load(const Fleet& fleet, const FleetPlan& plan, size_t model) {
  double weights = 0;
  for (const auto& m : fleet.models) weights += m.weight;
  return plan.load_per_s * fleet.models[model].weight / weights;
}

std::vector<int64_t> devices_used(const Fleet& fleet, const FleetPlan& plan) {
  std::vector<int64_t> used(fleet.classes.size(), 0);
  for (const auto& m : plan.models) {
    for (size_t k = 0; k < static_cast<size_t>(kMaxPartitions); ++k) {
      std::vector<int64_t> twelfths(fleet.classes.size(), 0);
      for (const auto& p : m.pipelines)
        if (k < p.partitions.size())
          twelfths[static_cast<size_t>(p.partitions[k].device_class)] +=
              p.partitions[k].count * (kTwelfths / p.partitions[k].share);
      for (size_t c = 0; c < used.size(); ++c) used[c] += whole_devices(twelfths[c]);
    }
  }
  return used;
}

void evaluate_fleet_plan(const Fleet& fleet, FleetPlan& plan) {
  for (size_t m = 0; m < plan.models.size(); ++m) {
    const auto& model = fleet.models[m];
    plan.models[m].rate_per_s = 0;
    for (auto& pipeline : plan.models[m].pipelines) {
      pipeline.rate_per_s = INFINITY;
      for (const auto& p : pipeline.partitions) {
        const double infer_us =
            blocks_us(model, p.device_class, p.share, pipeline.batch, p.block_from, p.block_to);
        const double nic = nic_share(fleet.classes[static_cast<size_t>(p.device_class)], p.share);
        const double rate =
            virtual_device_rate(model, nic, pipeline.batch, p.block_from, p.block_to, infer_us);
        pipeline.rate_per_s = std::min(pipeline.rate_per_s, static_cast<double>(p.count) * rate);
      }
      plan.models[m].rate_per_s += pipeline.rate_per_s;
    }
  }
  std::vector<double> rates, loads;
  for (size_t m = 0; m < plan.models.size(); ++m) {
    rates.push_back(plan.models[m].rate_per_s);
    loads.push_back(plan.objective == FleetObjective::kMaxMin ? fleet.models[m].weight
                                                              : model_load(fleet, plan, m));
  }
  plan.value = fleet_value(fleet, plan.objective, rates, loads, devices_used(fleet, plan));
}

double device_cost(const DeviceClass& device_class, FleetObjective objective) {
  if (objective == FleetObjective::kCost) return device_class.cost_per_hour;
  return objective == FleetObjective::kPower ? device_class.watts : 0;
}

double fleet_value(const Fleet& fleet, FleetObjective objective, std::span<const double> rates,
                   std::span<const double> loads, std::span<const int64_t> used) {
  double value = objective == FleetObjective::kMaxMin ? INFINITY : 0;
  for (size_t m = 0; m < rates.size(); ++m) {
    if (objective == FleetObjective::kMaxMin) value = std::min(value, rates[m] / loads[m]);
    if (objective == FleetObjective::kGoodput) value += std::min(rates[m], loads[m]);
  }
  for (size_t c = 0; c < used.size(); ++c)
    value += static_cast<double>(used[c]) * device_cost(fleet.classes[c], objective);
  return value;
}

}  // namespace heddle
