#include "bench_ppipe_cases.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

namespace heddle::bench {
namespace {

// The published sweep's load factors.
std::vector<double> load_grid() {
  std::vector<double> grid;
  for (int percent = 5; percent <= 100; percent += 5) grid.push_back(percent / 100.);
  return grid;
}

// The class with fewer devices is the high one in all of PPipe's clusters.
void read_use(const SimulationResult& r, PpipeOutcome& out) {
  if (r.classes.size() != 2) return;
  const bool first_is_high = r.classes[0].devices < r.classes[1].devices;
  out.high_use = r.classes[first_is_high ? 0 : 1].busy_share;
  out.low_use = r.classes[first_is_high ? 1 : 0].busy_share;
}

// Every model has its own greatest load, found on simulations of the whole group at one load each.
Result<PpipeOutcome> measure(const PpipeCase& c, const FunctionTrace& functions, int64_t seed,
                             const CancelToken& cancel) {
  const auto grid = load_grid();
  std::map<size_t, SimulationResult> at;
  PpipeOutcome out;
  std::optional<Error> error;
  const auto simulated = [&](size_t i) -> const SimulationResult* {
    if (const auto found = at.find(i); found != at.end()) return &found->second;
    SweepOptions o;
    o.load_factors = {grid[i]};
    o.rates_per_s = c.rates;
    o.duration_s = kPpipeSeconds;
    o.threads = 1;
    o.simulation.scheduler = c.scheduler;
    o.simulation.seed = static_cast<uint64_t>(seed);
    o.simulation.cancel = cancel;
    if (c.traffic == 1) {
      o.traffic.kind = TrafficKind::kFunctions;
      o.traffic.functions = &functions;
    }
    const Stopwatch watch;
    auto points = sweep_loads(*c.deployment, o);
    out.simulating_s += watch.seconds();
    if (!points.ok()) {
      if (!error) error = points.error();
      return nullptr;
    }
    return &(at[i] = std::move((*points)[0].result));
  };
  size_t largest = 0;
  for (size_t m = 0; m < c.deployment->models.size(); ++m) {
    const double load = greatest_load(grid, [&](size_t i) {
      const auto* r = simulated(i);
      if (r == nullptr || r->models[m].requests.attainment() < kPpipeAttainment) return false;
      largest = std::max(largest, i);
      return true;
    });
    out.load += load / static_cast<double>(c.deployment->models.size());
  }
  // Use at the load nearest to the models' mean.
  const auto near = static_cast<size_t>(std::clamp<long>(std::lround(out.load * 20) - 1, 0, 19));
  if (const auto* r = simulated(near)) {
    read_use(*r, out);
    out.probes = static_cast<double>(r->counters.probes) /
                 static_cast<double>(std::max<uint64_t>(1, r->counters.batches));
  }
  if (error) return std::move(*error);
  return out;
}

const char* name_of(const std::string& algorithm) {
  return algorithm == "v4" ? "published ppipe" : algorithm == "bl" ? "published np" : "published dart-r";
}

// Load factor 1 of an instance is its published PPipe plan.
std::vector<double> base_rates(const std::vector<PpipeReference>& references, const PpipeReference& of) {
  std::vector<double> rates;
  for (const auto& r : references)
    if (r.algorithm == "v4" && r.cluster == of.cluster && r.group == of.group)
      for (const auto& m : r.plan.models) rates.push_back(std::floor(m.rate_per_s + 1e-6));
  return rates;
}

void add_cases(PpipePlans& plans, const PpipeReference& r, const std::string& planner,
               const std::vector<double>& rates) {
  for (size_t traffic = 0; traffic < std::size(kPpipeTraffics); ++traffic) {
    plans.cases.push_back({r.cluster, r.group, planner, traffic, SchedulerKind::kReservation,
                           &plans.deployments.back(), rates});
    if (planner != "published ppipe") continue;
    plans.cases.push_back(
        {r.cluster, r.group, planner, traffic, SchedulerKind::kReactive, &plans.deployments.back(), rates});
    // The paper compares the data planes on HC2-L under Poisson arrivals.
    if (r.cluster == "HC2-L" && traffic == 0)
      plans.cases.push_back({r.cluster, r.group, planner, traffic, SchedulerKind::kBusyUntil,
                             &plans.deployments.back(), rates});
  }
}

}  // namespace

std::string ppipe_instance(const PpipeCase& c) { return c.cluster + "/" + c.group; }

bool ppipe_instance_wanted(const BenchOptions& options, const std::string& cluster,
                           const std::string& group) {
  bool named = false;
  for (const auto& o : options.only) {
    if (o.rfind("HC", 0) != 0) continue;
    if (o == cluster || o == cluster + "/" + group) return true;
    named = true;
  }
  return !named;
}

Result<PpipePlans> make_ppipe_plans(const std::vector<PpipeReference>& references,
                                    const BenchOptions& options) {
  PpipePlans plans;
  plans.deployments.reserve(2 * references.size());
  for (const auto& r : references) {
    const auto rates = base_rates(references, r);
    if (!ppipe_instance_wanted(options, r.cluster, r.group) || r.plan.models.empty() ||
        rates.size() != r.fleet.models.size())
      continue;
    auto deployment = deploy(r.fleet, r.plan);
    if (!deployment.ok()) return std::move(deployment).error().with_context(r.plan_id);
    plans.deployments.push_back(std::move(deployment).value());
    add_cases(plans, r, name_of(r.algorithm), rates);
    if (r.algorithm != "v4") continue;
    auto own = plan_fleet(r.fleet, "auto");
    if (!own.ok()) return std::move(own).error().with_context(r.plan_id);
    HEDDLE_ASSIGN_OR_RETURN(auto own_deployment, deploy(r.fleet, *own));
    plans.deployments.push_back(std::move(own_deployment));
    add_cases(plans, r, "auto", rates);
  }
  return plans;
}

Result<std::vector<PpipeOutcome>> measure_ppipe_cases(std::span<const PpipeCase> cases,
                                                      const FunctionTrace& functions, int64_t seed,
                                                      const Control& control) {
  std::vector<PpipeOutcome> outcomes(cases.size());
  std::optional<Error> error;
  std::mutex mutex;
  size_t done = 0;
  for_each_on_threads(cases.size(), 0, [&](size_t i) {
    auto outcome = measure(cases[i], functions, seed, control.cancel);
    const std::lock_guard lock(mutex);
    if (!outcome.ok()) {
      if (!error) error = outcome.error();
    } else {
      outcomes[i] = *outcome;
    }
    if (control.progress)
      control.progress->report({.what = "simulating " + ppipe_instance(cases[i]),
                                .done = static_cast<double>(++done),
                                .total = static_cast<double>(cases.size())});
  });
  if (error) return std::move(*error);
  return outcomes;
}

}  // namespace heddle::bench
