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

std::string objectives_text(const PlannerInfo& info) {
  std::string text;
  for (const Objective o : info.objectives)
    text += (text.empty() ? "" : ", ") + std::string(objective_name(o));
  return text;
}

std::string settings_rows(const PlannerInfo& info) {
  std::string rows;
  for (const PlannerSetting& setting : info.settings) {
    std::string values;
    for (const std::string& value : setting.values) values += (values.empty() ? "" : ", ") + value;
    rows += "| `" + info.name + "` | " + setting.name + " | " + values + " | " + setting.what + " |\n";
  }
  return rows;
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

std::string planners_markdown() {
  std::string text =
      "# Planners\n\n"
      "Made by `heddle planners --markdown` from `src/planners/core/planners.inc`. Every planner's plan is "
      "timed by the same\n"
      "evaluator, verified by the same checker and shown with a proven lower bound. A planner stops at its "
      "deadline with\n"
      "the best plan so far, and can be cancelled. It gives the same plan for the same seed unless the "
      "deadline stopped it.\n\n"
      "| planner | objectives | what it does | source |\n|---|---|---|---|\n";
  for (const PlannerEntry& entry : planner_registry()) {
    const PlannerInfo& info = entry.info;
    text += "| `" + info.name + "`" + (info.ready ? "" : " (experimental)") + " | " + objectives_text(info) +
            " | " + info.description + " | " + info.source + " |\n";
  }
  text += "\n## What each exploits and ignores\n\n| planner | exploits | ignores |\n|---|---|---|\n";
  for (const PlannerEntry& entry : planner_registry()) {
    text += "| `" + entry.info.name + "` | " + entry.info.exploits + " | " + entry.info.ignores + " |\n";
  }
  text +=
      "\n## Settings\n\nThe first value is the default. An alias is a planner with settings of its own.\n\n"
      "| planner | setting | values | what it chooses |\n|---|---|---|---|\n";
  for (const PlannerEntry& entry : planner_registry()) {
    if (entry.alias_of.empty()) text += settings_rows(entry.info);
  }
  text += "\n| alias | planner | settings |\n|---|---|---|\n";
  for (const PlannerEntry& entry : planner_registry()) {
    if (entry.alias_of.empty()) continue;
    text += "| `" + entry.info.name + "` | `" + entry.alias_of + "` |";
    for (const auto& [name, value] : entry.chosen) text += " " + name + "=" + value;
    text += " |\n";
  }
  return text;
}

}  // namespace heddle
