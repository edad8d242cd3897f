// Line charts as SVG for quantities over a range, such as attainment over load, and their page's style.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace heddle {

struct ChartLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  // ascending x; lines may have different ones
};

struct Chart {
  std::string title, x_label, y_label;
  std::vector<ChartLine> lines;
  double y_min = 0, y_max = 0;                         // equal: from the data, from 0
  bool y_percent = false;                              // y is a share, shown as percent
  std::vector<std::pair<double, std::string>> levels;  // dashed lines at a y
};

// Multiples of 1, 2 or 5 times a power of ten within the range, about `count`.
std::vector<double> round_ticks(double from, double to, int count);

// 560 x 334 and the legend; values that are not finite are left out. Colour-blind readers can tell the colours
// apart; lines also differ by their dashes. Each line has a legend entry and hover texts.
std::string chart_svg(const Chart& chart);

// The same as a file of its own, with its style, readable on light and dark pages.
std::string chart_file(const Chart& chart);

// CSS for chart_svg(). Colours come from the page's variables.
extern const char kChartStyle[];

}  // namespace heddle
