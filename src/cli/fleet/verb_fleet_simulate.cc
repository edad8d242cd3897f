// heddle fleet simulate: a fleet plan under load, as the data plane would serve it.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "fleet_verbs.h"
#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/report/fleet_view.h"
#include "serve/data_plane_flags.h"

namespace heddle::cli {
namespace {

struct FleetSimulateOptions {
  std::string fleet, plan, planner, load_factor = "1", trace, schedulers = "reservation";
  TrafficFlags traffic;
  std::string warmup = "0", guard = "0", stragglers, migrate_to, migrate_at = "0", load_time = "0";
  std::string csv, html, window;
  std::vector<std::string> lose;
  bool compressed = false, no_feedback = false, retry = false, bound = false;
  double rate_per_s = 0, duration_s = 30, attainment = .99, least_batch = .95, jitter = 0,
         avoid_stragglers = 0;
  int64_t seed = 1, threads = 0;
};

bool read_number(const std::string& text, double min, double max, double& value) {
  char* end = nullptr;
  value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' && value >= min && value <= max;
}

// ".5,.9,1" or FROM:TO:STEP.
Result<std::vector<double>> load_factors(const std::string& text) {
  const auto expected = "load factors above 0 and up to 100 as A,B,... or FROM:TO:STEP, at most 1000 of them";
  std::vector<double> factors;
  const auto range = split_at(text, ':');
  if (range.size() == 3) {
    double from = 0, to = 0, step = 0;
    if (!read_number(range[0], 1e-6, 100, from) || !read_number(range[1], from, 100, to) ||
        !read_number(range[2], 1e-6, 100, step) || (to - from) / step > 999)
      return flag_error("--load-factor", text, expected);
    const auto n = static_cast<int>((to - from) / step + 1e-9);
    for (int i = 0; i <= n; ++i) factors.push_back(from + i * step);
    return factors;
  }
  for (const auto& part : split_list(text)) {
    double factor = 0;
    if (!read_number(part, 1e-6, 100, factor)) return flag_error("--load-factor", text, expected);
    factors.push_back(factor);
  }
  if (factors.empty() || factors.size() > 1000) return flag_error("--load-factor", text, expected);
  std::sort(factors.begin(), factors.end());
  return factors;
}

Result<TimeNs> time_flag(const char* flag, const std::string& text) {
  const auto us = parse_time_us(text);
  if (!us || !(*us >= 0) || *us > 1e12) return flag_error(flag, text, "a time such as 5ms or 2s");
  return ns_from_us(*us);
}

// CLASS:N@TIME[-TIME]
Result<DeviceFault> fault_flag(const std::string& text, const Deployment& deployment) {
  const auto expected = "CLASS:N@TIME or CLASS:N@TIME-TIME, such as L4:2@10s-20s";
  const auto colon = text.rfind(':'), at = text.find('@', colon == std::string::npos ? 0 : colon);
  double n = 0;
  if (colon == std::string::npos || at == std::string::npos ||
      !read_number(text.substr(colon + 1, at - colon - 1), 1, 1e6, n) || n != std::floor(n))
    return flag_error("--lose", text, expected);
  std::vector<std::string> names;
  DeviceFault fault;
  fault.device_class = kNoId;
  for (uint32_t c = 0; c < deployment.classes.size(); ++c) {
    names.push_back(deployment.classes[c].name);
    if (names.back() == text.substr(0, colon)) fault.device_class = c;
  }
  if (fault.device_class == kNoId)
    return invalid_input("--lose " + text + ": no such class" + did_you_mean(text.substr(0, colon), names) +
                         "; there are " + join_names(names));
  fault.devices = static_cast<uint32_t>(n);
  const auto dash = text.find('-', at);
  HEDDLE_ASSIGN_OR_RETURN(
      fault.at, time_flag("--lose", text.substr(at + 1, dash == std::string::npos ? std::string::npos
                                                                                  : dash - at - 1)));
  if (dash != std::string::npos) {
    HEDDLE_ASSIGN_OR_RETURN(fault.back, time_flag("--lose", text.substr(dash + 1)));
    if (fault.back <= fault.at) return flag_error("--lose", text, "a return after the loss");
  }
  return fault;
}

struct Inputs {
  Fleet fleet;
  FleetPlan plan;
  Deployment deployment;
  std::optional<Deployment> migrate_to;
  FunctionTrace functions;
  std::vector<Arrival> recorded;
  SweepOptions sweep;
  std::vector<SchedulerKind> schedulers;
  std::string traffic;  // in words
};

// `path`: the plan's file; empty if it was planned here.
Result<Deployment> deployed(const Fleet& fleet, const FleetPlan& plan, const std::string& path) {
  auto deployment = deploy(fleet, plan);
  return path.empty() ? std::move(deployment) : with_context(std::move(deployment), path);
}

std::string planner_of(const FleetSimulateOptions& o) { return o.planner.empty() ? "auto" : o.planner; }

// The plan of --plan, or --planner's.
Result<FleetPlan> the_plan(const FleetSimulateOptions& o, const Fleet& fleet, const Invocation& invocation) {
  if (!o.plan.empty() && !o.planner.empty())
    return invalid_input("--planner " + o.planner + ": the plan is that of --plan; give one of the two");
  if (!o.plan.empty()) return read_fleet_plan(o.plan, fleet);
  FleetPlanOptions options;
  options.deadline = Deadline::never(invocation.cancel);
  options.progress = invocation.progress;
  return plan_fleet(fleet, planner_of(o), options);
}

// A file's first line shows which kind of trace it is.
Result<bool> is_recorded(const std::string& path) {
  constexpr std::string_view kRecorded = "time_us";
  const std::string head = file_head(path, kRecorded.size());
  if (head.empty())
    return Error(file_exists(path) ? Code::kIo : Code::kNotFound, "cannot be read, or is empty")
        .with_context(path);
  return head == kRecorded;
}

Status read_trace(const FleetSimulateOptions& o, const Invocation& invocation, Inputs& in) {
  HEDDLE_ASSIGN_OR_RETURN(const bool recorded_arrivals, is_recorded(o.trace));
  if (recorded_arrivals) {
    if (!o.traffic.kind.empty())
      return invalid_input("--traffic " + o.traffic.kind + ": recorded arrivals (" + o.trace +
                           ") are played as they are; leave it out");
    if (o.rate_per_s > 0)
      return invalid_input("--rate: recorded arrivals (" + o.trace +
                           ") have their own rate; scale it by --load-factor");
    std::vector<std::string> names;
    for (const auto& m : in.deployment.models) names.push_back(m.name);
    HEDDLE_ASSIGN_OR_RETURN(const auto text, read_file(o.trace));
    auto recorded = arrivals_from_csv(text, names);
    if (!recorded.ok()) return std::move(recorded).error().with_context(o.trace);
    in.recorded = std::move(recorded).value();
    in.sweep.recorded = &in.recorded;
    in.traffic = std::to_string(in.recorded.size()) + " recorded arrivals";
    return {};
  }
  HEDDLE_ASSIGN_OR_RETURN(in.functions, read_function_trace(o.trace, invocation.progress));
  auto& traffic = in.sweep.traffic;
  traffic.kind = TrafficKind::kFunctions;
  traffic.functions = &in.functions;
  traffic.folded = !o.compressed;
  in.traffic = std::to_string(in.functions.start_s.size()) + " invocations of " +
               std::to_string(in.functions.functions) + " functions, " +
               (o.compressed ? "compressed to the load" : "folded onto the load");
  return {};
}

// By model, at load factor 1: with --rate the same for every plan, split by the models' weights as a plan's load is.
std::vector<double> rates_of(const FleetSimulateOptions& o, const Inputs& in) {
  std::vector<double> rates;
  double weights = 0;
  for (const auto& m : in.fleet.models) weights += m.weight;
  for (size_t m = 0; m < in.fleet.models.size(); ++m)
    rates.push_back(o.rate_per_s > 0 ? o.rate_per_s * in.fleet.models[m].weight / weights
                                     : in.deployment.models[m].rate_per_s);
  return rates;
}

Status read_traffic(const FleetSimulateOptions& o, const Invocation& invocation, Inputs& in) {
  auto& traffic = in.sweep.traffic;
  HEDDLE_ASSIGN_OR_RETURN(traffic, o.traffic.traffic(true));
  if (!o.trace.empty()) return read_trace(o, invocation, in);
  if (traffic.kind == TrafficKind::kFunctions) {
    HEDDLE_ASSIGN_OR_RETURN(const auto text, synthetic_function_trace({}, static_cast<uint64_t>(o.seed)));
    HEDDLE_ASSIGN_OR_RETURN(in.functions, function_trace_from_csv(text));
    traffic.functions = &in.functions;
    traffic.folded = !o.compressed;
    in.traffic = std::string("synthetic function trace (clumps of 4 on average), ") +
                 (o.compressed ? "compressed to the load" : "folded onto the load");
    return {};
  }
  double rate = 0;
  for (const double r : in.sweep.rates_per_s) rate += r / static_cast<double>(in.sweep.rates_per_s.size());
  in.traffic = fmt::format("{} traffic", traffic_name(traffic.kind));
  if (const auto dispersion = index_of_dispersion(traffic, rate); dispersion && *dispersion > 1)
    in.traffic += fmt::format(", variance / mean of counts {:.3g} at a model's mean rate of {:.4g}/s",
                              *dispersion, rate);
  return {};
}

Status read_simulation(const FleetSimulateOptions& o, const Invocation& invocation, Inputs& in) {
  auto& s = in.sweep.simulation;
  s.seed = static_cast<uint64_t>(o.seed);
  s.cancel = invocation.cancel;
  s.dispatch.feedback = !o.no_feedback;
  s.dispatch.retry = o.retry;
  s.dispatch.least_batch_rate = o.least_batch;
  s.dispatch.avoid_stragglers = o.avoid_stragglers;
  HEDDLE_ASSIGN_OR_RETURN(s.dispatch.guard_ns, time_flag("--guard", o.guard));
  HEDDLE_ASSIGN_OR_RETURN(s.warmup, time_flag("--warmup", o.warmup));
  s.noise.jitter = o.jitter;
  if (!o.stragglers.empty()) {
    const auto parts = split_at(o.stragglers, ':');
    if (parts.size() != 2 || !read_number(parts[0], 0, 1, s.noise.straggler_share) ||
        !read_number(parts[1], 1, 1000, s.noise.straggler_factor))
      return flag_error("--stragglers", o.stragglers, "SHARE:FACTOR, such as 0.01:10");
  }
  for (const auto& text : o.lose) {
    HEDDLE_ASSIGN_OR_RETURN(const auto fault, fault_flag(text, in.deployment));
    s.faults.push_back(fault);
  }
  if (!o.migrate_to.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(const auto next, read_fleet_plan(o.migrate_to, in.fleet));
    HEDDLE_ASSIGN_OR_RETURN(in.migrate_to, deployed(in.fleet, next, o.migrate_to));
    PlanMigration migration{.to = &*in.migrate_to};
    HEDDLE_ASSIGN_OR_RETURN(migration.at, time_flag("--migrate-at", o.migrate_at));
    HEDDLE_ASSIGN_OR_RETURN(migration.load, time_flag("--load-time", o.load_time));
    s.migrations = {migration};
  }
  if (!o.window.empty()) {
    const auto parts = split_at(o.window, ':');
    if (parts.size() != 2) return flag_error("--window", o.window, "FROM:TO, such as 1s:1.2s");
    HEDDLE_ASSIGN_OR_RETURN(s.window_from, time_flag("--window", parts[0]));
    HEDDLE_ASSIGN_OR_RETURN(s.window_to, time_flag("--window", parts[1]));
    if (s.window_to <= s.window_from) return flag_error("--window", o.window, "an end after its begin");
  }
  return {};
}

Status read_schedulers(const FleetSimulateOptions& o, Inputs& in) {
  for (const auto& name : split_list(o.schedulers)) {
    HEDDLE_ASSIGN_OR_RETURN(const auto kind, scheduler_flag(name));
    in.schedulers.push_back(kind);
  }
  if (in.schedulers.empty())
    return flag_error("--scheduler", o.schedulers, "one or more of " + join_names(scheduler_names()));
  return {};
}

Result<int> run_fleet_simulate(const FleetSimulateOptions& o, const Invocation& invocation) {
  Inputs in;
  HEDDLE_RETURN_IF_ERROR(read_schedulers(o, in));
  HEDDLE_ASSIGN_OR_RETURN(in.sweep.load_factors, load_factors(o.load_factor));
  HEDDLE_RETURN_IF_ERROR(check_output(o.csv));
  HEDDLE_RETURN_IF_ERROR(check_output(o.html));
  if (o.avoid_stragglers > 0 && o.no_feedback)
    return invalid_input(
        "--avoid-stragglers goes by measured times, which --no-feedback ignores: give one of them");
  if (o.bound && (o.jitter > 0 || !o.stragglers.empty() || !o.migrate_to.empty()))
    return invalid_input(
        "--bound holds for one plan and exact times: leave out --jitter, --stragglers and --migrate-to");
  if (o.migrate_to.empty() && (o.migrate_at != "0" || o.load_time != "0"))
    return invalid_input("--migrate-at and --load-time belong to --migrate-to PLAN");
  if (!o.window.empty() && o.html.empty())
    return invalid_input("--window belongs to the page that --html FILE writes");
  if (o.compressed && o.trace.empty() && o.traffic.kind != "functions")
    return invalid_input("--compressed belongs to function traces: --traffic functions, or --trace CSV");
  HEDDLE_ASSIGN_OR_RETURN(in.fleet, read_fleet(o.fleet));
  HEDDLE_ASSIGN_OR_RETURN(in.plan, the_plan(o, in.fleet, invocation));
  HEDDLE_ASSIGN_OR_RETURN(in.deployment, deployed(in.fleet, in.plan, o.plan));
  in.sweep.rates_per_s = rates_of(o, in);
  HEDDLE_RETURN_IF_ERROR(read_traffic(o, invocation, in));
  if (o.rate_per_s > 0) in.traffic += fmt::format(", {:.6g} requests/s at load 1", o.rate_per_s);
  HEDDLE_RETURN_IF_ERROR(read_simulation(o, invocation, in));
  in.sweep.duration_s = o.duration_s;
  in.sweep.bound = o.bound;
  in.sweep.fleet = &in.fleet;
  in.sweep.plan = &in.plan;
  in.sweep.threads = static_cast<int>(o.threads);
  in.sweep.progress = invocation.progress;
  FleetSimulationView view;
  view.title = o.fleet + ", " + (o.plan.empty() ? "planned by " + planner_of(o) : o.plan);
  view.traffic = in.traffic;
  view.deployment = &in.deployment;
  view.wanted_attainment = o.attainment;
  view.window_from = in.sweep.simulation.window_from;
  view.window_to = in.sweep.simulation.window_to;
  for (const auto kind : in.schedulers) {
    in.sweep.simulation.scheduler = kind;
    HEDDLE_ASSIGN_OR_RETURN(auto points, sweep_loads(in.deployment, in.sweep));
    view.series.push_back({scheduler_name(kind), std::move(points)});
  }
  if (invocation.progress) invocation.progress->finish();
  if (!o.csv.empty()) HEDDLE_RETURN_IF_ERROR(write_file_atomic(o.csv, simulation_csv(view.series)));
  if (!o.html.empty()) HEDDLE_RETURN_IF_ERROR(write_file_atomic(o.html, fleet_simulation_html(view)));
  if (invocation.json) {
    Json rows = Json::array();
    for (const auto& s : view.series)
      for (const auto& p : s.points) {
        Json row = simulation_point_json(p);
        row["scheduler"] = s.scheduler;
        rows.push_back(std::move(row));
      }
    show_json(invocation, rows);
    return kExitDone;
  }
  print("{}, seed {}\n{}", in.traffic, o.seed, simulation_text(view));
  return kExitDone;
}

void declare_fleet_simulate(Command& command, FleetSimulateOptions& o) {
  command.positional("FLEET", o.fleet, "fleet file (.json, .yaml)");
  command.option("--plan", o.plan, "plan file of this fleet (default: --planner plans it)");
  command.option("--planner", o.planner, "one of `heddle fleet planners` (default auto)");
  command.rate("--rate", o.rate_per_s,
               "requests of all models, split by their weights (default: the plan's rates)", 0, 1e9);
  command.option("--load-factor", o.load_factor,
                 "loads relative to --rate or the plan's rates: A,B,... or FROM:TO:STEP (default 1)");
  o.traffic.declare(command, "poisson (default), diurnal, bursty, functions (a synthetic trace)");
  command.option("--trace", o.trace,
                 "CSV: function invocations (app,func,end_timestamp,duration; s) or recorded arrivals "
                 "(time_us[,model])");
  command.flag("--compressed", o.compressed,
               "play a function trace faster instead of folding it onto the load");
  command.seconds("--duration", o.duration_s, "time of arrivals (default 30s)", 1e-3, 1e6);
  command.option("--scheduler", o.schedulers,
                 "reservation (default), busy-until, reactive; several with commas are compared");
  command.option("--seed", o.seed, "random seed (default 1)", 0, INT64_MAX);
  command.option("--threads", o.threads, "simulations side by side (default: as many as cores)", 0, 1024);
  command.flag("--bound", o.bound, "show the most requests in time that any scheduler can reach");
  command.option("--attainment", o.attainment, "the wanted share in time (default .99)", 0, 1);
  command.option("--warmup", o.warmup, "time at the start whose requests are not counted (default 0)");
  command.option("--guard", o.guard, "time kept free before each deadline (default 0)");
  command.option("--least-batch", o.least_batch,
                 "drop a request that waiting leaves only a batch with less than this share of the planned "
                 "batch's requests per "
                 "device time (default .95; 0: never)",
                 0, 1);
  command.flag("--no-feedback", o.no_feedback, "measured times do not correct reservations");
  command.option("--avoid-stragglers", o.avoid_stragglers,
                 "no new work for a device whose run is overdue by this share of its time (default 0: off)",
                 0, 1000);
  command.flag("--retry", o.retry, "requests lost with a device are queued again");
  command.option("--jitter", o.jitter, "times vary log-normally by this (default 0)", 0, 2);
  command.option("--stragglers", o.stragglers,
                 "SHARE:FACTOR: this share of the runs takes FACTOR times as long");
  command.list("--lose", o.lose, "CLASS:N@TIME[-TIME]: N devices go, and return (repeatable)");
  command.option("--migrate-to", o.migrate_to, "another plan file of this fleet, to change to");
  command.option("--migrate-at", o.migrate_at, "when (default 0s)");
  command.option("--load-time", o.load_time, "of a device that gets another role (default 0s)");
  command.option("--csv", o.csv, "write the figures per scheduler, load and model");
  command.option("--html", o.html, "write a page with plots");
  command.option("--window", o.window, "draw the runs from FROM to TO in the page, such as 1s:1.2s");
}

}  // namespace

RunFn setup_fleet_simulate(Command& command) {
  auto o = std::make_shared<FleetSimulateOptions>();
  declare_fleet_simulate(command, *o);
  return [o](const Invocation& invocation) { return run_fleet_simulate(*o, invocation); };
}

}  // namespace heddle::cli
