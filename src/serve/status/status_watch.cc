// A served fleet as it goes on: rates between two of its answers.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "heddle/base/json.h"
#include "heddle/base/json_fields.h"
#include "heddle/base/terminal.h"
#include "heddle/base/units.h"
#include "heddle/base/utc.h"
#include "heddle/report/text_table.h"
#include "heddle/serve/status_tables.h"
#include "status/status_fields.h"

namespace heddle {
namespace {

using Align = TextTable::Align;

// Requests that got their outcome since `before`. A server that has started anew counts from 0.
SettledRequests asked_since(const Json* before, const Json& now) {
  SettledRequests asked = settled_requests(now);
  if (before == nullptr) return asked;
  const SettledRequests then = settled_requests(*before);
  if (then.all <= asked.all && then.in_time <= asked.in_time) {
    asked.all -= then.all;
    asked.in_time -= then.in_time;
  }
  return asked;
}

// The greatest latency of all but 1 % of the requests since `before`, in us; 0: there were none.
double p99_since(const Json* before, const Json& now) {
  std::map<double, double> counts;
  const auto add = [&counts](const Json& model, double sign) {
    for (const auto& range : list_in(model, "latency_ranges"))
      if (range.is_array() && range.size() == 2 && range[0].is_number() && range[1].is_number())
        counts[range[0].get<double>()] += sign * range[1].get<double>();
  };
  add(now, 1);
  if (before != nullptr) add(*before, -1);
  // They begin anew with each plan.
  if (std::ranges::any_of(counts, [](const auto& c) { return c.second < 0; })) return p99_since(nullptr, now);
  double all = 0, below = 0;
  for (const auto& [us, count] : counts) all += count;
  for (const auto& [us, count] : counts) {
    below += count;
    if (count > 0 && below >= .99 * all) return us;
  }
  return 0;
}

std::string per_second(double count, double seconds) {
  return seconds > 0 ? format_requests(count / seconds) : "";
}

std::string watched_models(const Json* before, const Json& now, double seconds) {
  TextTable table({{"model", Align::kLeft, 36},
                   {"SLO", Align::kRight},
                   {"rate", Align::kRight},
                   {"planned", Align::kRight},
                   {"in time", Align::kRight},
                   {"p99", Align::kRight},
                   {"queue", Align::kRight},
                   {"in time so far", Align::kRight}});
  for (const auto& m : list_in(now, "models")) {
    const Json* was = before == nullptr ? nullptr : member_in(list_in(*before, "models"), text_in(m, "name"));
    const SettledRequests lately = asked_since(was, m), ever = asked_since(nullptr, m);
    const double p99_us = p99_since(was, m);
    const bool rates = seconds > 0 && lately.all > 0;
    table.add_row({text_in(m, "name"), format_us(number_in(m, "slo_us")), per_second(lately.all, seconds),
                   format_requests(number_in(m, "rate_per_s")),
                   rates ? percent(lately.in_time / lately.all) : "",
                   rates && p99_us > 0 ? format_us(p99_us) : "", whole_text(m, "queued"),
                   ever.all > 0 ? percent(ever.in_time / ever.all) : ""});
  }
  return table.to_string();
}

std::string watched_devices(const Json& now) {
  struct Use {
    double busy = 0, devices = 0;
  };
  std::map<std::string, Use> uses;  // of virtual devices, lately
  for (const auto& p : list_in(now, "pools")) {
    auto& use = uses[text_in(p, "class")];
    use.busy += number_in(p, "use") * number_in(p, "devices");
    use.devices += number_in(p, "devices");
  }
  TextTable table({{"class", Align::kLeft, 30},
                   {"devices", Align::kRight},
                   {"in plan", Align::kRight},
                   {"busy", Align::kRight},
                   {"lost", Align::kRight},
                   {"drained", Align::kRight},
                   {"use", Align::kRight}});
  for (const auto& c : list_in(now, "classes")) {
    const auto name = text_in(c, "name");
    const Use use = uses[name];
    const auto lost = whole_text(c, "lost");
    table.add_row({name, whole_text(c, "devices"), whole_text(c, "used"), whole_text(c, "busy"),
                   lost == "0" ? lost : painted(Ink::kRed, lost),
                   whole_text(object_in(now, "drained"), name.c_str()),
                   use.devices > 0 ? percent(use.busy / use.devices) : ""});
  }
  return table.to_string();
}

std::string watched_workers(const Json* before, const Json& now, double seconds) {
  if (list_in(now, "workers").empty()) return "";
  TextTable table({{"worker", Align::kLeft, 30},
                   {"state", Align::kLeft, 60},
                   {"virtual", Align::kRight},
                   {"runs", Align::kRight}});
  for (const auto& w : list_in(now, "workers")) {
    const Json* was =
        before == nullptr ? nullptr : member_in(list_in(*before, "workers"), text_in(w, "name"));
    const double runs = number_in(w, "runs") - (was == nullptr ? 0 : number_in(*was, "runs"));
    table.add_row(
        {text_in(w, "name"), worker_state(w), whole_text(w, "virtual_devices"),
         was != nullptr && seconds > 0 ? fmt::format("{:.1f}/s", std::max(runs, 0.0) / seconds) : ""});
  }
  return "\n" + table.to_string();
}

}  // namespace

std::string watch_text(const Json* before, const Json& now, double seconds) {
  if (before == nullptr) seconds = 0;
  std::string out = text_in(now, "fleet") + " at " + utc_now() + ": " + text_in(now, "state") +
                    ", plans so far: " + whole_text(now, "plans") + leader_text(now) + "\n" +
                    watched_models(before, now, seconds) + "\n" + watched_devices(now) +
                    watched_workers(before, now, seconds) + sessions_table(now);
  const Json& changes = list_in(now, "changes");
  if (!changes.empty())
    out += "\nlast change: " + text_in(changes.back(), "at") + " " + text_in(changes.back(), "what") + ": " +
           text_in(changes.back(), "text") + "\n";
  return out;
}

}  // namespace heddle
