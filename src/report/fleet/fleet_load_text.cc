#include "heddle/report/fleet_load_text.h"

#include <fmt/format.h>

#include "heddle/base/json.h"
#include "heddle/report/fleet_plan_text.h"
#include "heddle/report/text_table.h"

namespace heddle {
namespace {

std::string margins_text(const Fleet& fleet, const FleetPlan& plan) {
  std::string text;
  for (size_t m = 0; m < fleet.models.size(); ++m)
    text += fmt::format("{}{} {}", m == 0 ? "" : ", ", fleet.models[m].name,
                        percent(margin_us(fleet, plan, m) / fleet.models[m].slo_us));
  return text;
}

Json course_json(const FollowCourse& course) {
  return {{"device_hours", course.device_hours},
          {"attainment", course.attainment},
          {"requests",
           {{"arrivals", course.total.arrivals},
            {"in_time", course.total.in_time},
            {"late", course.total.late},
            {"dropped", course.total.dropped},
            {"failed", course.total.failed}}}};
}

}  // namespace

std::string goodput_text(const Fleet& fleet, const GoodputPlan& found, const GoodputWords& words) {
  if (words.arrivals.empty()) return "";
  return fmt::format(
      "in time: {:.6g} req/s with {} of each model's requests, {}; {:.6g} req/s with the fleet's own "
      "margins ({} plans simulated)\nmargins: {} of the SLO\n",
      found.per_s, percent(words.attainment), words.arrivals, found.usual_per_s, found.tried,
      margins_text(fleet, found.plan));
}

Json goodput_json(const GoodputPlan& found, const GoodputWords& words) {
  return {{"per_s", found.per_s},
          {"usual_per_s", found.usual_per_s},
          {"attainment", words.attainment},
          {"traffic", words.traffic},
          {"tried", found.tried}};
}

std::string changed_fleet_text(const Fleet& fleet, const GoodputPlan& found, const GoodputPlan& found_after,
                               const GoodputWords& words) {
  const FleetPlan &before = found.plan, &after = found_after.plan;
  TextTable table({{"fleet"}, {"value", kRight}, {"bound", kRight}, {"gap", kRight}, {"ratio", kRight}});
  table.add_row({"as it is", value_text(before.objective, before.value),
                 value_text(before.objective, before.bound), percent(before.gap()), "1.0000"});
  table.add_row({"changed", value_text(after.objective, after.value),
                 value_text(after.objective, after.bound), percent(after.gap()),
                 fmt::format("{:.4f}", after.value / before.value)});
  std::string text = table.to_string();
  if (!words.arrivals.empty())
    text += fmt::format(
        "in time: {:.6g} req/s as it is, {:.6g} req/s changed, ratio {:.4f}; {} of each model's requests, "
        "{}\n",
        found.per_s, found_after.per_s, found_after.per_s / found.per_s, percent(words.attainment),
        words.arrivals);
  return text + fleet_bound_note(fleet);
}

Json changed_fleet_json(const Fleet& fleet, const GoodputPlan& found, const Fleet& changed,
                        const GoodputPlan& found_after, const GoodputWords& words) {
  const FleetPlan &before = found.plan, &after = found_after.plan;
  Json json = {{"before", plan_row(fleet, before)},
               {"after", plan_row(changed, after)},
               {"ratio", after.value / before.value}};
  if (words.arrivals.empty()) return json;
  json["before"]["in_time"] = goodput_json(found, words);
  json["after"]["in_time"] = goodput_json(found_after, words);
  json["ratio_in_time"] = found_after.per_s / found.per_s;
  return json;
}

Json follow_json(const Fleet& fleet, const FollowResult& r, double window_s) {
  Json changes = Json::array();
  for (const auto& c : r.rolling.changes) {
    Json devices = Json::object();
    for (size_t k = 0; k < c.devices.size(); ++k) devices[fleet.classes[k].name] = c.devices[k];
    changes.push_back({{"reason", follow_reason_name(c.reason)},
                       {"at_s", c.at_s},
                       {"forecast_per_s", c.forecast_per_s},
                       {"devices", std::move(devices)},
                       {"moved_devices", c.moved_devices}});
  }
  Json rolling = course_json(r.rolling);
  rolling["changes"] = std::move(changes);
  rolling["fallback_windows"] = r.rolling.fallback_windows;
  return {{"windows", r.windows},
          {"window_s", window_s},
          {"static", course_json(r.fixed)},
          {"rolling", std::move(rolling)},
          {"hindsight", course_json(r.hindsight)},
          {"bound_device_hours", r.bound_device_hours}};
}

std::string follow_text(const FollowResult& r) {
  TextTable table({{"plans"},
                   {"device-hours", kRight},
                   {"of static", kRight},
                   {"in time", kRight},
                   {"worst model", kRight},
                   {"changes", kRight}});
  const auto add = [&](const char* name, const FollowCourse& c, const std::string& changes) {
    table.add_row({name, fmt::format("{:.4g}", c.device_hours),
                   fmt::format("{:.1f} %", 100 * c.device_hours / r.fixed.device_hours),
                   fmt::format("{:.2f} %", 100 * c.total.attainment()),
                   fmt::format("{:.2f} %", 100 * c.attainment), changes});
  };
  add("static", r.fixed, "0");
  add("rolling", r.rolling, std::to_string(r.rolling.changes.size() - 1));
  add("hindsight", r.hindsight, "");
  size_t ups = 0, downs = 0;
  double moved = 0;
  for (const auto& c : r.rolling.changes) {
    ups += c.reason == FollowReason::kUp;
    downs += c.reason == FollowReason::kDown;
    moved += c.moved_devices;
  }
  auto text =
      table.to_string() + fmt::format("bound: {:.4g} device-hours for any plans with the fleet's margins\n",
                                      r.bound_device_hours);
  text += fmt::format("rolling: {} up, {} down; {:.4g} devices loaded other weights\n", ups, downs, moved);
  if (r.rolling.fallback_windows > 0)
    text += fmt::format(
        "fallback: no plan serves the forecast of {} of {} windows; the plan of greatest rate ran\n",
        r.rolling.fallback_windows, r.windows);
  return text;
}

}  // namespace heddle
