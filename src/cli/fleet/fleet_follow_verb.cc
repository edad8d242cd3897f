// heddle fleet follow: plans that follow the load over time, beside one plan for the peak.
#include <memory>

#include "fleet_verbs.h"
#include "heddle/base/file.h"
#include "heddle/fleet/follow.h"
#include "heddle/report/fleet_load_text.h"
#include "serve/data_plane_flags.h"

namespace heddle::cli {
namespace {

constexpr double kSyntheticRate = 5;  // invocations per second of a synthetic day

struct FollowFlags {
  std::string fleet, trace, traffic = "diurnal", scheduler = "reservation";
  double rate_per_s = 0, duration_s = 600, window_s = 0, load_s = .2, day_s = 0, swing = .8, attainment = .99;
  int64_t hold = 3, seed = 1;
};

// Arrivals and what they are, in words.
struct FollowLoad {
  std::vector<Arrival> arrivals;
  double duration_s = 0;
  std::string text;
};

// Without --rate the peak of the swing is at 85 % of the greatest rate that a plan has.
Result<std::vector<double>> mean_rates(const FollowFlags& o, const Fleet& fleet,
                                       const Invocation& invocation) {
  double total = o.rate_per_s, weights = 0;
  for (const auto& m : fleet.models) weights += m.weight;
  if (total <= 0) {
    FleetPlanOptions options;
    options.deadline = Deadline::never(invocation.cancel);
    HEDDLE_ASSIGN_OR_RETURN(const auto plan, plan_fleet(fleet, "auto", options));
    total = .85 * plan.value * weights / (1 + o.swing);
  }
  std::vector<double> rates;
  for (const auto& m : fleet.models) rates.push_back(total * m.weight / weights);
  return rates;
}

Result<FollowLoad> recorded_load(const FollowFlags& o, const Fleet& fleet, const std::string& text) {
  if (o.rate_per_s > 0)
    return invalid_input("--rate: recorded arrivals (" + o.trace + ") have their own rate");
  std::vector<std::string> names;
  for (const auto& m : fleet.models) names.push_back(m.name);
  FollowLoad load;
  HEDDLE_ASSIGN_OR_RETURN(load.arrivals, with_context(arrivals_from_csv(text, names), o.trace));
  load.duration_s = seconds_from_ns(load.arrivals.back().at + 1);
  load.text = counted(load.arrivals.size(), "recorded arrival");
  return load;
}

Result<FollowLoad> load_of(const FollowFlags& o, const Fleet& fleet, const Invocation& invocation) {
  FollowLoad load{{}, o.duration_s, {}};
  FunctionTrace trace;
  if (!o.trace.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(const auto text, read_file(o.trace));
    if (text.starts_with("time_us")) return recorded_load(o, fleet, text);
    HEDDLE_ASSIGN_OR_RETURN(trace, with_context(function_trace_from_csv(text, invocation.progress), o.trace));
  } else if (o.traffic == "functions") {
    HEDDLE_ASSIGN_OR_RETURN(
        const auto text,
        synthetic_function_trace({.duration_s = 86400, .rate_per_s = kSyntheticRate, .swing = o.swing},
                                 static_cast<uint64_t>(o.seed)));
    HEDDLE_ASSIGN_OR_RETURN(trace, function_trace_from_csv(text));
  } else if (o.traffic != "diurnal") {
    return no_such("--traffic", "traffic", o.traffic, {"diurnal", "functions"});
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto rates, mean_rates(o, fleet, invocation));
  double total = 0;
  for (const double r : rates) total += r;
  const auto seed = static_cast<uint64_t>(o.seed);
  if (trace.start_s.empty()) {
    Traffic traffic;
    traffic.kind = TrafficKind::kDiurnal;
    traffic.swing = o.swing;
    traffic.period_s = o.day_s > 0 ? o.day_s : o.duration_s;
    HEDDLE_ASSIGN_OR_RETURN(load.arrivals, make_arrivals(traffic, rates, o.duration_s, seed));
    load.text = fmt::format("diurnal traffic, swing {:.3g}", o.swing);
  } else {
    HEDDLE_ASSIGN_OR_RETURN(load.arrivals, arrivals_in_shape(trace, rates, o.duration_s, seed));
    load.text = fmt::format("the shape of {} invocations{}", trace.start_s.size(),
                            o.trace.empty() ? " of a synthetic day" : "");
  }
  load.text += fmt::format(", {:.6g} requests/s on average", total);
  return load;
}

Result<int> run_fleet_follow(const FollowFlags& o, const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto scheduler, scheduler_flag(o.scheduler));
  HEDDLE_ASSIGN_OR_RETURN(const auto fleet, read_fleet(o.fleet));
  HEDDLE_ASSIGN_OR_RETURN(const auto load, load_of(o, fleet, invocation));
  FollowOptions options;
  options.duration_s = load.duration_s;
  options.window_s = o.window_s > 0 ? o.window_s : load.duration_s / 60;
  if (options.window_s * 2 > load.duration_s)
    return flag_error("--replan-every", fmt::format("{:.6g}s", options.window_s),
                      fmt::format("at most half of the {:.6g} s of arrivals", load.duration_s));
  if (o.load_s >= options.window_s)
    return flag_error("--load-time", fmt::format("{:.6g}s", o.load_s),
                      fmt::format("less than a window, which is {:.6g} s", options.window_s));
  options.load_s = o.load_s;
  options.hold = static_cast<int>(o.hold);
  options.day_s = o.day_s;
  options.attainment = o.attainment;
  options.simulation.scheduler = scheduler;
  options.simulation.seed = static_cast<uint64_t>(o.seed);
  options.simulation.cancel = invocation.cancel;
  options.progress = invocation.progress;
  HEDDLE_ASSIGN_OR_RETURN(const auto result, follow_load(fleet, load.arrivals, options));
  show_result(invocation, follow_json(fleet, result, options.window_s),
              fmt::format("{}, seed {}; {} windows of {:.4g} s\n{}", load.text, o.seed, result.windows,
                          options.window_s, follow_text(result)));
  return kExitDone;
}

}  // namespace

RunFn setup_fleet_follow(Command& command) {
  auto o = std::make_shared<FollowFlags>();
  command.positional("FLEET", o->fleet, "fleet file (.json or .yaml)");
  command.option("--traffic", o->traffic, "diurnal (default), or functions: a synthetic day of invocations");
  command.option("--trace", o->trace,
                 "CSV: function invocations, whose shape is stretched to --duration, or recorded arrivals");
  command.rate("--rate", o->rate_per_s,
               "mean requests of all models (default: the peak is 85 % of the greatest planned rate)", 0,
               1e9);
  command.option("--swing", o->swing, "swing of the rate around the mean (default .8)", 0, 1);
  command.seconds("--duration", o->duration_s,
                  "time of arrivals (default 10min: a day at 144 times its speed)", 1e-3, 1e6);
  command.seconds("--period", o->day_s,
                  "a day, which the forecast looks back by (default: the load is one day)", 1e-3, 1e6);
  command.seconds("--replan-every", o->window_s, "time between plans (default: 1/60 of the duration)", 1e-3,
                  1e6);
  command.seconds("--load-time", o->load_s, "time in which a device loads other weights (default 200ms)", 0,
                  3600);
  command.option("--hold", o->hold, "windows for which a lower need must hold (default 3)", 1, 1000);
  command.option("--attainment", o->attainment, "the wanted share in time of each model (default .99)", .01,
                 .9999);
  command.option("--scheduler", o->scheduler, "reservation (default), busy-until, reactive");
  command.option("--seed", o->seed, "random seed (default 1)", 0, INT64_MAX);
  return [o](const Invocation& invocation) { return run_fleet_follow(*o, invocation); };
}

}  // namespace heddle::cli
