#include "heddle/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "heddle/base/spelling.h"
#include "markup.h"

namespace heddle {
namespace {

constexpr double kChartWidth = 560, kHeight = 334, kChartLeft = 58, kChartRight = 14, kChartTop = 48,
                 kChartBottom = 44;
constexpr size_t kColours = 6;
constexpr const char* kDashes[] = {"", "6 3", "2 3", "8 3 2 3"};

std::string at(double v) { return fmt::format("{:.1f}", v); }

std::string label(double v, bool as_percent = false) {
  return as_percent ? fmt::format("{:.4g} %", v * 100) : fmt::format("{:.4g}", v);
}

struct Axis {
  double from = 0, to = 1, pixel_from = 0, pixel_to = 1;
  double operator()(double v) const {
    return pixel_from + (v - from) / (to - from) * (pixel_to - pixel_from);
  }
};

std::string svg_text(double x, double y, const char* anchor, const char* css, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", x, y,
                     anchor, css, escape_markup(text));
}

std::string line(double x1, double y1, double x2, double y2, const char* css) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1,
                     x2, y2, css);
}

void set_range(const Chart& chart, Axis& x, Axis& y) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  double low_x = kNone, high_x = -kNone, high_y = -kNone;
  for (const auto& l : chart.lines)
    for (const auto& [px, py] : l.points) {
      if (!std::isfinite(px) || !std::isfinite(py)) continue;
      low_x = std::min(low_x, px);
      high_x = std::max(high_x, px);
      high_y = std::max(high_y, py);
    }
  if (!(low_x <= high_x)) low_x = high_x = high_y = 0;
  if (!(high_x > low_x)) {
    low_x -= .5;
    high_x += .5;
  }
  const bool given = chart.y_max > chart.y_min;
  x = {low_x, high_x, kChartLeft, kChartWidth - kChartRight};
  y = {given ? chart.y_min : 0,
       given        ? chart.y_max
       : high_y > 0 ? high_y * 1.08
                    : 1,
       kHeight - kChartBottom, kChartTop};
}

// 1, 2 or 5 times a power of ten.
double round_step(double span, int ticks) {
  if (!(span > 0) || !std::isfinite(span)) return 1;
  const double raw = span / ticks;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  if (!(power > 0)) return span;
  for (const double m : {1.0, 2.0, 5.0})
    if (m * power >= raw) return m * power;
  return 10 * power;
}

std::string grid(const Chart& chart, const Axis& x, const Axis& y) {
  std::string svg;
  for (const double v : round_ticks(y.from, y.to, 6)) {
    svg += line(kChartLeft, y(v), kChartWidth - kChartRight, y(v), "grid");
    svg += svg_text(kChartLeft - 6, y(v) + 4, "end", "tick", label(v, chart.y_percent));
  }
  for (const double v : round_ticks(x.from, x.to, 8)) {
    svg += line(x(v), kChartTop, x(v), kHeight - kChartBottom, "grid");
    svg += svg_text(x(v), kHeight - kChartBottom + 16, "middle", "tick", label(v));
  }
  svg += line(kChartLeft, kHeight - kChartBottom, kChartWidth - kChartRight, kHeight - kChartBottom, "axis");
  for (const auto& [level, name] : chart.levels) {
    if (level < y.from || level > y.to) continue;
    svg += line(kChartLeft, y(level), kChartWidth - kChartRight, y(level), "level");
    svg += svg_text(kChartWidth - kChartRight - 4, y(level) - 4, "end", "tick", name);
  }
  return svg;
}

}  // namespace

const char kChartStyle[] =
    ".chart text{font:12px system-ui,-apple-system,'Segoe UI',sans-serif;fill:var(--ink)}"
    ".chart .title{font-size:13px;font-weight:600}.chart .tick{font-size:11px;fill:var(--muted)}"
    ".chart .grid{stroke:var(--line);stroke-width:.6}.chart .axis{stroke:var(--muted)}"
    ".chart .level{stroke:#7b3fb5;stroke-dasharray:5 4}.chart path{fill:none;stroke-width:2}"
    ".c0{stroke:#0072b2;fill:#0072b2}.c1{stroke:#d55e00;fill:#d55e00}.c2{stroke:#009e73;fill:#009e73}"
    ".c3{stroke:#cc79a7;fill:#cc79a7}.c4{stroke:#e69f00;fill:#e69f00}.c5{stroke:#56b4e9;fill:#56b4e9}";

std::vector<double> round_ticks(double from, double to, int count) {
  const double step = round_step(to - from, count);
  const double first = std::ceil(from / step - 1e-9);
  std::vector<double> ticks;
  // Counted, as the step may be too small to change the sum.
  for (int i = 0; i < count + 2; ++i) {
    const double at = (first + i) * step;
    if (!(at <= to + step * 1e-4)) break;
    ticks.push_back(std::fabs(at) < step * 1e-6 ? 0 : at);
  }
  return ticks;
}

std::string chart_svg(const Chart& chart) {
  Axis x, y;
  set_range(chart, x, y);
  // The legend is below the chart, in two columns.
  const double legend_rows = std::ceil(static_cast<double>(chart.lines.size()) / 2);
  const double height = kHeight + 16 * legend_rows + 6;
  std::string svg = "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " +
                    at(kChartWidth) + " " + at(height) + "\" role=\"img\" aria-label=\"" +
                    escape_markup(chart.title) + "\">\n";
  svg += svg_text(kChartLeft, 16, "start", "title", chart.title);
  svg += svg_text(kChartLeft - 6, kChartTop - 8, "start", "tick", chart.y_label);
  svg += svg_text(kChartWidth - kChartRight, kHeight - 8, "end", "tick", chart.x_label);
  svg += grid(chart, x, y);
  for (size_t i = 0; i < chart.lines.size(); ++i) {
    const auto& l = chart.lines[i];
    const std::string css = "c" + std::to_string(i % kColours);
    const std::string dashes = kDashes[i / kColours % 4];
    std::string path;
    std::string dots;
    for (const auto& [px, py] : l.points) {
      if (!std::isfinite(px) || !std::isfinite(py)) continue;
      const double cy = y(std::clamp(py, y.from, y.to));
      path += (path.empty() ? "M" : "L") + at(x(px)) + " " + at(cy);
      dots += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.6\" class=\"{}\"><title>{}</title></circle>\n", x(px),
          cy, css, escape_markup(l.name + " at " + label(px) + ": " + label(py, chart.y_percent)));
    }
    if (!path.empty())
      svg += "<path d=\"" + path + "\" class=\"" + css + "\" style=\"fill:none\"" +
             (dashes.empty() ? "" : " stroke-dasharray=\"" + dashes + "\"") + "/>\n" + dots;
    const double lx = kChartLeft + static_cast<double>(i % 2) * (kChartWidth - kChartLeft) / 2;
    const double ly = kHeight + 8 + 16 * std::floor(static_cast<double>(i) / 2);
    svg += "<path d=\"M" + at(lx) + " " + at(ly - 4) + "h22\" class=\"" + css + "\"" +
           (dashes.empty() ? "" : " stroke-dasharray=\"" + dashes + "\"") + "/>\n";
    svg += svg_text(lx + 28, ly, "start", "tick", cut_text(l.name, 38));
  }
  return svg + "</svg>\n";
}

std::string chart_file(const Chart& chart) {
  std::string svg = chart_svg(chart);
  const std::string style =
      "\n<style>:root{--ink:#1f2933;--muted:#5a6a7a;--line:#d8dee5;--paper:#fff}"
      "@media(prefers-color-scheme:dark){:root{--ink:#e5e9ee;--muted:#9aa7b5;--line:#343e49;--paper:#14181d}"
      "}" +
      std::string(kChartStyle) + "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"var(--paper)\"/>";
  return svg.insert(svg.find('>') + 1, style);
}

}  // namespace heddle
