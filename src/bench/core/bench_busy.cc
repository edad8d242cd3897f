// Does a plan hold while other work runs on the machine? Latency of the usual plan beside engines that run the model
// alone on all cores, in turns, with busy neighbours.
#include <algorithm>
#include <deque>

#include "bench_files.h"
#include "heddle/runtime/affinity.h"
#include "heddle/runtime/run.h"
#include "heddle/session/session.h"
#include "suites.h"

namespace heddle::bench {
namespace {

constexpr int kMostNeighbours = 2;
constexpr Engine kRivals[] = {Engine::kOpenVino, Engine::kOnnxRuntime};

struct BusyRatios {
  std::vector<double> median, p95;  // of each model, to the better engine
};

Status bench_model_busy(const BenchModel& model, const BenchOptions& options, const Control& control,
                        std::vector<BenchRow>& rows, std::vector<BusyRatios>& ratios) {
  ProblemSettings settings;
  settings.store = options.store;
  SearchSettings search;
  search.time_limit_s = 1;
  search.seed = static_cast<uint64_t>(options.seed);
  HEDDLE_ASSIGN_OR_RETURN(auto session, open_session(model.source(), settings, control));
  HEDDLE_ASSIGN_OR_RETURN(const auto plan, make_plan(session, "auto", search, control));
  RoundOptions rounds;
  rounds.deadline = Deadline::never(control.cancel);
  rounds.progress = control.progress;
  for (int count = 0; count <= kMostNeighbours; ++count) {
    std::deque<BusyThread> neighbours;  // on whatever cores the system gives them
    for (int i = 0; i < count; ++i) neighbours.emplace_back(std::span<const int>());
    HEDDLE_ASSIGN_OR_RETURN(const auto versus, compare_with_engines(session.problem, plan.plan,
                                                                    session.loaded.model, kRivals, rounds));
    const std::string with = std::to_string(count) + " busy: ";
    auto median = bench_row("busy", model.name, "auto", with + "median", "us", versus.ours_us);
    auto p95 = bench_row("busy", model.name, "auto", with + "95th percentile", "us", versus.ours_p95_us);
    double best_us = 0, best_p95_us = 0, ratio = 0;
    std::vector<BenchRow> alone;  // each engine's
    for (const EngineComparison& engine : versus.engines) {
      if (!engine.absent.empty()) continue;
      const char* name = engine_name(engine.engine);
      alone.push_back(bench_row("busy", model.name, name, with + name + ", median", "us", engine.us));
      alone.push_back(
          bench_row("busy", model.name, name, with + name + ", 95th percentile", "us", engine.p95_us));
      if (best_us == 0 || engine.us < best_us) {
        best_us = engine.us;
        median.beside(name, engine.us);
      }
      if (best_p95_us == 0 || engine.p95_us < best_p95_us) {
        best_p95_us = engine.p95_us;
        p95.beside(name, engine.p95_us);
      }
      ratio = std::max(ratio, engine.ratio);
    }
    rows.push_back(median);
    rows.push_back(p95);
    rows.insert(rows.end(), alone.begin(), alone.end());
    if (best_us == 0) continue;
    ratios[static_cast<size_t>(count)].median.push_back(ratio);
    ratios[static_cast<size_t>(count)].p95.push_back(versus.ours_p95_us / best_p95_us);
  }
  return {};
}

void add_largest(const std::string& metric, const std::vector<double>& ratios, double target,
                 std::vector<BenchRow>& rows) {
  if (ratios.empty()) return;
  auto row = bench_row("busy", "all models", "auto", metric, "", *std::ranges::max_element(ratios));
  row.against(target, "target");
  rows.push_back(row);
}

}  // namespace

Result<std::vector<BenchRow>> bench_busy(const BenchOptions& options, const Control& control) {
  std::vector<BenchRow> rows;
  std::vector<BusyRatios> ratios(kMostNeighbours + 1);
  HEDDLE_RETURN_IF_ERROR(for_each_model(options, control, [&](const BenchModel& model) {
    return bench_model_busy(model, options, control, rows, ratios);
  }));
  for (size_t count = 0; count < ratios.size(); ++count) {
    const std::string with = std::to_string(count) + " busy: ";
    add_largest(with + "median / better engine, largest", ratios[count].median, 1.05, rows);
    add_largest(with + "95th percentile / better engine, largest", ratios[count].p95, 1.1, rows);
  }
  return rows;
}

}  // namespace heddle::bench
