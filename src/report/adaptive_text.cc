#include "heddle/report/adaptive_text.h"

#include <fmt/format.h>

#include "heddle/base/json.h"
#include "heddle/base/quantiles.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/report/text_table.h"

namespace heddle {

Shown adaptive_shown(const std::vector<PreparedPlan>& plans, const AdaptiveRun& run) {
  Json json = {{"requests", run.us.size()},
               {"median_us", median_us(run.us)},
               {"p95_us", quantile_us(run.us, 0.95)},
               {"switches", run.switches},
               {"outputs_equal", run.verified ? Json(run.right) : Json()},
               {"plans", Json::array()}};
  TextTable table({{"plan for"}, {"predicted", kRight}, {"requests", kRight}, {"median", kRight}});
  for (size_t i = 0; i < plans.size(); ++i) {
    const auto& own = run.us_of[i];
    const double predicted = plans[i].result.value_us;
    table.add_row({plans[i].what, format_us(predicted), std::to_string(own.size()),
                   own.empty() ? "-" : format_us(median_us(own))});
    json["plans"].push_back({{"cores", plans[i].what},
                             {"predicted_us", predicted},
                             {"requests", own.size()},
                             {"median_us", own.empty() ? Json() : Json(median_us(own))}});
  }
  const std::string text =
      table.to_string() +
      fmt::format("\n{}: median {}, 95th percentile {}; the plan changed {}\noutputs: {}\n",
                  counted(run.us.size(), "request"), format_us(median_us(run.us)),
                  format_us(quantile_us(run.us, 0.95)), counted(run.switches, "time"),
                  !run.verified ? "not compared"
                  : run.right   ? "equal to the unsplit model's, for every plan"
                                : "NOT EQUAL to the unsplit model's");
  return {std::move(json), text};
}

}  // namespace heddle
