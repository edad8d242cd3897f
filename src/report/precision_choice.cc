// What a budget for the error of narrower types decided.
#include "precision_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/cluster/catalogue.h"
#include "heddle/graph/quantised.h"
#include "heddle/report/explain.h"
#include "heddle/report/text_table.h"

namespace heddle {

Json precision_choice_json(const Problem& problem) {
  const PrecisionChoice& c = *problem.precision;
  Json units = Json::array();
  for (const auto& u : c.units)
    units.push_back({{"unit", problem.graph->op(u.op).name},
                     {"type", precision_name(u.type)},
                     {"agreement", u.agreement},
                     {"mean_error", u.mean},
                     {"allowed", u.allowed}});
  return {{"budget", {{"agreement", c.least_agreement}, {"mean_error", c.most_mean}}},
          {"samples", c.samples},
          {"agreement", c.agreement},
          {"mean_error", c.mean},
          {"largest_error", c.largest},
          {"units", std::move(units)}};
}

std::string int8_text(const Problem& problem) {
  const auto units = std::ranges::count_if(problem.graph->ops(), is_int8);
  if (units == 0) return "";
  std::string rates;
  for (const DeviceId id : problem.usable_devices()) {
    const Device& device = problem.cluster->device(id);
    const CatalogueDevice* row = rated_by_catalogue(device);
    if (row == nullptr || row->int8_ops <= device.peak_flops) continue;
    rates += (rates.empty() ? "" : ", ") + device.name + " " + format_si(row->int8_ops, "OP/s");
  }
  return fmt::format("Quantised model: {} of {} units have int8 products. {}.\n", units,
                     problem.graph->num_ops(),
                     rates.empty() ? "No device has a rate for int8"
                                   : "Estimates count these at the rates for int8: " + rates);
}

std::string precision_choice_text(const Problem& problem) {
  if (!problem.precision) return "";
  const PrecisionChoice& c = *problem.precision;
  std::string text = fmt::format(
      "Precision: {:.4g} % of decisions as in f32 (at least {:.4g} %), mean error {:.2g} of the range (at "
      "most {:.2g}), "
      "{}\n",
      100 * c.agreement, 100 * c.least_agreement, c.mean, c.most_mean,
      counted(static_cast<uint64_t>(c.samples), "sample"));
  if (c.units.empty()) return text + "The whole model in the devices' narrowest types keeps to the budget.\n";
  return text;
}

std::optional<TextTable> precision_units_table(const Problem& problem) {
  constexpr size_t kRows = 20;
  if (!problem.precision) return std::nullopt;
  const PrecisionChoice& c = *problem.precision;
  std::vector<PrecisionChoice::Unit> kept;
  std::ranges::copy_if(c.units, std::back_inserter(kept), [](const auto& u) { return !u.allowed; });
  std::ranges::stable_sort(kept, std::greater(), &PrecisionChoice::Unit::mean);
  if (kept.empty()) return std::nullopt;
  TextTable table({{"not in this type"},
                   {"type"},
                   {"mean error alone", TextTable::Align::kRight},
                   {"decisions alone", TextTable::Align::kRight}});
  for (size_t i = 0; i < kept.size() && i < kRows; ++i)
    table.add_row({problem.graph->op(kept[i].op).name, precision_name(kept[i].type),
                   fmt::format("{:.2g}", kept[i].mean), fmt::format("{:.4g} %", 100 * kept[i].agreement)});
  table.set_left_out(kept.size() - std::min(kept.size(), kRows));
  return table;
}

}  // namespace heddle
