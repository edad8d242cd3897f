#include <cstdio>

#include "heddle/base/json.h"
#include "heddle/report/fleet_view.h"

namespace heddle {
namespace {

constexpr double kPercentiles[] = {.5, .9, .95, .99, .999};

Json counts_json(const RequestCounts& c) {
  return {{"arrivals", c.arrivals}, {"in_time", c.in_time}, {"late", c.late},
          {"dropped", c.dropped},   {"failed", c.failed},   {"attainment", c.attainment()}};
}

Json durations_json(const DurationHistogram& h) {
  Json json = {{"count", h.count()}, {"mean_us", h.mean_ns() / 1e3}, {"max_us", us_from_ns(h.max())}};
  for (const double q : kPercentiles) {
    char key[24];
    std::snprintf(key, sizeof key, "p%g_us", q * 100);
    json[key] = us_from_ns(h.percentile(q));
  }
  return json;
}

// Quotes a name for a CSV field if necessary.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string row(const std::string& scheduler, double load, const std::string& model, const RequestCounts& c,
                const DurationHistogram& latency, const DurationHistogram& queueing) {
  char text[320];
  std::snprintf(text, sizeof text, ",%.6g,", load);
  std::string line = field(scheduler) + text + field(model);
  std::snprintf(text, sizeof text, ",%llu,%llu,%llu,%llu,%llu,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g\n",
                static_cast<unsigned long long>(c.arrivals), static_cast<unsigned long long>(c.in_time),
                static_cast<unsigned long long>(c.late), static_cast<unsigned long long>(c.dropped),
                static_cast<unsigned long long>(c.failed), c.attainment(), latency.mean_ns() / 1e3,
                us_from_ns(latency.percentile(.5)), us_from_ns(latency.percentile(.95)),
                us_from_ns(latency.percentile(.99)), queueing.mean_ns() / 1e3);
  return line + text;
}

}  // namespace

Json simulation_json(const SimulationResult& r) {
  Json models = Json::array(), classes = Json::array(), course = Json::array();
  for (const auto& m : r.models)
    models.push_back({{"model", m.model},
                      {"requests", counts_json(m.requests)},
                      {"latency", durations_json(m.latency)},
                      {"queueing", durations_json(m.queueing)},
                      {"batch_sizes", m.batch_sizes}});
  for (const auto& c : r.classes)
    classes.push_back({{"class", c.name},
                       {"devices", c.devices},
                       {"busy_share", c.busy_share},
                       {"uplink_share", c.uplink_share}});
  for (const auto& c : r.course) course.push_back({c.arrivals, c.in_time});
  const auto& n = r.counters;
  const double batches = n.batches ? static_cast<double>(n.batches) : 1;
  return {{"requests", counts_json(r.total)},
          {"latency", durations_json(r.latency)},
          {"queueing", durations_json(r.queueing)},
          {"transfer", durations_json(r.transfer)},
          {"classes", classes},
          {"models", models},
          {"batches", n.batches},
          {"probes_per_batch", static_cast<double>(n.probes) / batches},
          {"course", course},
          {"horizon_us", us_from_ns(r.horizon)},
          {"migrated_us", r.migrated < kNever ? Json(us_from_ns(r.migrated)) : Json()},
          {"events", r.events}};
}

std::string simulation_csv(const std::vector<FleetSimulationSeries>& series) {
  std::string csv =
      "scheduler,load_factor,model,arrivals,in_time,late,dropped,failed,attainment,latency_mean_us,latency_"
      "p50_us,"
      "latency_p95_us,latency_p99_us,queueing_mean_us\n";
  for (const auto& s : series)
    for (const auto& p : s.points) {
      for (const auto& m : p.result.models)
        csv += row(s.scheduler, p.load_factor, m.model, m.requests, m.latency, m.queueing);
      csv += row(s.scheduler, p.load_factor, "*", p.result.total, p.result.latency, p.result.queueing);
    }
  return csv;
}

}  // namespace heddle
