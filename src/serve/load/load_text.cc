// What became of a load, for people.
#include <fmt/format.h>

#include <algorithm>

#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/report/fleet_view.h"
#include "heddle/report/text_table.h"
#include "heddle/serve/load.h"
#include "protocol/grpc_ends.h"

namespace heddle {
namespace {

std::string duration_text(TimeNs ns) { return format_us(us_from_ns(ns)); }

}  // namespace

std::string load_text(const LoadResult& r, double offered_s) {
  using Align = TextTable::Align;
  std::vector<TextTable::Column> columns = {{"model", Align::kLeft, 30}};
  for (const char* title :
       {"requests", "in time", "late", "dropped", "failed", "p50", "p99", "p99.9", "max", "rows a batch"})
    columns.push_back({title, Align::kRight});
  TextTable table(columns);
  const auto add = [&table](const std::string& name, const RequestCounts& c, const DurationHistogram& latency,
                            double batch) {
    table.add_row({name, std::to_string(c.arrivals), percent(c.attainment()), std::to_string(c.late),
                   std::to_string(c.dropped), std::to_string(c.failed), duration_text(latency.percentile(.5)),
                   duration_text(latency.percentile(.99)), duration_text(latency.percentile(.999)),
                   duration_text(latency.max()), batch > 0 ? fmt::format("{:.2f}", batch) : ""});
  };
  double all_requests = 0, all_batches = 0;
  for (const auto& m : r.counted.models) {
    double requests = 0, batches = 0;
    for (size_t b = 0; b < m.batch_sizes.size(); ++b) {
      requests += static_cast<double>(m.batch_sizes[b]);
      batches += static_cast<double>(m.batch_sizes[b]) / static_cast<double>(b + 1);
    }
    all_requests += requests;
    all_batches += batches;
    add(m.model, m.requests, m.latency, batches > 0 ? requests / batches : 0);
  }
  if (r.counted.models.size() > 1) {
    table.add_rule();
    add("all", r.counted.total, r.counted.latency, all_batches > 0 ? all_requests / all_batches : 0);
  }
  const auto& total = r.counted.total;
  if (r.stopped_s) offered_s = std::max(*r.stopped_s, 1e-3);
  std::string text = fmt::format(
      "{}{:.1f} requests/s offered, {:.1f}/s answered in time; 99 % were sent within {} of "
      "their due time, over {}\n",
      table.to_string(), static_cast<double>(total.arrivals) / offered_s,
      static_cast<double>(total.in_time) / offered_s, duration_text(r.lateness.percentile(.99)),
      counted(r.connections, "connection"));
  if (r.stopped_s) text += fmt::format("stopped after {}\n", format_us(*r.stopped_s * 1e6));
  if (r.resent > 0) text += "requests were sent again " + counted(r.resent, "time") + "\n";
  if (r.sessions > 0) text += counted(r.sessions, "session") + " begun, of models with state\n";
  for (const auto& [message, count] : r.errors) text += fmt::format("failed, {} x: {}\n", count, message);
  return text;
}

std::string load_page(const LoadTarget& target, std::span<const ModelUnderLoad> models, const LoadResult& r,
                      const LoadPage& about) {
  Deployment shown;  // the page names models; classes are the server's own affair
  for (const auto& m : models)
    shown.models.push_back({m.name, ns_from_us(m.slo_us), m.planned_rate_per_s, {}});
  FleetSimulationView view;
  view.title = "load on " + host_port(target.host, target.port);
  view.traffic = about.traffic;
  view.deployment = &shown;
  view.series = {{"served", {{about.load_factor, r.counted}}}};
  if (about.wanted_attainment > 0) view.wanted_attainment = about.wanted_attainment;
  return fleet_simulation_html(view);
}

}  // namespace heddle
