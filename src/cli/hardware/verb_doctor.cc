// heddle doctor: checks what Heddle needs of this machine, a fleet that a server serves, or the service of fleets on a
// simulated clock.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "doctor_fleet.h"
#include "heddle/base/json.h"
#include "heddle/base/log.h"
#include "heddle/base/spelling.h"
#include "heddle/base/terminal.h"
#include "heddle/serve/simulate_service.h"
#include "heddle/session/machine_checks.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

struct SimulateFlags {
  std::optional<int64_t> seeds, first_seed;  // first_seed: else 1
};

constexpr const char* kStateNames[] = {"ok", "absent", "FAILS"};
constexpr Ink kStateInks[] = {Ink::kGreen, Ink::kYellow, Ink::kRed};

Result<int> run_doctor(const Invocation& invocation) {
  Json rows = Json::array();
  TextTable table({{"check"}, {"state"}, {"detail"}});
  const auto checks = check_machine();
  for (const MachineCheck& check : checks) {
    const char* state = kStateNames[static_cast<size_t>(check.state)];
    rows.push_back({{"check", check.name}, {"state", state}, {"detail", check.detail}});
    table.add_row({check.name, painted(kStateInks[static_cast<size_t>(check.state)], state), check.detail});
  }
  show_result(invocation, rows, table.to_string());
  const bool fails = std::ranges::count(checks, CheckState::kFails, &MachineCheck::state) > 0;
  return fails ? kExitNo : kExitDone;
}

// The service under seeded faults on a simulated clock.
Result<int> run_simulations(const SimulateFlags& flags, const Invocation& invocation) {
  if (!flags.seeds)
    return invalid_input("--first-seed needs --simulate, the number of seeds to simulate from there");
  const int64_t first_seed = flags.first_seed.value_or(1);
  stop_log();  // planning logs real times, which differ from run to run; a replay has its own lines
  if (invocation.verbose && *flags.seeds == 1) {
    trace_seed(static_cast<uint64_t>(first_seed), [](int64_t now_ns, const std::string& line) {
      print(stderr, "{:10.4f} s  {}\n", static_cast<double>(now_ns) * 1e-9, line);
      std::fflush(stderr);
    });
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto run, simulate_seeds(first_seed, *flags.seeds, invocation));
  Json json = {{"seeds", run.seeds},     {"simulated_s", run.simulated_s},
               {"seconds", run.seconds}, {"requests", run.requests},
               {"faults", run.faults},   {"plan_changes", run.plan_changes}};
  std::string text =
      fmt::format("{} in {:.1f} s: {:.0f} s simulated, {} requests, {} faults, {} changes of plan",
                  counted(static_cast<size_t>(run.seeds), "seed"), run.seconds, run.simulated_s, run.requests,
                  run.faults, run.plan_changes);
  if (!run.failed) {
    text += run.seeds < *flags.seeds ? fmt::format("\nstopped: these of {} seeds hold\n", *flags.seeds)
                                     : "\nall seeds hold\n";
  } else {
    const auto replay = fmt::format("heddle doctor --simulate 1 --first-seed {} --verbose", run.failed->seed);
    json["failed"] = {{"seed", run.failed->seed}, {"why", run.failed->why}, {"replay", replay}};
    text += fmt::format("\nseed {} FAILS: {}\nreplay it: {}\n", run.failed->seed, run.failed->why, replay);
  }
  show_result(invocation, json, text);
  return run.failed ? kExitNo : kExitDone;
}

}  // namespace

RunFn setup_doctor(Command& command) {
  const auto flags = std::make_shared<SimulateFlags>();
  command.option("--simulate", flags->seeds,
                 "instead, simulate the service of a fleet with this many seeds of faults", 1, 1'000'000'000);
  command.option("--first-seed", flags->first_seed, "the first seed of --simulate (default 1)", 1,
                 1'000'000'000'000);
  const auto fleet = std::make_shared<FleetDoctorFlags>();
  fleet->declare(command);
  return [flags, fleet](const Invocation& invocation) -> Result<int> {
    const bool simulates = flags->seeds || flags->first_seed;
    if (!fleet->url.empty() && simulates)
      return invalid_input("--simulate and URL exclude each other: a running fleet is not simulated");
    if (const char* flag = fleet->first(); flag != nullptr && fleet->url.empty())
      return invalid_input(std::string(flag) + " needs the URL of a running fleet's server");
    if (!fleet->url.empty()) return run_fleet_doctor(*fleet, invocation);
    return simulates ? run_simulations(*flags, invocation) : run_doctor(invocation);
  };
}

}  // namespace heddle::cli
