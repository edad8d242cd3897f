// A fleet's simulations as a page: charts over the load, and a timeline of a window.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "heddle/base/units.h"
#include "heddle/report/chart.h"
#include "heddle/report/fleet_view.h"
#include "heddle/report/page.h"
#include "heddle/report/text_table.h"
#include "markup.h"

namespace heddle {
namespace {

constexpr char kFleetStyle[] =
    ".charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr));gap:14px}"
    ".charts svg,.wide svg{width:100%;height:auto;background:var(--soft);border-radius:8px}"
    ".charts svg{min-width:480px;display:block}.wide{overflow-x:auto}.wide svg{min-width:900px;display:block}"
    ".row{fill:var(--paper)}.lane{font:10px system-ui,sans-serif;fill:var(--muted)}.send{opacity:.55}";

// Adds one line per series and quantity over the load factor.
template <class Value>
void add_lines(Chart& chart, const FleetSimulationView& view, const std::string& name, const Value& value) {
  for (const auto& s : view.series) {
    ChartLine line;
    line.name = view.series.size() > 1 ? s.scheduler + ", " + name : name;
    for (const auto& p : s.points) line.points.emplace_back(p.load_factor, value(p.result));
    chart.lines.push_back(std::move(line));
  }
}

double total_attainment(const SimulationResult& r) { return r.total.attainment(); }

Chart attainment_chart(const FleetSimulationView& view) {
  Chart chart{
      .title = "Attainment", .x_label = "load factor", .y_label = "requests in time", .y_percent = true};
  add_lines(chart, view, "all models", total_attainment);
  const auto& models = view.deployment->models;
  if (models.size() > 1 && view.series.size() == 1)
    for (size_t m = 0; m < models.size(); ++m)
      add_lines(chart, view, models[m].name,
                [m](const SimulationResult& r) { return r.models[m].requests.attainment(); });
  double least = 1;
  for (const auto& l : chart.lines)
    for (const auto& p : l.points) least = std::min(least, p.second);
  // Zoom in if all values are close to 1.
  chart.y_min = least > .9 ? .9 : least > .5 ? .5 : 0;
  chart.y_max = 1;
  chart.levels.emplace_back(view.wanted_attainment, percent(view.wanted_attainment));
  return chart;
}

Chart use_chart(const FleetSimulationView& view) {
  Chart chart{.title = "Use per class",
              .x_label = "load factor",
              .y_label = "busy share of all devices",
              .y_max = 1,
              .y_percent = true};
  for (size_t c = 0; c < view.deployment->classes.size(); ++c)
    add_lines(chart, view, view.deployment->classes[c].name,
              [c](const SimulationResult& r) { return r.classes[c].busy_share; });
  return chart;
}

Chart latency_chart(const FleetSimulationView& view) {
  Chart chart{.title = "Latency of answered requests", .x_label = "load factor", .y_label = "ms"};
  for (const double q : {.5, .95, .99})
    add_lines(chart, view, fmt::format("p{:g}", q * 100),
              [q](const SimulationResult& r) { return us_from_ns(r.latency.percentile(q)) / 1e3; });
  return chart;
}

Chart course_chart(const FleetSimulationView& view) {
  Chart chart{.title = "Course at the highest load",
              .x_label = "time of arrival (s)",
              .y_label = "requests in time",
              .y_max = 1,
              .y_percent = true};
  for (const auto& s : view.series) {
    if (s.points.empty()) continue;
    const auto& r = s.points.back().result;
    ChartLine line{s.scheduler, {}};
    const double step = seconds_from_ns(r.horizon) / static_cast<double>(r.course.size());
    for (size_t i = 0; i < r.course.size(); ++i)
      if (r.course[i].arrivals > 0)
        line.points.emplace_back((static_cast<double>(i) + .5) * step, r.course[i].attainment());
    chart.lines.push_back(std::move(line));
  }
  return chart;
}

// Draws devices as rows and runs as bars in the colour of their pipeline. Transfers are thin bars below the
// receiving device's runs.
std::string timeline(const FleetSimulationView& view, const SimulationResult& r) {
  constexpr double kLeft = 120, kWidth = 1200, kRow = 15;
  constexpr size_t kMostRows = 60;
  std::vector<uint32_t> devices;
  for (const auto& bar : r.window) devices.push_back(bar.device);
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  const size_t all = devices.size();
  if (all > kMostRows) devices.resize(kMostRows);
  std::map<uint32_t, double> y;
  const double top = 24;
  std::string svg;
  const auto span = static_cast<double>(view.window_to - view.window_from);
  const auto x = [&](TimeNs t) {
    const double share = static_cast<double>(t - view.window_from) / span;
    return kLeft + std::clamp(share, 0.0, 1.0) * (kWidth - kLeft - 10);
  };
  for (size_t i = 0; i < devices.size(); ++i) {
    const double at = top + static_cast<double>(i) * kRow;
    y[devices[i]] = at;
    const auto& d = view.deployment->devices[devices[i]];
    const auto name = view.deployment->classes[d.device_class].name + " " +
                      std::to_string(d.device - view.deployment->classes[d.device_class].first_device) +
                      (d.share > 1 ? " (1/" + std::to_string(d.share) + ")" : "");
    svg += fmt::format(
        "<rect class=\"row\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>"
        "<text class=\"lane\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\" "
        "style=\"font-size:10px\">{}</text>\n",
        kLeft, at, kWidth - kLeft - 10, kRow - 2, kLeft - 6, at + 10, escape_markup(name));
  }
  for (const auto& bar : r.window) {
    const auto row = y.find(bar.device);
    if (row == y.end()) continue;
    const double from = x(bar.start), to = x(bar.end);
    const auto& model = view.deployment->models[view.deployment->pipelines[bar.pipeline].model].name;
    const auto hover = fmt::format("{} partition {}, pipeline {}, {}\nbatch of {}, request {}\n{} to {}",
                                   bar.transfer ? "transfer to" : "run of", bar.partition, bar.pipeline,
                                   model, bar.batch_size, bar.request, format_us(us_from_ns(bar.start)),
                                   format_us(us_from_ns(bar.end)));
    svg += fmt::format(
        "<rect class=\"c{}{}\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" "
        "style=\"stroke:var(--paper);stroke-width:.4\"><title>{}</title></rect>\n",
        bar.pipeline % 6, bar.transfer ? " send" : "", from, row->second + (bar.transfer ? 9 : 0),
        std::max(.4, to - from), bar.transfer ? "4" : "8.5", escape_markup(hover));
  }
  const double bottom = top + static_cast<double>(devices.size()) * kRow;
  const auto ticks = round_ticks(0, span, 8);
  for (const double t : ticks) {
    const double at = x(view.window_from + static_cast<TimeNs>(t));
    svg += fmt::format("<text class=\"lane\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", at,
                       bottom + 14, t == ticks.back() ? "end" : "middle",
                       format_us(us_from_ns(view.window_from) + t / 1e3));
  }
  std::string note, cut;
  if (all > devices.size())
    note = fmt::format(" (the first {} of {} virtual devices at work)", devices.size(), all);
  if (r.window.size() >= kMostBars) cut = fmt::format(" Cut after {} bars.", kMostBars);
  return fmt::format(
      "<h2>Window{}</h2><p class=\"muted\">Runs in the colour of their pipeline; transfers thin, at the "
      "receiving "
      "device.{}</p><div class=\"wide\"><svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" "
      "viewBox=\"0 0 {:.0f} {:.0f}\">{}</svg></div>\n",
      note, cut, kWidth, bottom + 24, svg);
}

TextTable figures_table(const FleetSimulationView& view) {
  std::vector<TextTable::Column> columns = {{"scheduler"}};
  for (const char* title : {"load factor", "arrivals", "in time", "late", "dropped", "failed", "p50", "p99",
                            "mean queueing", "probes a batch"})
    columns.push_back({title, TextTable::Align::kRight});
  TextTable table(std::move(columns));
  for (const auto& s : view.series)
    for (const auto& p : s.points) {
      const auto& t = p.result.total;
      const auto& n = p.result.counters;
      table.add_row(
          {s.scheduler, fmt::format("{:g}", p.load_factor), std::to_string(t.arrivals),
           percent(t.attainment()), std::to_string(t.late), std::to_string(t.dropped),
           std::to_string(t.failed), format_us(us_from_ns(p.result.latency.percentile(.5))),
           format_us(us_from_ns(p.result.latency.percentile(.99))),
           format_us(p.result.queueing.mean_ns() / 1e3),
           n.batches ? fmt::format("{:.2f}", static_cast<double>(n.probes) / static_cast<double>(n.batches))
                     : ""});
    }
  return table;
}

// The figures of the last series: what holds up to which load, and what the highest load brings.
std::string fleet_tiles(const FleetSimulationView& view) {
  if (view.series.empty() || view.series.back().points.empty()) return "";
  const auto& series = view.series.back();
  const SweepPoint& last = series.points.back();
  const auto& total = last.result.total;
  const std::string at = fmt::format("{} at load factor {:g}", series.scheduler, last.load_factor);
  const auto holds = load_attained(series, view.wanted_attainment);
  std::string html = "<div class=\"tiles\">\n";
  html += page_tile(percent(view.wanted_attainment) + " in time",
                    holds ? fmt::format("up to {:g}", *holds) : "never", "load factor, " + series.scheduler);
  html += page_tile("in time", percent(total.attainment()), at);
  html += page_tile("p99", format_us(us_from_ns(last.result.latency.percentile(.99))), "latency, " + at);
  html += page_tile("dropped", std::to_string(total.dropped),
                    "of " + std::to_string(total.arrivals) + " requests, " + at);
  return html + "</div>\n";
}

}  // namespace

std::string fleet_simulation_html(const FleetSimulationView& view) {
  std::string html = page_head(view.title, std::string(kFleetStyle) + kChartStyle) + "<h1>" +
                     escape_markup(view.title) + "</h1><p class=\"muted\">" + escape_markup(view.traffic) +
                     "</p>\n" + fleet_tiles(view) + "<div class=\"charts\">\n";
  for (const auto& chart : {attainment_chart(view), use_chart(view), latency_chart(view), course_chart(view)})
    if (!chart.lines.empty()) html += "<div class=\"scroll\">" + chart_svg(chart) + "</div>";
  html += "</div>\n<h2>Figures</h2>\n" + figures_table(view).to_html();
  if (view.window_to > view.window_from && !view.series.empty() && !view.series.back().points.empty())
    html += timeline(view, view.series.back().points.back().result);
  return html + "</body></html>\n";
}

}  // namespace heddle
