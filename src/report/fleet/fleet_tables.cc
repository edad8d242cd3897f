#include <fmt/format.h>

#include <numeric>
#include <string_view>

#include "heddle/base/json.h"
#include "heddle/base/units.h"
#include "heddle/report/fleet_view.h"
#include "heddle/report/text_table.h"

namespace heddle {
namespace {

constexpr double kPercentiles[] = {.5, .9, .95, .99, .999};

Json counts_json(const RequestCounts& c) {
  return {{"arrivals", c.arrivals}, {"in_time", c.in_time}, {"late", c.late},
          {"dropped", c.dropped},   {"failed", c.failed},   {"attainment", c.attainment()}};
}

Json durations_json(const DurationHistogram& h) {
  Json json = {{"count", h.count()}, {"mean_us", h.mean_ns() / 1e3}, {"max_us", us_from_ns(h.max())}};
  for (const double q : kPercentiles) json[fmt::format("p{:g}_us", q * 100)] = us_from_ns(h.percentile(q));
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
  return fmt::format("{},{:.6g},{},{},{},{},{},{},{:.9g},{:.9g},{:.9g},{:.9g},{:.9g},{:.9g}\n",
                     field(scheduler), load, field(model), c.arrivals, c.in_time, c.late, c.dropped, c.failed,
                     c.attainment(), latency.mean_ns() / 1e3, us_from_ns(latency.percentile(.5)),
                     us_from_ns(latency.percentile(.95)), us_from_ns(latency.percentile(.99)),
                     queueing.mean_ns() / 1e3);
}

std::string milliseconds(TimeNs ns) { return format_us(us_from_ns(ns)); }

// The share of all requests that any scheduler can answer in time, at most.
double bound_share(const SweepPoint& point) {
  const uint64_t arrivals = point.result.total.arrivals;
  const uint64_t most = std::accumulate(point.bound.begin(), point.bound.end(), uint64_t{0});
  return arrivals == 0 ? 1 : static_cast<double>(most) / static_cast<double>(arrivals);
}

bool has_bound(const std::vector<FleetSimulationSeries>& series) {
  return !series.empty() && !series[0].points.empty() && !series[0].points[0].bound.empty();
}

std::string series_table(const std::vector<FleetSimulationSeries>& series, const Deployment& deployment) {
  using Align = TextTable::Align;
  std::vector<TextTable::Column> columns = {{"scheduler"}};
  const bool bound = has_bound(series);
  for (const char* title :
       {"load", "arrivals", "in time", "bound", "late", "dropped", "failed", "p50", "p99", "queueing"})
    if (bound || std::string_view(title) != "bound") columns.push_back({title, Align::kRight});
  for (const auto& c : deployment.classes) columns.push_back({c.name, Align::kRight});
  TextTable table(columns);
  for (const auto& s : series)
    for (const auto& p : s.points) {
      const auto& r = p.result;
      std::vector<std::string> cells = {s.scheduler, fmt::format("{:.4g}", p.load_factor),
                                        std::to_string(r.total.arrivals), percent(r.total.attainment())};
      if (bound) cells.push_back(percent(bound_share(p)));
      for (const auto n : {r.total.late, r.total.dropped, r.total.failed}) cells.push_back(std::to_string(n));
      cells.push_back(milliseconds(r.latency.percentile(.5)));
      cells.push_back(milliseconds(r.latency.percentile(.99)));
      cells.push_back(format_us(r.queueing.mean_ns() / 1e3));
      for (const auto& c : r.classes) cells.push_back(percent(c.busy_share));
      table.add_row(std::move(cells));
    }
  return table.to_string() +
         (bound ? "bound: the most in time that any scheduler can reach with this plan\n" : "") +
         "classes: the part of the time that they are busy\n";
}

// Of the last series at its highest load, or at the only one.
std::string per_model(const SweepPoint& point) {
  using Align = TextTable::Align;
  TextTable table({{"model", Align::kLeft, 36},
                   {"arrivals", Align::kRight},
                   {"in time", Align::kRight},
                   {"p50", Align::kRight},
                   {"p95", Align::kRight},
                   {"p99", Align::kRight},
                   {"mean batch", Align::kRight}});
  for (const auto& m : point.result.models) {
    double batches = 0, requests = 0;
    for (size_t b = 0; b < m.batch_sizes.size(); ++b) {
      batches += static_cast<double>(m.batch_sizes[b]);
      requests += static_cast<double>(m.batch_sizes[b] * (b + 1));
    }
    table.add_row({m.model, std::to_string(m.requests.arrivals), percent(m.requests.attainment()),
                   milliseconds(m.latency.percentile(.5)), milliseconds(m.latency.percentile(.95)),
                   milliseconds(m.latency.percentile(.99)),
                   fmt::format("{:.2f}", batches > 0 ? requests / batches : 0)});
  }
  return table.to_string();
}

}  // namespace

std::optional<double> load_attained(const FleetSimulationSeries& series, double wanted) {
  std::optional<double> best;
  for (const auto& p : series.points) {
    if (p.result.total.attainment() < wanted) break;
    best = p.load_factor;
  }
  return best;
}

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

Json simulation_point_json(const SweepPoint& point) {
  Json json = simulation_json(point.result);
  json["load_factor"] = point.load_factor;
  if (point.bound.empty()) return json;
  Json models = Json::array();
  for (size_t m = 0; m < point.bound.size(); ++m)
    models.push_back({{"model", point.result.models[m].model}, {"in_time", point.bound[m]}});
  json["bound"] = {{"attainment", bound_share(point)}, {"models", models}};
  return json;
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

std::string simulation_text(const FleetSimulationView& view) {
  const FleetSimulationSeries& last = view.series.back();
  std::string text =
      series_table(view.series, *view.deployment) +
      fmt::format("\n{} at load factor {:.4g}:\n", last.scheduler, last.points.back().load_factor) +
      per_model(last.points.back());
  for (const auto& s : view.series) {
    if (s.points.size() < 2) continue;
    const auto best = load_attained(s, view.wanted_attainment);
    text += s.scheduler + ": " + percent(view.wanted_attainment) + " in time " +
            (best ? fmt::format("up to load factor {:.4g}\n", *best) : "at no load simulated\n");
  }
  return text;
}

}  // namespace heddle
