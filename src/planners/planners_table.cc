#include "heddle/planners/planners_table.h"

#include "heddle/planners/planner.h"

namespace heddle {

std::string planners_markdown() {
  std::string text =
      "# Planners\n\n"
      "Made by `heddle planners --markdown` from the registry. Every plan of every planner is timed by the "
      "one evaluator and\n"
      "passes the one checker; the bound beside it is the better of the planner's own and the combinatorial "
      "one.\n\n"
      "| planner | what it does | source | objectives | exploits | ignores |\n|---|---|---|---|---|---|\n";
  for (const auto& entry : planner_registry()) {
    const auto& i = entry.info;
    std::string objectives;
    for (const auto o : i.objectives)
      objectives += (objectives.empty() ? "" : ", ") + std::string(objective_name(o));
    text += "| `" + i.name + "` | " + i.description + " | " + i.source + " | " + objectives + " | " +
            i.exploits + " | " + i.ignores + " |\n";
  }
  return text;
}

}  // namespace heddle
