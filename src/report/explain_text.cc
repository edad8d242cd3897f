#include <algorithm>
#include <cmath>
#include <cstdio>

#include "heddle/base/gap.h"
#include "heddle/base/json.h"
#include "heddle/base/terminal.h"
#include "heddle/base/units.h"
#include "heddle/report/explain.h"
#include "heddle/report/text_table.h"

namespace heddle {
namespace {

// One row for each segment, one column for each variant that any of them has; the chosen time is marked.
std::string variants_text(const std::vector<VariantChoice>& choices) {
  constexpr size_t kRows = 20;
  if (choices.empty()) return "";
  std::vector<std::string> names;
  for (const auto& choice : choices) {
    for (const auto& time : choice.times) {
      if (std::find(names.begin(), names.end(), time.variant) == names.end()) names.push_back(time.variant);
    }
  }
  std::vector<TextTable::Column> columns = {{"segment"}};
  for (const auto& name : names) columns.push_back({name, TextTable::Align::kRight});
  TextTable table(columns);
  for (size_t i = 0; i < choices.size() && i < kRows; ++i) {
    std::vector<std::string> row(names.size() + 1, "-");
    row[0] = choices[i].segment;
    for (const auto& time : choices[i].times) {
      const auto at = std::find(names.begin(), names.end(), time.variant) - names.begin();
      auto& cell = row[static_cast<size_t>(at) + 1];
      cell = !std::isfinite(time.us) ? "cannot run"
                                     : format_us(time.us) + (time.measured ? "" : ", not measured");
      if (time.chosen) cell = "* " + cell;
    }
    table.add_row(row);
  }
  std::string out =
      "\nEngines (* is the plan's choice; a segment that was not measured as one has the sum of its "
      "units)\n";
  out = wrapped(out, 98, 0) + table.to_string();
  if (choices.size() > kRows) out += "... and " + std::to_string(choices.size() - kRows) + " more\n";
  return out;
}

Json variants_json(const std::vector<VariantChoice>& choices) {
  Json list = Json::array();
  for (const auto& choice : choices) {
    Json times = Json::array();
    for (const auto& time : choice.times) {
      times.push_back({{"device", time.device},
                       {"variant", time.variant},
                       {"us", std::isfinite(time.us) ? Json(time.us) : Json()},
                       {"measured", time.measured},
                       {"chosen", time.chosen}});
    }
    list.push_back({{"segment", choice.segment}, {"times", std::move(times)}});
  }
  return list;
}

std::string value_text(const Explanation& e, double us) { return objective_text(e.objective, e.batch, us); }

Json next_bottleneck_json(const Explanation& e) {
  if (!e.next_bottleneck) return {};
  const NextBottleneck& b = *e.next_bottleneck;
  return {{"bottleneck", b.bottleneck}, {"next", b.next}, {"limit_us", b.limit_us}};
}

std::string robustness_text(const Explanation& e) {
  const Robustness& r = *e.robustness;
  const bool rates = e.objective == Objective::kThroughput;
  TextTable table(
      {{"if"}, {"predicted", TextTable::Align::kRight}, {rates ? "less" : "more", TextTable::Align::kRight}});
  const auto add = [&](const std::string& change, const SlowedPlan& slowed) {
    const double lost = rates ? 1 - r.value_us / slowed.value_us : slowed.value_us / r.value_us - 1;
    table.add_row({change, value_text(e, slowed.value_us), percent(lost)});
  };
  for (const auto& loss : r.losses)
    add(loss.worst.what + " loses " + std::to_string(std::lround(100 * loss.share)) + " % of its speed",
        loss.worst);
  if (r.core) add("another process takes " + r.core->what, *r.core);
  return "\nOn a busy machine (the same plan; the device or core whose loss costs most)\n" +
         table.to_string();
}

}  // namespace

std::string objective_text(Objective objective, int batch, double us) {
  if (objective != Objective::kThroughput) return format_us(us);
  return format_requests(us > 0 ? kUsPerSecond * batch / us : 0);
}

Json robustness_json(const Robustness& r) {
  Json list = Json::array();
  for (const auto& loss : r.losses)
    list.push_back(
        {{"lost_share", loss.share}, {"device", loss.worst.what}, {"value_us", loss.worst.value_us}});
  Json json = {{"slower_device", std::move(list)}};
  if (r.core) json["core_taken"] = {{"core", r.core->what}, {"value_us", r.core->value_us}};
  return json;
}

std::string explanation_text(const Explanation& e) {
  constexpr size_t kPathRows = 20;
  std::string out = wrapped(painted(Ink::kBold, "predicted " + value_text(e, e.value_us)) + ", " +
                                bound_text(value_text(e, e.bound.us)) + " (" + e.bound.proof.text() +
                                "), gap " + percent(e.gap),
                            98, 2);
  if (const auto& b = e.next_bottleneck)
    out += wrapped("bottleneck: " + b->bottleneck + "; next: " + b->next + ", which would allow " +
                       value_text(e, b->limit_us),
                   98, 2);
  out += "\nDevices\n";
  TextTable devices({{"device"},
                     {"busy", TextTable::Align::kRight},
                     {"segments", TextTable::Align::kRight},
                     {"parameters", TextTable::Align::kRight}});
  for (const auto& d : e.devices) {
    devices.add_row(
        {d.device, percent(d.busy_share), std::to_string(d.segments), format_bytes(d.param_bytes)});
  }
  out += devices.to_string();
  for (const auto& d : e.devices)
    out += wrapped("  " + d.device + (d.used ? ": " : ": unused, ") + d.reason, 98, 4);
  out += variants_text(e.variants);
  out += "\nCritical path: compute " + percent(e.compute_share) + ", transfers " + percent(e.transfer_share) +
         ", loads " + percent(e.load_share) + "\n";
  TextTable path({{"step"}, {"time", TextTable::Align::kRight}, {"share", TextTable::Align::kRight}});
  for (size_t i = 0; i < e.critical_path.size() && i < kPathRows; ++i) {
    const auto& s = e.critical_path[i];
    path.add_row({s.what, format_us(s.us), percent(s.share)});
  }
  out += path.to_string();
  if (e.critical_path.size() > kPathRows)
    out += "... and " + std::to_string(e.critical_path.size() - kPathRows) + " more\n";
  if (!e.suggestions.empty()) {
    out += "\nWhat would help (the same plan under one change; planning anew may gain more)\n";
    TextTable table(
        {{"change"}, {"predicted", TextTable::Align::kRight}, {"gain", TextTable::Align::kRight}});
    for (const auto& s : e.suggestions) {
      // More requests a second, or less time.
      const double gain = e.objective == Objective::kThroughput ? e.value_us / s.value_us - 1 : s.gain;
      table.add_row({s.change, value_text(e, s.value_us), percent(gain)});
    }
    out += table.to_string();
  }
  out += e.precision_text;
  if (e.robustness && e.value_us > 0) out += robustness_text(e);
  for (const auto& w : e.warnings) out += "\n" + wrapped(painted(Ink::kYellow, "warning:") + " " + w, 98, 2);
  return out;
}

Json explanation_json(const Explanation& e) {
  Json devices = Json::array(), path = Json::array(), suggestions = Json::array();
  for (const auto& d : e.devices) {
    devices.push_back({{"device", d.device},
                       {"used", d.used},
                       {"requested", d.requested},
                       {"busy_share", d.busy_share},
                       {"segments", d.segments},
                       {"param_bytes", d.param_bytes},
                       {"reason", d.reason}});
  }
  for (const auto& s : e.critical_path) path.push_back({{"what", s.what}, {"us", s.us}, {"share", s.share}});
  for (const auto& s : e.suggestions)
    suggestions.push_back({{"change", s.change}, {"value_us", s.value_us}, {"gain", s.gain}});
  return {{"value_us", e.value_us},
          {"bound", e.bound.us},
          {"bound_reason", e.bound.proof.reason},
          {"bound_claimed_by", e.bound.proof.claimed_by},
          {"gap", e.gap},
          {"compute_share", e.compute_share},
          {"transfer_share", e.transfer_share},
          {"load_share", e.load_share},
          {"devices", devices},
          {"engines", variants_json(e.variants)},
          {"next_bottleneck", next_bottleneck_json(e)},
          {"critical_path", path},
          {"suggestions", suggestions},
          {"precision", e.precision ? *e.precision : Json()},
          {"robustness", e.robustness ? robustness_json(*e.robustness) : Json()},
          {"warnings", e.warnings}};
}

}  // namespace heddle
