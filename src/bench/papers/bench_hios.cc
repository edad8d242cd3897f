// The hios suite: HIOS's simulation (section V) on generated instances, the paper's figures beside. The
// paper's program times schedules by a rule that is not a schedule's (docs/hios.md), so its speed-ups and
// these are not comparable; they stand side by side to show by how much.
#include "bench_hios.h"

#include <limits>

#include "heddle/cost/cost_model.h"
#include "heddle/graph/generators.h"
#include "heddle/plan/hios_workload.h"
#include "suites.h"

namespace heddle::bench {
namespace {

constexpr int kUsualDevices = 4;

// A point of a figure: what it changes of section V-A's setting, and the paper's speed-ups over sequential
// (0: the paper gives none in words; IOS's is LP's over LP's speed-up over IOS).
struct Point {
  const char* part;
  std::string name;
  LayeredOptions options;
  int devices = kUsualDevices;
  double lp = 0, mr = 0, ios = 0;
};

// Sections V-C to V-G.
std::vector<Point> points() {
  std::vector<Point> list;
  list.push_back({"default", "section V-A", {}, kUsualDevices, 2.06, 1.35, 2.06 / 1.86});
  for (int m = 2; m <= 12; m += 2)
    list.push_back({"gpus", std::to_string(m) + " devices", {}, m, m == 2 ? 1.4 : m == 12 ? 3.8 : 0, 0});
  for (int n = 100; n <= 400; n += 50) {
    Point p{"ops", std::to_string(n) + " ops", {}, kUsualDevices, n == 200 ? 2.06 : 0, 0};
    p.options.ops = n;
    p.options.deps = 2 * n;
    list.push_back(p);
  }
  for (int deps = 400; deps <= 600; deps += 50) {
    Point p{"deps", std::to_string(deps) + " dependencies", {}, kUsualDevices, 0, 0};
    p.options.deps = deps;
    if (deps == 400) p.lp = 2.06, p.mr = 1.35, p.ios = 2.06 / 1.86;
    if (deps == 600) p.lp = 1.64, p.mr = 1.19, p.ios = 1.64 / 1.48;
    list.push_back(p);
  }
  for (int layers = 6; layers <= 22; layers += 4) {
    Point p{"layers", std::to_string(layers) + " layers", {}, kUsualDevices, 0, 411.0 / 305, 411.0 / 371};
    p.options.layers = layers;
    if (layers == 6) p.lp = 411.0 / 174;
    if (layers == 22) p.lp = 411.0 / 233;
    list.push_back(p);
  }
  for (int tenths = 4; tenths <= 12; tenths += 2) {
    Point p{"transfer", "p " + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10),
            {},         kUsualDevices,
            0,          0};
    p.options.transfer_share = tenths / 10.0;
    if (tenths == 4) p.lp = 2.23, p.mr = 1.52, p.ios = 2.23 / 2.01;
    if (tenths == 12) p.lp = 1.78, p.mr = 1.10, p.ios = 1.78 / 1.60;
    list.push_back(p);
  }
  return list;
}

Result<Problem> generated_problem(const Point& point, uint64_t seed) {
  LayeredOptions options = point.options;
  options.seed = seed;
  HEDDLE_ASSIGN_OR_RETURN(auto graph, generate_layered(options));
  const auto cluster = "preset:hios-sim-" + std::to_string(point.devices);
  HEDDLE_ASSIGN_OR_RETURN(Problem problem, bench_problem(std::move(graph), cluster, *given_cost_model()));
  problem.execution.link_contention = problem.execution.engine_contention = false;
  set_hios_stages(problem);
  return problem;
}

void add_means(const Point& point, const std::map<std::string, HiosFigures>& sums, double count,
               const BenchOptions& options, std::vector<BenchRow>& rows) {
  const std::string instance = std::string(point.part) + ": " + point.name;
  const double sequential = sums.at("sequential").latency_ms;
  for (const auto& planner : hios_planners(options)) {
    const HiosFigures& sum = sums.at(planner);
    rows.push_back(hios_latency_row(instance, planner, planner + ": mean latency",
                                    {sum.latency_ms / count, sum.bound_ms / count, sum.planning_s / count}));
    if (planner == "sequential") continue;
    auto speedup =
        hios_row(instance, planner, planner + ": speed-up over sequential", "x", sequential / sum.latency_ms);
    const double paper = planner == "hios-lp"   ? point.lp
                         : planner == "hios-mr" ? point.mr
                         : planner == "ios"     ? point.ios
                                                : 0;
    if (paper > 0) {
      speedup.against(paper, "HIOS, section V (another evaluator)");
    }
    rows.push_back(std::move(speedup));
  }
}

Status run_point(const Point& point, const BenchOptions& options, const Control& control,
                 std::vector<BenchRow>& rows) {
  std::map<std::string, HiosFigures> sums;
  int64_t count = 0;
  for (; count < options.instances; ++count) {
    const auto seed = static_cast<uint64_t>(options.seed) + static_cast<uint64_t>(count);
    HEDDLE_ASSIGN_OR_RETURN(const Problem problem, generated_problem(point, seed));
    HEDDLE_ASSIGN_OR_RETURN(const auto figures, run_hios_planners(problem, options, control));
    if (control.cancel.cancelled()) return {};
    for (const auto& [planner, f] : figures) {
      HiosFigures& sum = sums[planner];
      sum.latency_ms += f.latency_ms;
      sum.bound_ms += f.bound_ms;
      sum.planning_s += f.planning_s;
      if (options.each_instance)
        rows.push_back(
            hios_latency_row(std::string(point.part) + ": " + point.name + ", seed " + std::to_string(seed),
                             planner, planner + ": latency", f));
    }
    if (control.progress)
      control.progress->report({std::string("hios ") + point.part + ", " + point.name,
                                static_cast<double>(count + 1),
                                static_cast<double>(options.instances),
                                {},
                                {}});
  }
  if (count > 0) add_means(point, sums, static_cast<double>(count), options, rows);
  return {};
}

}  // namespace

std::vector<std::string> hios_planners(const BenchOptions& options) {
  std::vector<std::string> list = {"sequential", "ios",         "hios-mr-inter", "hios-mr",   "hios-lp-inter",
                                   "hios-lp",    "hios-lp-ios", "heft-stages",   "stage-list"};
  if (options.time_limit_s > 0) list.push_back("stage-search");
  return list;
}

Result<std::map<std::string, HiosFigures>> run_hios_planners(const Problem& problem,
                                                             const BenchOptions& options,
                                                             const Control& control) {
  std::map<std::string, HiosFigures> figures;
  SharedBound bounds(problem);
  for (const auto& planner : hios_planners(options)) {
    const double seconds =
        options.time_limit_s > 0 ? options.time_limit_s : std::numeric_limits<double>::infinity();
    PlannerOptions o = planner_options(options, seconds, control);
    o.progress = nullptr;  // many small instances, whose progress is the suite's
    HEDDLE_ASSIGN_OR_RETURN(const auto result, run_planner(*find_planner(planner), problem, o));
    figures[planner] = {result.value_us / 1000, 0, result.planning_s};
    HEDDLE_RETURN_IF_ERROR(bounds.add(result));
  }
  for (auto& [planner, f] : figures) f.bound_ms = bounds.best().us / 1000;
  return figures;
}

BenchRow hios_row(const std::string& instance, const std::string& planner, const std::string& metric,
                  const std::string& unit, double value) {
  return bench_row("hios", instance, planner, metric, unit, value);
}

BenchRow hios_latency_row(const std::string& instance, const std::string& planner, const std::string& metric,
                          const HiosFigures& figures) {
  auto row = hios_row(instance, planner, metric, "ms", figures.latency_ms);
  row.at_least(figures.bound_ms);
  row.seconds = figures.planning_s;
  return row;
}

std::vector<std::string> hios_parts() {
  return {"default", "gpus", "ops", "deps", "layers", "transfer", "models"};
}

namespace {

Status bench_hios_sweeps(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows) {
  for (const Point& point : points()) {
    if (!wanted(options, point.part)) continue;
    HEDDLE_RETURN_IF_ERROR(
        whole_instance(control, rows, [&] { return run_point(point, options, control, rows); }));
  }
  return {};
}

}  // namespace

Status bench_hios(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows) {
  if (!options.input.empty()) return bench_hios_input(options, control, rows);
  HEDDLE_RETURN_IF_ERROR(check_parts(options, hios_parts()));
  HEDDLE_RETURN_IF_ERROR(bench_hios_sweeps(options, control, rows));
  return bench_hios_models(options, control, rows);
}

}  // namespace heddle::bench
