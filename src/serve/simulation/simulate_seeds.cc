// Many seeds, in processes of their own.
#include <algorithm>

#include "heddle/base/child_process.h"
#include "heddle/base/json.h"
#include "heddle/base/stopwatch.h"
#include "heddle/serve/simulate_service.h"

namespace heddle {
namespace {

constexpr int64_t kSeedsOfAProcess = 50;

// Up to the first seed that fails. A process of its own runs them: a seed may crash it.
Result<Json> run_seeds(uint64_t from, int64_t count) {
  return run_in_child([from, count]() -> Result<Json> {
    Json out = {{"simulated_s", 0.0}, {"requests", 0}, {"faults", 0}, {"plan_changes", 0}};
    for (uint64_t seed = from; seed < from + static_cast<uint64_t>(count); ++seed) {
      const auto run = simulate_service({.seed = seed});
      out["simulated_s"] = out["simulated_s"].get<double>() + run.simulated_s;
      out["requests"] = out["requests"].get<uint64_t>() + run.counts.requests;
      out["faults"] = out["faults"].get<uint64_t>() + run.counts.faults;
      out["plan_changes"] = out["plan_changes"].get<uint64_t>() + run.counts.plan_changes;
      if (run.status.ok()) continue;
      out["failed"] = seed;
      out["why"] = run.status.error().to_string();
      break;
    }
    return out;
  });
}

std::optional<FailedSeed> failed_seed(uint64_t from, int64_t count, SimulatedSeeds& sums) {
  const auto run = run_seeds(from, count);
  if (!run.ok()) {
    if (count == 1) return FailedSeed{from, run.error().to_string()};
    for (int64_t i = 0; i < count; ++i)
      if (auto failed = failed_seed(from + static_cast<uint64_t>(i), 1, sums)) return failed;
    return FailedSeed{from, "seeds from here on fail together, but not alone: " + run.error().to_string()};
  }
  sums.simulated_s += (*run)["simulated_s"].get<double>();
  sums.requests += (*run)["requests"].get<uint64_t>();
  sums.faults += (*run)["faults"].get<uint64_t>();
  sums.plan_changes += (*run)["plan_changes"].get<uint64_t>();
  if (!run->contains("failed")) return std::nullopt;
  return FailedSeed{(*run)["failed"].get<uint64_t>(), (*run)["why"].get<std::string>()};
}

}  // namespace

Result<SimulatedSeeds> simulate_seeds(int64_t first, int64_t seeds, const Control& control) {
  const Stopwatch watch;
  SimulatedSeeds sums;
  while (sums.seeds < seeds && !sums.failed) {
    const SimulatedSeeds before = sums;
    const int64_t count = std::min(kSeedsOfAProcess, seeds - sums.seeds);
    sums.failed = failed_seed(static_cast<uint64_t>(first + sums.seeds), count, sums);
    // A terminal interrupts the child, too, which then fails.
    if (control.cancel.cancelled()) {
      if (before.seeds == 0) return cancelled_error("stopped");
      sums = before;
      break;
    }
    sums.seeds = sums.failed ? static_cast<int64_t>(sums.failed->seed) - first + 1 : sums.seeds + count;
    control.report("simulating seeds", static_cast<double>(sums.seeds), static_cast<double>(seeds));
  }
  if (control.progress != nullptr) control.progress->finish();
  sums.seconds = watch.seconds();
  return sums;
}

void trace_seed(uint64_t seed, const std::function<void(int64_t now_ns, const std::string& line)>& trace) {
  (void)run_in_child([&]() -> Result<Json> {
    (void)simulate_service({.seed = seed, .trace = trace});
    return Json();
  });
}

}  // namespace heddle
