#include <cmath>

#include "explain_tables.h"
#include "heddle/base/gap.h"
#include "heddle/base/json.h"
#include "heddle/base/terminal.h"
#include "heddle/base/units.h"
#include "heddle/report/explain.h"
#include "heddle/report/text_table.h"

namespace heddle {
namespace {

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

Json next_bottleneck_json(const Explanation& e) {
  if (!e.next_bottleneck) return {};
  const NextBottleneck& b = *e.next_bottleneck;
  return {{"bottleneck", b.bottleneck}, {"next", b.next}, {"limit_us", b.limit_us}};
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
  if (r.core)
    json["core_taken"] = {
        {"core", r.core->what}, {"value_us", r.core->value_us}, {"measured", r.core->measured}};
  return json;
}

std::string explanation_text(const Explanation& e) {
  const auto value = [&e](double us) { return objective_text(e.objective, e.batch, us); };
  std::string out =
      wrapped(painted(Ink::kBold, "predicted " + value(e.value_us)) + ", " + bound_text(value(e.bound.us)) +
                  " (" + e.bound.proof.text() + "), gap " + percent(e.gap),
              98, 2);
  if (const auto& b = e.next_bottleneck)
    out += wrapped(
        "bottleneck: " + b->bottleneck + "; next: " + b->next + ", which would allow " + value(b->limit_us),
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
  if (!e.variants.empty())
    out +=
        "\n" + wrapped("Engines (" + std::string(kVariantsNote) + ")", 98, 0) + variants_table(e).to_string();
  out += "\nCritical path: " + path_shares_text(e) + "\n" + path_table(e).to_string();
  if (e.suggestions.empty())
    out += "\n" + std::string(kNoSuggestion) + "\n";
  else
    out += "\nWhat would help (" + std::string(kSuggestionsNote) + ")\n" + suggestions_table(e).to_string();
  if (!e.precision_text.empty()) out += "\n" + e.precision_text;
  if (e.precision_units) out += e.precision_units->to_string();
  if (e.robustness && e.value_us > 0)
    out += "\nOn a busy machine (" + std::string(kRobustnessNote) + ")\n" + robustness_table(e).to_string();
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
          {"best_single_device",
           e.single ? Json{{"device", e.single->device}, {"value_us", e.single->value_us}} : Json()},
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
