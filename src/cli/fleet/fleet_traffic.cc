// Plans for the requests in time under a traffic or traces, as flags ask for them.
#include <deque>

#include "fleet_verbs.h"
#include "heddle/base/file.h"

namespace heddle::cli {
namespace {

// What the loads of --trace refer to.
struct Traces {
  std::deque<FunctionTrace> functions;
  std::deque<std::vector<Arrival>> recorded;
};

Result<GoodputLoad> read_load(const std::string& path, const Fleet& fleet, Traces& traces) {
  HEDDLE_ASSIGN_OR_RETURN(const auto text, read_file(path));
  GoodputLoad load;
  if (text.starts_with("time_us")) {
    std::vector<std::string> names;
    for (const auto& m : fleet.models) names.push_back(m.name);
    HEDDLE_ASSIGN_OR_RETURN(auto arrivals, with_context(arrivals_from_csv(text, names), path));
    load.recorded = &traces.recorded.emplace_back(std::move(arrivals));
  } else {
    HEDDLE_ASSIGN_OR_RETURN(auto trace, with_context(function_trace_from_csv(text), path));
    load.traffic.kind = TrafficKind::kFunctions;
    load.traffic.functions = &traces.functions.emplace_back(std::move(trace));
  }
  return load;
}

}  // namespace

void FleetTrafficFlags::declare(Command& command) {
  traffic.declare(command,
                  "choose margins by simulation, for most requests in time: poisson, diurnal, bursty, "
                  "functions (a synthetic trace)");
  command.list("--trace", traces,
               "the same for a CSV of function invocations or recorded arrivals (repeatable: the plan is for "
               "the trace of which it serves the fewest requests/s)");
  command.option("--attainment", attainment,
                 "with --traffic or --trace: the share of each model's requests (default .99)", 0, 1);
  command.option("--seed", seed, "with --traffic or --trace: seed of the arrivals (default 1)", 0, INT64_MAX);
}

std::string FleetTrafficFlags::words() const {
  if (traces.empty()) return traffic.kind + " traffic";
  return traces.size() == 1 ? traces[0] : fmt::format("the worst of {} traces", traces.size());
}

Result<GoodputPlan> FleetTrafficFlags::plan(const Fleet& fleet, const std::string& planner,
                                            const FleetPlanOptions& planning) const {
  if (!given()) {
    if (attainment != .99 || seed != 1)
      return invalid_input(
          "--attainment and --seed are for simulated arrivals; say which by --traffic or --trace");
    GoodputPlan found;
    HEDDLE_ASSIGN_OR_RETURN(found.plan, plan_fleet(fleet, planner, planning));
    return found;
  }
  const std::string flag = traces.empty() ? "--traffic " + traffic.kind : "--trace " + traces[0];
  if (!traces.empty() && !traffic.kind.empty())
    return invalid_input("--traffic " + traffic.kind + ": the arrivals are those of " + flag +
                         "; give one of the two");
  if (planning.objective != FleetObjective::kMaxMin)
    return invalid_input(flag + " plans for the objective max-min; leave out --objective " +
                         fleet_objective_name(planning.objective));
  GoodputPlanOptions options{.planning = planning};
  options.goodput.attainment = attainment;
  options.goodput.seed = static_cast<uint64_t>(seed);
  HEDDLE_ASSIGN_OR_RETURN(options.goodput.traffic, traffic.traffic(true));
  Traces read;
  for (const auto& path : traces) {
    HEDDLE_ASSIGN_OR_RETURN(options.loads.emplace_back(), read_load(path, fleet, read));
  }
  if (options.goodput.traffic.kind == TrafficKind::kFunctions) {
    HEDDLE_ASSIGN_OR_RETURN(const auto text, synthetic_function_trace({}, static_cast<uint64_t>(seed)));
    HEDDLE_ASSIGN_OR_RETURN(auto trace, function_trace_from_csv(text));
    options.goodput.traffic.functions = &read.functions.emplace_back(std::move(trace));
  }
  return plan_for_goodput(fleet, planner, options);
}

GoodputWords FleetTrafficFlags::goodput() const {
  if (!given()) return {};
  return {.arrivals = words(),
          .traffic = traces.empty()       ? traffic.kind
                     : traces.size() == 1 ? "trace"
                                          : "traces",
          .attainment = attainment};
}

}  // namespace heddle::cli
