#include <fmt/format.h>

#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/report/moves.h"
#include "heddle/report/plan_text.h"
#include "heddle/report/text_table.h"

namespace heddle {

Json move_json(const Problem& problem, const Move& move) {
  Json row = {{"device", problem.cluster->device(move.device).name}};
  Json ops = Json::array();
  for (const OpId op : move.ops) ops.push_back(problem.graph->op(op).name);
  row["ops"] = ops;
  if (move.ops_us < kImpossible) row["ops_us"] = move.ops_us;
  row["origin"] = origin_name(move.origin);
  if (move.value_us) row["value_us"] = *move.value_us;
  if (!move.refused.empty()) row["refused"] = move.refused;
  return row;
}

std::string moves_text(const Problem& problem, OpId op, const std::vector<Move>& moves) {
  TextTable table({{"device"}, {"time there", kRight}, {objective_name(problem.objective), kRight}, {""}});
  for (const Move& move : moves) {
    const bool runs = move.ops_us < kImpossible;
    table.add_row({problem.cluster->device(move.device).name,
                   runs ? format_us(move.ops_us) + " " + origin_name(move.origin) : "-",
                   move.value_us ? value_text(problem, *move.value_us) : "-",
                   move.planned ? "as planned" : move.refused});
  }
  return fmt::format("{} on each device, all else as planned\n\n{}", problem.graph->op(op).name,
                     table.to_string());
}

std::string best_use_text(const Problem& problem, DeviceId device, const BestUse& best, double planned_us) {
  const std::string& name = problem.cluster->device(device).name;
  if (!best.move) return "no segment or op can move to " + name + "\n";
  const Move& move = *best.move;
  const std::string among = best.tried == best.candidates
                                ? "of all segments and ops"
                                : fmt::format("of the {} of {} segments and ops that there was time to try",
                                              best.tried, best.candidates);
  return fmt::format("{}: {}, moving {} ({}, {} there) costs least: {} instead of {}\n", name, among,
                     problem.graph->op(move.ops.front()).name, counted(move.ops.size(), "op"),
                     format_us(move.ops_us), value_text(problem, *move.value_us),
                     value_text(problem, planned_us));
}

}  // namespace heddle
