// The one list of planners: `heddle planners`, docs/planners.md and the tests are made from it.
#include <algorithm>

#include "heddle/planners/planner.h"

namespace heddle {

#define PLANNER(function) PlannerEntry function();
#include "planners.inc"
#undef PLANNER

namespace {

std::vector<PlannerEntry> make_registry() {
  std::vector<PlannerEntry> registry;
  const auto add = [&](PlannerEntry entry) {
    const auto aliases = std::exchange(entry.info.aliases, {});
    registry.push_back(entry);
    for (const PlannerAlias& alias : aliases) {
      PlannerEntry& other = registry.emplace_back(entry);
      other.info.name = alias.name;
      other.info.description = alias.description;
      if (!alias.source.empty()) other.info.source = alias.source;
      if (!alias.exploits.empty()) other.info.exploits = alias.exploits;
      if (!alias.ignores.empty()) other.info.ignores = alias.ignores;
      other.alias_of = entry.info.name;
      other.chosen = alias.settings;
    }
  };
#define PLANNER(function) add(function());
#include "planners.inc"
#undef PLANNER
  return registry;
}

}  // namespace

bool PlannerEntry::supports(const Problem& problem) const {
  const auto has = [](const auto& list, auto value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  return has(info.objectives, problem.objective) && has(info.transfers, problem.execution.transfers);
}

Result<PlannerOutput> PlannerEntry::plan(const Problem& problem, PlannerOptions options) const {
  for (const auto& [name, value] : chosen) options.settings[name] = value;
  return run(problem, options);
}

std::span<const PlannerEntry> planner_registry() {
  static const std::vector<PlannerEntry> registry = make_registry();
  return registry;
}

const PlannerEntry* find_planner(std::string_view name) {
  for (const PlannerEntry& entry : planner_registry()) {
    if (entry.info.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace heddle
