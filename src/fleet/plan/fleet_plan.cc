#include "heddle/fleet/fleet_plan.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/units.h"

namespace heddle {
namespace {

constexpr int kTwelfth = 12;  // every share 1/1..1/kMaxShare is a whole number of them
static_assert(kTwelfth % 3 == 0 && kTwelfth % 4 == 0 && kMaxShare == 4);

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
  const double distance = more_is_better(objective) ? bound - value : value - bound;
  if (distance <= 0 || bound == 0) return distance > 0 ? INFINITY : 0;
  return distance / bound;
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
              p.partitions[k].count * (kTwelfth / p.partitions[k].share);
      for (size_t c = 0; c < used.size(); ++c) used[c] += (twelfths[c] + kTwelfth - 1) / kTwelfth;
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
        const auto& dc = fleet.classes[static_cast<size_t>(p.device_class)];
        double infer_us = 0;
        for (int k = p.block_from; k < p.block_to; ++k)
          infer_us += model.block_us(static_cast<size_t>(p.device_class), p.share, pipeline.batch, k);
        double rate = kUsPerSecond * pipeline.batch / infer_us;
        const double nic = dc.nic_bytes_per_s / (p.share * dc.devices_per_server);
        for (const int cut : {p.block_from, p.block_to}) {
          const double bytes = model.cut_bytes[static_cast<size_t>(cut)];
          if (cut > 0 && cut < model.blocks && bytes > 0) rate = std::min(rate, nic / bytes);
        }
        pipeline.rate_per_s = std::min(pipeline.rate_per_s, static_cast<double>(p.count) * rate);
      }
      plan.models[m].rate_per_s += pipeline.rate_per_s;
    }
  }
  const auto used = devices_used(fleet, plan);
  plan.value = plan.objective == FleetObjective::kMaxMin ? INFINITY : 0;
  for (size_t m = 0; m < plan.models.size(); ++m) {
    if (plan.objective == FleetObjective::kMaxMin)
      plan.value = std::min(plan.value, plan.models[m].rate_per_s / fleet.models[m].weight);
    if (plan.objective == FleetObjective::kGoodput)
      plan.value += std::min(plan.models[m].rate_per_s, model_load(fleet, plan, m));
  }
  for (size_t c = 0; c < used.size(); ++c) {
    if (plan.objective == FleetObjective::kCost)
      plan.value += static_cast<double>(used[c]) * fleet.classes[c].cost_per_hour;
    if (plan.objective == FleetObjective::kPower)
      plan.value += static_cast<double>(used[c]) * fleet.classes[c].watts;
  }
}

}  // namespace heddle
