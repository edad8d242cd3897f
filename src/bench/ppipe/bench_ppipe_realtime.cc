// The published plan and ours on timed devices behind the server, at .95 of the load at 99 %, beside the simulation of
// the same arrivals. Times are stretched, since a machine of a few cores is too small for a fleet's load.
#include <algorithm>
#include <cmath>

#include "bench_ppipe_loads.h"
#include "heddle/fleet/goodput_plan.h"
#include "heddle/serve/fleet_server.h"
#include "heddle/serve/load.h"
#include "heddle/serve/rest_api.h"

namespace heddle::bench {
namespace {

constexpr const char* kRealTimeCluster = "HC1-L";
constexpr const char* kRealTimeGroup = "G1";
constexpr double kClock = 10;  // all times are so much longer
constexpr double kLoadOfGreatest = .95;
constexpr double kServedSeconds = 3;  // of the fleet's time; a time limit is that of each run
constexpr TimeNs kGuard = 2'000'000;  // as `heddle serve`: a thread wakes late
constexpr double kWantedPoints = 1;   // served and simulated differ by at most so many points
constexpr int64_t kRealTimeRuns = 3;  // a busy machine delays single runs

struct Compared {
  double simulated = 0, served = 0;  // % in time
  double lateness_us = 0;            // p99 of requests sent after they were due
};

Result<Compared> serve_and_simulate(const Fleet& fleet, const FleetPlan& plan, const PpipeCase& c,
                                    double seconds, uint64_t seed, const CancelToken& cancel) {
  const FunctionTrace none;
  HEDDLE_ASSIGN_OR_RETURN(const double greatest, PpipeLoadShares(c, none, seed, cancel).greatest_served());
  auto rates = c.rates;
  for (double& r : rates) r *= kLoadOfGreatest * greatest;
  HEDDLE_ASSIGN_OR_RETURN(auto arrivals, make_arrivals({}, rates, seconds, seed));
  SimulationOptions simulation;
  simulation.dispatch.guard_ns = static_cast<TimeNs>(kGuard / kClock);
  simulation.seed = seed;
  HEDDLE_ASSIGN_OR_RETURN(const auto simulated, simulate(*c.deployment, arrivals, simulation));
  LivePlaneOptions options;
  options.dispatch.guard_ns = kGuard;
  HEDDLE_ASSIGN_OR_RETURN(auto generation, timed_generation(fleet, plan, options, kClock));
  InferService service;
  service.serve(std::move(generation));
  HEDDLE_ASSIGN_OR_RETURN(const auto http, start_rest(service));
  LoadTarget target;
  target.port = http->port();
  HEDDLE_ASSIGN_OR_RETURN(const auto models, load_models(target, {}, {.seed = seed}));
  scale_arrivals(arrivals, 1 / kClock);
  HEDDLE_ASSIGN_OR_RETURN(const auto run, run_load(target, models, arrivals, {.cancel = cancel}));
  http->stop(1);
  service.stop(1);
  return Compared{100 * simulated.total.attainment(), 100 * run.counted.total.attainment(),
                  us_from_ns(run.lateness.percentile(.99))};
}

Result<std::vector<BenchRow>> rows_of(const PpipeBench& bench, const PpipeReference& r, const FleetPlan& plan,
                                      const std::string& planner, const std::vector<double>& rates) {
  HEDDLE_ASSIGN_OR_RETURN(const auto deployment, deploy(r.fleet, plan));
  const PpipeCase c{r.cluster, r.group, planner, 0, SchedulerKind::kReservation, &deployment, rates};
  std::vector<BenchRow> rows;
  double least = 100, most = 0;
  const auto& options = bench.options;
  const double seconds = options.time_limit_s > 0 ? options.time_limit_s / kClock : kServedSeconds;
  for (int64_t run = 0; run < options.repeats.value_or(kRealTimeRuns); ++run) {
    HEDDLE_ASSIGN_OR_RETURN(const auto compared, serve_and_simulate(r.fleet, plan, c, seconds,
                                                                    static_cast<uint64_t>(options.seed) +
                                                                        static_cast<uint64_t>(run),
                                                                    bench.control.cancel));
    if (bench.control.cancel.cancelled()) return cancelled_error("the suite was stopped");
    const double points = std::abs(compared.served - compared.simulated);
    least = std::min(least, points);
    most = std::max(most, points);
    rows.push_back(ppipe_row(ppipe_instance(c) + ", real time", planner,
                             planner + ", in time, served, run " + std::to_string(run + 1), "%",
                             compared.served));
    rows.back().beside("simulated", compared.simulated);
    rows.push_back(ppipe_row(ppipe_instance(c) + ", real time", planner,
                             planner + ", sent after due, p99, run " + std::to_string(run + 1), "us",
                             compared.lateness_us));
  }
  rows.push_back(ppipe_row(ppipe_instance(c) + ", real time", planner,
                           planner + ", served from simulated, least", "points", least));
  rows.push_back(ppipe_row(ppipe_instance(c) + ", real time", planner,
                           planner + ", served from simulated, most", "points", most));
  rows.back().against(kWantedPoints, "goal");
  return rows;
}

}  // namespace

Status bench_ppipe_realtime(const PpipeBench& bench, std::vector<BenchRow>& rows) {
  for (const auto& r : bench.references) {
    if (r.algorithm != "v4" || r.cluster != kRealTimeCluster || r.group != kRealTimeGroup ||
        !ppipe_instance_wanted(bench.options, r.cluster, r.group))
      continue;
    std::vector<double> rates;
    for (const auto& m : r.plan.models) rates.push_back(std::floor(m.rate_per_s + 1e-6));
    HEDDLE_ASSIGN_OR_RETURN(const auto published, rows_of(bench, r, r.plan, "published ppipe", rates));
    rows.insert(rows.end(), published.begin(), published.end());
    HEDDLE_ASSIGN_OR_RETURN(const auto own, plan_for_traffic(r.fleet, 0, kPpipePlanRequests, bench));
    HEDDLE_ASSIGN_OR_RETURN(const auto ours, rows_of(bench, r, own, "auto for the traffic", rates));
    rows.insert(rows.end(), ours.begin(), ours.end());
  }
  return {};
}

}  // namespace heddle::bench
