#include "explain_tables.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/units.h"

namespace heddle {
namespace {

constexpr size_t kMostTableRows = 20;

std::string value_text(const Explanation& e, double us) { return objective_text(e.objective, e.batch, us); }

}  // namespace

std::string path_shares_text(const Explanation& e) {
  return "compute " + percent(e.compute_share) + ", transfers " + percent(e.transfer_share) + ", loads " +
         percent(e.load_share);
}

TextTable variants_table(const Explanation& e) {
  std::vector<std::string> names;
  for (const auto& choice : e.variants) {
    for (const auto& time : choice.times) {
      if (std::find(names.begin(), names.end(), time.variant) == names.end()) names.push_back(time.variant);
    }
  }
  std::vector<TextTable::Column> columns = {{"segment"}};
  for (const auto& name : names) columns.push_back({name, TextTable::Align::kRight});
  TextTable table(columns);
  const size_t shown = std::min(e.variants.size(), kMostTableRows);
  for (size_t i = 0; i < shown; ++i) {
    std::vector<std::string> row(names.size() + 1, "-");
    row[0] = e.variants[i].segment;
    for (const auto& time : e.variants[i].times) {
      const auto at = std::find(names.begin(), names.end(), time.variant) - names.begin();
      auto& cell = row[static_cast<size_t>(at) + 1];
      cell = !std::isfinite(time.us) ? "cannot run"
                                     : format_us(time.us) + (time.measured ? "" : ", not measured");
      if (time.chosen) cell = "* " + cell;
    }
    table.add_row(row);
  }
  table.set_left_out(e.variants.size() - shown);
  return table;
}

TextTable path_table(const Explanation& e) {
  TextTable table({{"step"}, {"time", TextTable::Align::kRight}, {"share", TextTable::Align::kRight}});
  const size_t shown = std::min(e.critical_path.size(), kMostTableRows);
  for (size_t i = 0; i < shown; ++i) {
    const auto& s = e.critical_path[i];
    table.add_row({s.what, format_us(s.us), percent(s.share)});
  }
  table.set_left_out(e.critical_path.size() - shown);
  return table;
}

TextTable suggestions_table(const Explanation& e) {
  TextTable table({{"change"}, {"predicted", TextTable::Align::kRight}, {"gain", TextTable::Align::kRight}});
  for (const auto& s : e.suggestions) {
    // More requests a second, or less time.
    const double gain = e.objective == Objective::kThroughput ? e.value_us / s.value_us - 1 : s.gain;
    table.add_row({s.change, value_text(e, s.value_us), percent(gain)});
  }
  return table;
}

TextTable robustness_table(const Explanation& e) {
  const Robustness& r = *e.robustness;
  const bool rates = e.objective == Objective::kThroughput;
  TextTable table(
      {{"if"}, {"predicted", TextTable::Align::kRight}, {rates ? "less" : "more", TextTable::Align::kRight}});
  const auto add = [&](const std::string& change, double slowed_us) {
    const double lost = rates ? 1 - r.value_us / slowed_us : slowed_us / r.value_us - 1;
    table.add_row({change, value_text(e, slowed_us), percent(lost)});
  };
  for (const auto& loss : r.losses)
    add(loss.worst.what + " loses " + std::to_string(std::lround(100 * loss.share)) + " % of its speed",
        loss.worst.value_us);
  if (r.core)
    add("another process takes " + r.core->what + (r.core->measured ? " (slowdown measured)" : ""),
        r.core->value_us);
  return table;
}

}  // namespace heddle
