// Tables of a served fleet: models, pools, workers, changes.
#include "heddle/serve/status_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "heddle/base/json_fields.h"
#include "heddle/base/units.h"
#include "heddle/report/text_table.h"
#include "status/status_fields.h"

namespace heddle {

std::string devices_text(const Json& devices) {
  std::string out;
  if (devices.is_object())
    for (const auto& [name, count] : devices.items())
      out += (out.empty() ? "" : " ") + name + "=" + (count.is_number() ? count.dump() : "");
  return out;
}

std::string whole_text(const Json& of, const char* name) {
  return std::to_string(static_cast<int64_t>(std::min(number_in(of, name), 9e15)));
}

std::string worker_state(const Json& worker) {
  const auto reason = text_in(worker, "reason");
  return text_in(worker, "state") + (reason.empty() ? "" : ": " + reason);
}

std::string leader_text(const Json& status) {
  const Json& leader = object_in(status, "leader");
  if (leader.empty()) return "";
  return "; " + text_in(leader, "name") + " leads in term " + whole_text(leader, "term");
}

namespace {

std::string workers_table(const Json& status) {
  using Align = TextTable::Align;
  TextTable table({{"worker", Align::kLeft, 30},
                   {"devices", Align::kLeft, 30},
                   {"virtual", Align::kRight},
                   {"state", Align::kLeft, 50},
                   {"runs", Align::kRight},
                   {"losses", Align::kRight}});
  for (const auto& w : list_in(status, "workers")) {
    table.add_row({text_in(w, "name"), devices_text(object_in(w, "devices")),
                   whole_text(w, "virtual_devices"), worker_state(w), whole_text(w, "runs"),
                   whole_text(w, "losses")});
  }
  const Json& faults = object_in(status, "faults");
  return "\n" + table.to_string() + "since the plan is in use: " + whole_text(faults, "devices_lost") +
         " virtual devices lost, " + whole_text(faults, "given_up") + " steps given up, " +
         whole_text(faults, "rerun_rows") + " rows queued again, " + whole_text(faults, "late_answers") +
         " late answers dropped\n";
}

// What measuring has corrected, and the last changes of the plan.
std::string changes_text(const Json& status) {
  constexpr size_t kShown = 10;
  std::string out;
  for (const auto& c : list_in(status, "corrections")) {
    double sum = 0;
    const Json& factors = list_in(c, "factors");
    for (const auto& f : factors) sum += f.is_number() ? f.get<double>() : 0;
    const double mean = factors.empty() ? 1 : sum / static_cast<double>(factors.size());
    out += "measured times in the plan: " + text_in(c, "model") + " on " + text_in(c, "class") +
           (number_in(c, "share") > 1 ? "/" + whole_text(c, "share") : "") + fmt::format(" x {:.3g}\n", mean);
  }
  const Json& changes = list_in(status, "changes");
  for (size_t i = changes.size() - std::min(changes.size(), kShown); i < changes.size(); ++i)
    out += text_in(changes[i], "at") + " " + text_in(changes[i], "what") + ": " +
           text_in(changes[i], "text") + "\n";
  return out.empty() ? out : "\n" + out;
}

// Requests and padding of models of varying shapes.
std::string buckets_table(const Json& status) {
  TextTable table({{"model", TextTable::Align::kLeft, 36},
                   {"bucket", TextTable::Align::kLeft, 40},
                   {"planned", kRight},
                   {"alone", kRight},
                   {"answered", kRight},
                   {"padding", kRight}});
  bool any = false;
  for (const auto& m : list_in(status, "models")) {
    bool first = true;
    for (const auto& b : list_in(m, "buckets")) {
      table.add_row({first ? text_in(m, "name") : "", text_in(b, "name"), percent(number_in(b, "share")),
                     format_us(number_in(b, "us")), whole_text(b, "requests"),
                     first ? percent(number_in(m, "padding")) : ""});
      first = false;
      any = true;
    }
  }
  return any ? "\n" + table.to_string() : "";
}

}  // namespace

std::string sessions_table(const Json& status) {
  TextTable table({{"model", TextTable::Align::kLeft, 36},
                   {"sessions", kRight},
                   {"state", kRight},
                   {"waiting", kRight},
                   {"begun", kRight},
                   {"ended", kRight},
                   {"expired", kRight},
                   {"refused", kRight}});
  bool any = false;
  for (const auto& m : list_in(status, "models")) {
    const Json& s = object_in(m, "sessions");
    if (s.empty()) continue;
    any = true;
    table.add_row({text_in(m, "name"), whole_text(s, "open"),
                   format_bytes(static_cast<int64_t>(std::min(number_in(s, "bytes"), 9e15))),
                   whole_text(s, "waiting"), whole_text(s, "begun"), whole_text(s, "ended"),
                   whole_text(s, "expired"), whole_text(s, "refused")});
  }
  return any ? "\n" + table.to_string() : "";
}

std::string pools_table(const Json& status) {
  using Align = TextTable::Align;
  const bool buckets = std::ranges::any_of(
      status["pools"], [](const Json& p) { return !p["bucket"].get<std::string>().empty(); });
  std::vector<TextTable::Column> columns = {{"model", Align::kLeft, 40}, {"SLO", Align::kRight}};
  if (buckets) columns.push_back({"bucket"});
  columns.push_back({"pipeline", Align::kRight});
  columns.push_back({"batch", Align::kRight});
  columns.push_back({"pool"});
  columns.push_back({"planned", Align::kRight});
  TextTable table(columns);
  for (const auto& m : status["models"]) {
    bool first = true;
    for (const auto& p : status["pools"]) {
      if (p["model"] != m["name"]) continue;
      const int share = p["share"];
      std::vector<std::string> row = {first ? m["name"].get<std::string>() : "",
                                      first ? format_us(m["slo_us"]) : ""};
      if (buckets) row.push_back(p["bucket"].get<std::string>());
      row.insert(row.end(),
                 {std::to_string(p["pipeline"].get<int>()), std::to_string(p["batch"].get<int>()),
                  std::to_string(p["devices"].get<int64_t>()) + " x " + p["class"].get<std::string>() +
                      (share > 1 ? "/" + std::to_string(share) : ""),
                  first ? format_requests(m["rate_per_s"].get<double>()) : ""});
      table.add_row(std::move(row));
      first = false;
    }
  }
  std::string text = table.to_string();
  if (number_in(status, "http_per_s") > 0)
    text += "planned is what HTTP carries here, measured with inputs of 1 kB; the devices alone serve " +
            format_requests(number_in(status, "devices_per_s")) + "\n";
  return text;
}

std::string status_text(const Json& status) {
  using Align = TextTable::Align;
  TextTable models({{"model", Align::kLeft, 36},
                    {"SLO", Align::kRight},
                    {"answered", Align::kRight},
                    {"in time", Align::kRight},
                    {"dropped", Align::kRight},
                    {"waiting", Align::kRight},
                    {"p99", Align::kRight}});
  for (const auto& m : list_in(status, "models")) {
    const Json& requests = object_in(m, "requests");
    const Json& latency = object_in(m, "latency");
    const SettledRequests settled = settled_requests(m);
    models.add_row(
        {text_in(m, "name"), format_us(number_in(m, "slo_us")),
         std::to_string(static_cast<int64_t>(number_in(requests, "in_time") + number_in(requests, "late"))),
         settled.all > 0 ? percent(settled.in_time / settled.all) : "", whole_text(requests, "dropped"),
         whole_text(m, "queued"), format_us(number_in(latency, "p99_us"))});
  }
  TextTable pools({{"model", Align::kLeft, 36},
                   {"pipe", Align::kRight},
                   {"part", Align::kRight},
                   {"class"},
                   {"devices", Align::kRight},
                   {"busy", Align::kRight},
                   {"use", Align::kRight},
                   {"runs", Align::kRight},
                   {"off plan", Align::kRight}});
  for (const auto& p : list_in(status, "pools")) {
    const double predicted = number_in(p, "predicted_s");
    pools.add_row({text_in(p, "model"), whole_text(p, "pipeline"), whole_text(p, "partition"),
                   text_in(p, "class"), whole_text(p, "devices"), whole_text(p, "running"),
                   percent(number_in(p, "use")), whole_text(p, "runs"),
                   predicted > 0 ? percent(number_in(p, "busy_s") / predicted - 1) : ""});
  }
  std::string out = text_in(status, "fleet") + ": " + text_in(status, "state") +
                    ", plans so far: " + whole_text(status, "plans") + leader_text(status) + "\n" +
                    models.to_string() + "\n" + pools.to_string() + buckets_table(status) +
                    sessions_table(status);
  const auto drained = devices_text(object_in(status, "drained"));
  if (!drained.empty()) out += "drained: " + drained + "\n";
  if (!list_in(status, "workers").empty()) out += workers_table(status);
  return out + changes_text(status);
}

}  // namespace heddle
