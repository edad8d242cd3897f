#include "heddle/report/grade_text.h"

#include <fmt/format.h>

#include "heddle/base/gap.h"
#include "heddle/base/json.h"
#include "heddle/base/terminal.h"
#include "heddle/report/plan_text.h"
#include "heddle/report/text_table.h"

namespace heddle {
namespace {

// Where its ops are, and how much of its time that is.
std::string device_shares(const Problem& problem, const PlanResult& result) {
  std::string text;
  for (size_t d = 0; d < problem.cluster->num_devices(); ++d) {
    const double busy = result.timeline.device_busy_us[d];
    if (busy > 0)
      text += (text.empty() ? "" : ", ") + problem.cluster->device(DeviceId(d)).name + " " +
              percent(busy / result.value_us);
  }
  return text;
}

}  // namespace

Json grade_json(const Grade& grade) {
  const Problem& problem = grade.session.problem;
  const auto row = [&](const PlanResult& result) {
    Json json = {{"gap", result.gap}, {"planner", result.planner}, {"segments", result.plan.segments.size()}};
    put_value(json, problem, result.value_us, result.bound.us);
    return json;
  };
  return {{"model", grade.session.loaded.name},
          {"cluster", problem.cluster->name()},
          {"objective", objective_name(problem.objective)},
          {"format", placement_format_name(grade.placement.format)},
          {"bound_reason", grade.graded.bound.proof.reason},
          {"bound_claimed_by", grade.graded.bound.proof.claimed_by},
          {"placement", row(grade.graded)},
          {"best", row(grade.best)},
          {"ratio", grade.graded.value_us / grade.best.value_us}};
}

std::string grade_text(const Grade& grade) {
  const Problem& problem = grade.session.problem;
  TextTable table({{""}, {objective_name(problem.objective), kRight}, {"gap", kRight}, {"busy"}});
  for (const auto& [name, result] : {std::pair("as placed", &grade.graded), std::pair("Heddle", &grade.best)})
    table.add_row(
        {name, value_text(problem, result->value_us), percent(result->gap), device_shares(problem, *result)});
  const double ratio = grade.graded.value_us / grade.best.value_us;
  return fmt::format(
      "{} on {}, {} ({})\n\n{}\n{}\n", grade.session.loaded.name, problem.cluster->name(),
      bound_text(value_text(problem, grade.graded.bound.us)), grade.graded.bound.proof.text(),
      table.to_string(),
      painted(Ink::kBold,
              ratio > 1.0005
                  ? fmt::format("The placement takes {:.3f} times as long as Heddle's plan.", ratio)
                  : "Heddle found nothing better."));
}

}  // namespace heddle
