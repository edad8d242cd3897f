#include "doctor_simulate.h"

#include <algorithm>
#include <cstdio>

#include "heddle/base/child_process.h"
#include "heddle/base/json.h"
#include "heddle/base/log.h"
#include "heddle/base/progress.h"
#include "heddle/base/spelling.h"
#include "heddle/base/stopwatch.h"
#include "heddle/serve/simulate_service.h"

namespace heddle::cli {
namespace {

constexpr int64_t kSeedsOfAProcess = 50;

struct Sums {
  double simulated_s = 0;
  uint64_t requests = 0, faults = 0, plan_changes = 0;
};

struct FailedSeed {
  uint64_t seed = 0;
  std::string why;
};

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

std::optional<FailedSeed> failed_seed(uint64_t from, int64_t count, Sums& sums) {
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

// What happens in a seed, line by line.
void print_events(uint64_t seed) {
  ServiceSimulationOptions options;
  options.seed = seed;
  options.trace = [](int64_t now_ns, const std::string& line) {
    fmt::print(stderr, "{:10.4f} s  {}\n", static_cast<double>(now_ns) * 1e-9, line);
    std::fflush(stderr);
  };
  (void)simulate_service(options);
}

}  // namespace

Result<int> run_simulations(const SimulateFlags& flags, const Invocation& invocation) {
  if (!flags.seeds)
    return invalid_input("--first-seed needs --simulate, the number of seeds to simulate from there");
  const int64_t seeds = *flags.seeds, first_seed = flags.first_seed.value_or(1);
  stop_log();  // planning logs real times, which differ from run to run; a replay has its own lines
  const Stopwatch watch;
  Sums sums;
  int64_t done = 0;
  std::optional<FailedSeed> failed;
  if (invocation.verbose && seeds == 1) {
    (void)run_in_child([first_seed]() -> Result<Json> {
      print_events(static_cast<uint64_t>(first_seed));
      return Json();
    });
  }
  while (done < seeds && !failed) {
    if (invocation.cancel.cancelled()) return cancelled_error("stopped");
    const int64_t count = std::min(kSeedsOfAProcess, seeds - done);
    failed = failed_seed(static_cast<uint64_t>(first_seed + done), count, sums);
    done = failed ? static_cast<int64_t>(failed->seed) - first_seed + 1 : done + count;
    if (invocation.progress != nullptr)
      invocation.progress->report(
          {"simulating seeds", static_cast<double>(done), static_cast<double>(seeds), {}, {}});
  }
  if (invocation.progress != nullptr) invocation.progress->finish();
  Json json = {{"seeds", done},
               {"simulated_s", sums.simulated_s},
               {"seconds", watch.seconds()},
               {"requests", sums.requests},
               {"faults", sums.faults},
               {"plan_changes", sums.plan_changes}};
  std::string text =
      fmt::format("{} in {:.1f} s: {:.0f} s simulated, {} requests, {} faults, {} changes of plan",
                  counted(static_cast<size_t>(done), "seed"), watch.seconds(), sums.simulated_s,
                  sums.requests, sums.faults, sums.plan_changes);
  if (!failed) {
    text += "\nall seeds hold\n";
  } else {
    const auto replay = fmt::format("heddle doctor --simulate 1 --first-seed {} --verbose", failed->seed);
    json["failed"] = {{"seed", failed->seed}, {"why", failed->why}, {"replay", replay}};
    text += fmt::format("\nseed {} FAILS: {}\nreplay it: {}\n", failed->seed, failed->why, replay);
  }
  show_result(invocation, json, text);
  return failed ? kExitNo : kExitDone;
}

}  // namespace heddle::cli
