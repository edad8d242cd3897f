#include "bench_busy.h"

#include <algorithm>
#include <deque>

#include "heddle/runtime/affinity.h"
#include "heddle/runtime/run.h"
#include "heddle/session/session.h"

namespace heddle::bench {
namespace {

constexpr Engine kRivals[] = {Engine::kOpenVino, Engine::kOnnxRuntime};

}  // namespace

std::string with_neighbours(size_t count) { return std::to_string(count) + " busy: "; }

Status bench_busy(const BenchModel& model, const BenchOptions& options, const Control& control,
                  std::vector<BenchRow>& rows, BusyRatios& ratios) {
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
  for (size_t count = 0; count < ratios.size(); ++count) {
    std::deque<BusyThread> neighbours;  // on whatever cores the system gives them
    for (size_t i = 0; i < count; ++i) neighbours.emplace_back(std::span<const int>());
    HEDDLE_ASSIGN_OR_RETURN(const auto versus, compare_with_engines(session.problem, plan.plan,
                                                                    session.loaded.model, kRivals, rounds));
    const std::string with = with_neighbours(count);
    auto median = bench_row("models", model.name, "auto", with + "median", "us", versus.ours_us);
    auto p95 = bench_row("models", model.name, "auto", with + "95th percentile", "us", versus.ours_p95_us);
    double best_us = 0, best_p95_us = 0, ratio = 0;
    std::vector<BenchRow> alone;  // each engine's
    for (const EngineComparison& engine : versus.engines) {
      if (!engine.absent.empty()) continue;
      const char* name = engine_name(engine.engine);
      alone.push_back(bench_row("models", model.name, name, with + name + ", median", "us", engine.us));
      alone.push_back(
          bench_row("models", model.name, name, with + name + ", 95th percentile", "us", engine.p95_us));
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
    ratios[count].median.push_back(ratio);
    ratios[count].p95.push_back(versus.ours_p95_us / best_p95_us);
  }
  return {};
}

}  // namespace heddle::bench
