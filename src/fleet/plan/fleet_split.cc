#include "heddle/fleet/fleet_split.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "heddle/fleet/fleet_check.h"

namespace heddle {
namespace {

// [server] its models, ascending.
std::vector<std::vector<size_t>> models_by_server(const FleetPlan& plan, size_t servers) {
  std::vector<size_t> order(plan.models.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(
      order, [&](size_t a, size_t b) { return plan.models[a].rate_per_s > plan.models[b].rate_per_s; });
  std::vector<std::vector<size_t>> models(servers);
  std::vector<double> rate(servers, 0.0);
  for (size_t i = 0; i < order.size(); ++i) {
    // The first ones go to one server each, so that none is empty, whatever the rates.
    const size_t least = i < servers ? i : static_cast<size_t>(std::ranges::min_element(rate) - rate.begin());
    models[least].push_back(order[i]);
    rate[least] += plan.models[order[i]].rate_per_s;
  }
  for (auto& list : models) std::ranges::sort(list);
  return models;
}

FleetPart part_of(const Fleet& fleet, const FleetPlan& plan, const std::vector<size_t>& models,
                  size_t number) {
  FleetPart part;
  part.fleet = fleet;
  part.fleet.name = fleet.name + "-" + std::to_string(number);
  part.fleet.models.clear();
  part.plan = plan;
  part.plan.fleet = part.fleet.name;
  part.plan.models.clear();
  double weight = 0, all = 0;
  for (const auto& model : fleet.models) all += model.weight;
  for (const size_t m : models) {
    part.fleet.models.push_back(fleet.models[m]);
    part.plan.models.push_back(plan.models[m]);
    weight += fleet.models[m].weight;
  }
  part.plan.load_per_s = plan.load_per_s * weight / all;
  const auto used = devices_used(part.fleet, part.plan);
  for (size_t c = 0; c < used.size(); ++c) part.fleet.classes[c].count = used[c];
  return part;
}

double rate_of(const FleetPlan& plan) {
  double rate = 0;
  for (const auto& model : plan.models) rate += model.rate_per_s;
  return rate;
}

// What no pool uses, in proportion to the parts' rates; what is left over by rounding goes to the first parts.
void divide_free_devices(const Fleet& fleet, std::vector<FleetPart>& parts) {
  double all = 0;
  for (const auto& part : parts) all += rate_of(part.plan);
  for (size_t c = 0; c < fleet.classes.size(); ++c) {
    int64_t free = fleet.classes[c].count;
    for (const auto& part : parts) free -= part.fleet.classes[c].count;
    int64_t left = free;
    for (auto& part : parts) {
      const double share = all > 0 ? rate_of(part.plan) / all : 1.0 / static_cast<double>(parts.size());
      const auto own = std::min(left, static_cast<int64_t>(std::floor(static_cast<double>(free) * share)));
      part.fleet.classes[c].count += own;
      left -= own;
    }
    for (size_t p = 0; left > 0; p = (p + 1) % parts.size(), --left) ++parts[p].fleet.classes[c].count;
  }
}

// A class's first devices to the first part.
void divide_names(const Fleet& fleet, std::vector<FleetPart>& parts) {
  for (size_t c = 0; c < fleet.classes.size(); ++c) {
    auto next = fleet.classes[c].devices.begin();
    for (auto& part : parts) {
      if (fleet.classes[c].devices.empty()) continue;
      auto& own = part.fleet.classes[c];
      own.devices.assign(next, next + own.count);
      next += own.count;
    }
  }
}

}  // namespace

Result<std::vector<FleetPart>> split_fleet(const Fleet& fleet, const FleetPlan& plan, int servers,
                                           const FleetPlanOptions& options) {
  HEDDLE_RETURN_IF_ERROR(check_fleet_plan(fleet, plan));
  if (servers < 1 || static_cast<size_t>(servers) > fleet.models.size())
    return invalid_input(std::to_string(servers) + " servers for " + std::to_string(fleet.models.size()) +
                         " models: each server needs at least one model");
  std::vector<FleetPart> parts;
  for (const auto& models : models_by_server(plan, static_cast<size_t>(servers)))
    parts.push_back(part_of(fleet, plan, models, parts.size()));
  divide_free_devices(fleet, parts);
  divide_names(fleet, parts);
  for (FleetPart& part : parts) {
    FleetPlanOptions planning = options;
    planning.objective = part.plan.objective;
    planning.load_per_s = part.plan.load_per_s;
    HEDDLE_ASSIGN_OR_RETURN(FleetPlan anew,
                            plan_fleet(with_margins_of(part.fleet, part.plan), "auto", planning));
    for (size_t m = 0; m < anew.models.size(); ++m) anew.models[m].margin_us = part.plan.models[m].margin_us;
    evaluate_fleet_plan(part.fleet, part.plan);
    const bool better = more_is_better(anew.objective) ? anew.value > part.plan.value * (1 + 1e-9)
                                                       : anew.value < part.plan.value * (1 - 1e-9);
    part.plan.bound = anew.bound;
    part.plan.proof = anew.proof;
    if (better) part.plan = std::move(anew);
    HEDDLE_RETURN_IF_ERROR(check_planned(part.fleet, part.plan));
  }
  return parts;
}

}  // namespace heddle
