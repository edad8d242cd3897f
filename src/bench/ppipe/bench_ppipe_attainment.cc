// The share of requests in time over the load factor, mean over the instances, for the published plans and ours with
// the bound on any scheduler; as rows, and as a picture.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "bench_ppipe_loads.h"
#include "heddle/base/file.h"
#include "heddle/report/chart.h"

namespace heddle::bench {
namespace {

constexpr int kFirstPercent = 30, kLastPercent = 130, kPercentStep = 5, kRowStep = 10;
constexpr size_t kSteps = (kLastPercent - kFirstPercent) / kPercentStep + 1;

// In the order of the picture's legend.
struct CurveOf {
  const char* planner;
  const char* legend;
  bool bound;
};
constexpr CurveOf kCurves[] = {
    {"published np", "np", false},
    {"published dart-r", "dart-r", false},
    {"published ppipe", "PPipe", false},
    {"auto for the traffic", "Heddle", false},
    {"published ppipe", "bound for PPipe's plans", true},
    {"auto for the traffic", "bound for Heddle's plans", true},
};
using Curve = std::array<double, kSteps>;

double load_at(size_t step) { return (kFirstPercent + kPercentStep * static_cast<double>(step)) / 100; }

double total_share(const PpipeLoadShares::Counts& counts) {
  double requests = 0, in_time = 0;
  for (const auto n : counts.requests) requests += static_cast<double>(n);
  for (const auto n : counts.in_time) in_time += static_cast<double>(n);
  return requests > 0 ? in_time / requests : 1;
}

Result<Curve> curve_of(const PpipeLoadShares& shares, bool bound) {
  Curve curve;
  for (size_t s = 0; s < kSteps; ++s) {
    HEDDLE_ASSIGN_OR_RETURN(const auto counts, bound ? shares.bound(load_at(s)) : shares.served(load_at(s)));
    curve[s] = total_share(counts);
  }
  return curve;
}

Status draw(const std::string& path, const std::array<Curve, std::size(kCurves)>& curves,
            const std::array<double, std::size(kCurves)>& instances) {
  Chart chart{.title = fmt::format("Poisson arrivals, mean of {} of PPipe's instances",
                                   *std::ranges::max_element(instances)),
              .x_label = "load factor (1: the rate of PPipe's plan)",
              .y_label = "requests in time",
              .y_min = .5,
              .y_max = 1,
              .y_percent = true};
  for (size_t c = 0; c < curves.size(); ++c) {
    if (instances[c] == 0) continue;
    ChartLine line{kCurves[c].legend, {}};
    for (size_t s = 0; s < kSteps && curves[c][s] >= chart.y_min; ++s)
      line.points.emplace_back(load_at(s), curves[c][s]);
    chart.lines.push_back(std::move(line));
  }
  chart.levels.emplace_back(kPpipeAttainment, "99 %");
  return write_file_atomic(path, chart_file(chart));
}

}  // namespace

Status bench_ppipe_attainment(const PpipeBench& bench, std::vector<BenchRow>& rows) {
  HEDDLE_ASSIGN_OR_RETURN(auto plans, make_ppipe_plans(bench.references, bench.options));
  std::erase_if(plans.cases, [](const PpipeCase& c) {
    return c.traffic != 0 || c.scheduler != SchedulerKind::kReservation;
  });
  HEDDLE_ASSIGN_OR_RETURN(const auto for_traffic, ppipe_plans_for_traffic(bench, plans));
  struct Job {
    const PpipeCase* of;
    size_t curve;
  };
  std::vector<Job> jobs;
  const PpipePlans* const both[] = {&plans, &for_traffic};
  for (const auto* from : both)
    for (const auto& c : from->cases)
      for (size_t k = 0; k < std::size(kCurves); ++k)
        if (c.planner == kCurves[k].planner) jobs.push_back({&c, k});
  if (jobs.empty()) return {};
  const FunctionTrace none;
  std::array<Curve, std::size(kCurves)> sums{};
  std::array<double, std::size(kCurves)> instances{};
  std::optional<Error> error;
  std::mutex mutex;
  size_t done = 0;
  for_each_on_threads(jobs.size(), 0, [&](size_t i) {
    const auto& [c, k] = jobs[i];
    const PpipeLoadShares shares(*c, none, static_cast<uint64_t>(bench.options.seed), bench.control.cancel);
    auto curve = curve_of(shares, kCurves[k].bound);
    const std::lock_guard lock(mutex);
    if (!curve.ok()) {
      if (!error) error = std::move(curve).error().with_context(ppipe_instance(*c));
      return;
    }
    for (size_t s = 0; s < kSteps; ++s) sums[k][s] += (*curve)[s];
    ++instances[k];
    if (bench.control.progress)
      bench.control.progress->report({.what = "attainment of " + ppipe_instance(*c),
                                      .done = static_cast<double>(++done),
                                      .total = static_cast<double>(jobs.size())});
  });
  if (error) return std::move(*error);
  for (size_t k = 0; k < sums.size(); ++k) {
    if (instances[k] == 0) continue;
    for (double& share : sums[k]) share /= instances[k];
    for (size_t s = 0; s < kSteps; s += kRowStep / kPercentStep)
      rows.push_back(ppipe_row("attainment mean, poisson", kCurves[k].planner,
                               std::string(kCurves[k].legend) + ", load " + fmt::format("{:.1f}", load_at(s)),
                               "%", 100 * sums[k][s]));
  }
  if (!bench.options.picture.empty()) HEDDLE_RETURN_IF_ERROR(draw(bench.options.picture, sums, instances));
  return {};
}

}  // namespace heddle::bench
