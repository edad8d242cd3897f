// DiviML's latency figures: Table I (ten modules), Figure 4 (one module), Table III (speed of splitting).
#include <algorithm>

#include "bench_diviml.h"

namespace heddle::bench {
namespace {

using Family = RandomWiredOptions::Family;
using Dependency = RandomWiredOptions::Dependency;

constexpr double kLatencySeconds = 5;

// Table I, ms: columns as in PaperRow, then the lower bound.
constexpr PaperRow kTable1[] = {
    {Dependency::kSeries, 1, 211.7, 209.9, 104.4, 99.9, 97.5, 98.9, 80.1, 80.1, 80.1},
    {Dependency::kSeries, 2, 234.9, 219.3, 111.8, 109.3, 103.8, 106.2, 78.9, 79.1, 73.7},
    {Dependency::kSeries, 3, 236.5, 235.4, 114.2, 108.5, 104.7, 106.1, 79.9, 80.3, 68.1},
    {Dependency::kSeries, 4, 250.5, 249.1, 116.3, 111.3, 107.6, 109.5, 79.1, 79.4, 61.3},
    {Dependency::kWeak, 2, 225.2, 223.8, 103.7, 101.7, 97.3, 98.1, 74.3, 77.6, 73.3},
    {Dependency::kWeak, 3, 229.9, 229.3, 107.4, 104.3, 100.9, 103.1, 76.6, 78.7, 71.8},
    {Dependency::kWeak, 4, 242.9, 240.7, 106.8, 104.4, 102.0, 103.6, 71.6, 77.0, 62.1},
};

double limit_of(const BenchOptions& o) { return o.time_limit_s > 0 ? o.time_limit_s : kLatencySeconds; }

// One network: every planner's latency as a share of the best device's, and the best bound.
Status add_latencies(const WiredCase& which, const PaperRow* reference, const BenchOptions& options,
                     const Control& control, std::vector<BenchRow>& rows) {
  HEDDLE_ASSIGN_OR_RETURN(const Problem problem, wired_problem(which, static_cast<uint64_t>(options.seed)));
  const double seconds = limit_of(options);
  const size_t begin = rows.size();
  double best_device = 0, automatic = 0;
  SharedBound bounds(problem);
  BestOf best;
  for (const auto& [planner, column] : kPaperColumns) {
    HEDDLE_ASSIGN_OR_RETURN(const auto result,
                            plan_within(planner, problem, which.name(), seconds, options, control));
    const std::string name = planner;
    if (name == "single") best_device = result.value_us;
    if (name == "auto") automatic = result.value_us;
    best.add(name, result.value_us);
    HEDDLE_RETURN_IF_ERROR(bounds.add(result));
    auto r = diviml_row(which.name(), planner, name + ", latency over best device's", "%",
                        100 * result.value_us / best_device);
    r.beside("latency (ms)", result.value_us / 1000);
    set_trajectory(r, result.trajectory, seconds);
    if (reference != nullptr) {
      r.against(100 * reference->*column / reference->best, "DiviML, Table I");
    }
    rows.push_back(r);
  }
  share_best_known(rows, begin);
  const auto add = [&](const char* planner, const char* metric, const char* unit, double value,
                       double in_paper) {
    auto r = diviml_row(which.name(), planner, metric, unit, value);
    if (reference != nullptr) {
      r.against(in_paper, "DiviML, Table I");
    }
    rows.push_back(r);
  };
  const PaperRow none{};
  const PaperRow& paper = reference != nullptr ? *reference : none;
  add("best", "bound over the best split's latency", "%", 100 * bounds.best().us / best.split,
      100 * paper.bound / paper.split);
  add("best", "best of MET, Greedy and HEFT over the best split's latency", "x",
      best.constructive / best.split, std::min({paper.met, paper.greedy, paper.heft}) / paper.split);
  add("best", "best heuristic's latency over the best split's", "x", best.heuristic / best.split,
      std::min({paper.ea, paper.sa, paper.heft}) / paper.split);
  add("auto", "better of MILP's and MILP-SPLIT's latency over auto's", "x", best.paper / automatic, 1);
  add("auto", "best split's latency over auto's", "x", best.split / automatic, 1);
  return {};
}

}  // namespace

Status bench_diviml_latency(const BenchOptions& options, const Control& control,
                            std::vector<BenchRow>& rows) {
  const auto add = [&](const WiredCase& which, const PaperRow* reference) {
    return whole_instance(control, rows,
                          [&] { return add_latencies(which, reference, options, control, rows); });
  };
  if (wanted(options, "table1")) {
    for (const PaperRow& reference : kTable1)
      HEDDLE_RETURN_IF_ERROR(
          add({Family::kErdosRenyi, reference.dependency, 10, 10, reference.channels}, &reference));
  }
  if (wanted(options, "figure4")) {
    for (const Family family : {Family::kErdosRenyi, Family::kWattsStrogatz, Family::kBarabasiAlbert}) {
      for (const int nodes : {10, 32})
        HEDDLE_RETURN_IF_ERROR(add({family, Dependency::kSeries, nodes, 1, 1}, nullptr));
    }
  }
  // Larger than the defaults: by name only.
  if (!options.only.empty() && wanted(options, "table1-n32")) {
    for (const PaperRow& reference : kTable1)
      HEDDLE_RETURN_IF_ERROR(
          add({Family::kErdosRenyi, reference.dependency, 32, 10, reference.channels}, &reference));
  }
  return {};
}

namespace {

// Each splitting's time until it stops by itself, against the MILP's on the whole graph, all within twice the limit.
// If the MILP is cut off, the factor is a lower bound on the true one; if the splitting is, it is no bound.
Status add_speeds(const WiredCase& which, double factor, const BenchOptions& options, const Control& control,
                  std::vector<BenchRow>& rows) {
  HEDDLE_ASSIGN_OR_RETURN(const Problem problem, wired_problem(which, static_cast<uint64_t>(options.seed)));
  const double seconds = 2 * limit_of(options);
  HEDDLE_ASSIGN_OR_RETURN(const auto milp,
                          plan_within("diviml-milp", problem, which.name(), seconds, options, control));
  for (const std::string planner : {"milp-split", "cp-split"}) {
    HEDDLE_ASSIGN_OR_RETURN(const auto split,
                            plan_within(planner.c_str(), problem, which.name(), seconds, options, control));
    const bool cut_off = split.stop == StopReason::kTimeLimit;
    auto r = diviml_row(which.name(), planner,
                        "MILP's time over " + planner + "'s" + (cut_off ? " (cut off)" : ""), "x",
                        milp.planning_s / split.planning_s);
    r.beside("MILP's latency over " + planner + "'s" +
                 (milp.stop == StopReason::kTimeLimit ? ", MILP cut off" : ""),
             milp.value_us / split.value_us);
    if (planner == "milp-split") r.against(factor, "DiviML, Table III");
    rows.push_back(r);
  }
  return {};
}

}  // namespace

Status bench_diviml_speed(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows) {
  if (!wanted(options, "table3")) return {};
  // The factor is the time of MILP over that of MILP-SPLIT.
  const struct {
    Dependency dependency;
    int modules;
    double factor;
  } kTable3[] = {{Dependency::kSeries, 5, 37}, {Dependency::kSeries, 10, 48}, {Dependency::kSeries, 20, 141},
                 {Dependency::kWeak, 5, 53},   {Dependency::kWeak, 10, 54},   {Dependency::kWeak, 20, 395}};
  for (const auto& reference : kTable3) {
    const WiredCase which{Family::kErdosRenyi, reference.dependency, 10, reference.modules,
                          reference.dependency == Dependency::kWeak ? 2 : 1};
    HEDDLE_RETURN_IF_ERROR(whole_instance(
        control, rows, [&] { return add_speeds(which, reference.factor, options, control, rows); }));
  }
  return {};
}

}  // namespace heddle::bench
