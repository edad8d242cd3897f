// Many seeds, in processes of their own.
#include <algorithm>
#include <csignal>

#include "heddle/base/child_process.h"
#include "heddle/base/json.h"
#include "heddle/base/stopwatch.h"
#include "heddle/serve/simulate_service.h"

namespace heddle {
namespace {

constexpr int64_t kSeedsOfAProcess = 50;

// The program's handlers only raise a flag, which a simulation does not look at.
void end_at_interrupts() {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
}

// Up to the first seed that fails. A process of its own runs them: a seed may crash it. Errors: kCancelled if it was
// interrupted.
Result<Json> run_seeds(uint64_t from, int64_t count, const CancelToken& cancel) {
  return run_in_child([from, count, &cancel]() -> Result<Json> {
    end_at_interrupts();
    if (cancel.cancelled()) return cancelled_error("stopped");  // before, in either process
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

// Adds the seeds that are complete to `sums`. Errors: kCancelled.
Result<std::optional<FailedSeed>> failed_seed(uint64_t from, int64_t count, SimulatedSeeds& sums,
                                              const CancelToken& cancel) {
  const auto run = run_seeds(from, count, cancel);
  if (!run.ok()) {
    const auto& error = run.error();
    if (error.code() == Code::kCancelled) return error;
    if (count == 1) return std::optional(FailedSeed{from, error.to_string()});
    for (int64_t i = 0; i < count; ++i) {
      HEDDLE_ASSIGN_OR_RETURN(auto failed, failed_seed(from + static_cast<uint64_t>(i), 1, sums, cancel));
      if (failed) return failed;
    }
    return std::optional(
        FailedSeed{from, "seeds from here on fail together, but not alone: " + error.to_string()});
  }
  sums.seeds += count;
  sums.simulated_s += (*run)["simulated_s"].get<double>();
  sums.requests += (*run)["requests"].get<uint64_t>();
  sums.faults += (*run)["faults"].get<uint64_t>();
  sums.plan_changes += (*run)["plan_changes"].get<uint64_t>();
  if (!run->contains("failed")) return std::optional<FailedSeed>();
  return std::optional(FailedSeed{(*run)["failed"].get<uint64_t>(), (*run)["why"].get<std::string>()});
}

}  // namespace

Result<SimulatedSeeds> simulate_seeds(int64_t first, int64_t seeds, const Control& control) {
  const Stopwatch watch;
  SimulatedSeeds sums;
  while (sums.seeds < seeds && !sums.failed) {
    const int64_t count = std::min(kSeedsOfAProcess, seeds - sums.seeds);
    auto failed = failed_seed(static_cast<uint64_t>(first + sums.seeds), count, sums, control.cancel);
    if (!failed.ok()) {
      if (sums.seeds == 0) return cancelled_error("stopped");
      break;
    }
    sums.failed = std::move(*failed);
    if (sums.failed) sums.seeds = static_cast<int64_t>(sums.failed->seed) - first + 1;
    control.report("simulating seeds", static_cast<double>(sums.seeds), static_cast<double>(seeds));
  }
  if (control.progress != nullptr) control.progress->finish();
  sums.seconds = watch.seconds();
  return sums;
}

void trace_seed(uint64_t seed, const std::function<void(int64_t now_ns, const std::string& line)>& trace) {
  (void)run_in_child([&]() -> Result<Json> {
    end_at_interrupts();
    (void)simulate_service({.seed = seed, .trace = trace});
    return Json();
  });
}

}  // namespace heddle
