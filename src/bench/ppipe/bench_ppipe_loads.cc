#include "bench_ppipe_loads.h"

#include <algorithm>
#include <mutex>

#include "heddle/fleet/goodput_plan.h"
#include "heddle/fleet/load_bound.h"

namespace heddle::bench {
namespace {

// Up to 1.6, which no plan reaches on more than single instances.
std::vector<double> fine_grid() {
  std::vector<double> grid;
  for (int percent = 30; percent <= 160; ++percent) grid.push_back(percent / 100.);
  return grid;
}

}  // namespace

PpipeLoadShares::PpipeLoadShares(const PpipeCase& c, const FunctionTrace& functions, uint64_t seed,
                                 const CancelToken& cancel)
    : case_(c) {
  options_.rates_per_s = c.rates;
  options_.duration_s = kPpipeSeconds;
  options_.threads = 1;
  options_.simulation.seed = seed;
  options_.simulation.scheduler = c.scheduler;
  options_.simulation.dispatch = c.dispatch;
  options_.simulation.cancel = cancel;
  if (c.traffic == 1) {
    options_.traffic.kind = TrafficKind::kFunctions;
    options_.traffic.functions = &functions;
  }
}

Result<PpipeLoadShares::Counts> PpipeLoadShares::served(double load) const {
  auto o = options_;
  o.load_factors = {load};
  HEDDLE_ASSIGN_OR_RETURN(const auto points, sweep_loads(*case_.deployment, o));
  Counts counts;
  for (const auto& m : points[0].result.models) {
    counts.requests.push_back(m.requests.arrivals);
    counts.in_time.push_back(m.requests.in_time);
  }
  return counts;
}

Result<PpipeLoadShares::Counts> PpipeLoadShares::bound(double load) const {
  auto rates = options_.rates_per_s;
  for (double& r : rates) r *= load;
  HEDDLE_ASSIGN_OR_RETURN(const auto arrivals, make_arrivals(options_.traffic, rates, options_.duration_s,
                                                             options_.simulation.seed));
  Counts counts;
  HEDDLE_ASSIGN_OR_RETURN(counts.in_time, bound_in_time(*case_.deployment, arrivals));
  counts.requests.assign(counts.in_time.size(), 0);
  for (const auto& a : arrivals) ++counts.requests[a.model];
  return counts;
}

// The mean over the models of the greatest load with the wanted share of its requests.
template <class CountsAt>
Result<double> PpipeLoadShares::greatest_of(const CountsAt& counts_at) const {
  const auto grid = fine_grid();
  std::map<size_t, Counts> at;
  std::optional<Error> error;
  const auto models = case_.deployment->models.size();
  double sum = 0;
  for (size_t m = 0; m < models; ++m)
    sum += greatest_load(grid, [&](size_t i) {
      if (!at.contains(i)) {
        auto counts = counts_at(grid[i]);
        if (!counts.ok()) {
          error = counts.error();
          return false;
        }
        at[i] = std::move(*counts);
      }
      const auto& c = at[i];
      return static_cast<double>(c.in_time[m]) >= kPpipeAttainment * static_cast<double>(c.requests[m]);
    });
  if (error) return std::move(*error);
  return sum / static_cast<double>(models);
}

Result<double> PpipeLoadShares::greatest_served() const {
  return greatest_of([this](double load) { return served(load); });
}

Result<PpipeLoads> PpipeLoadShares::greatest() const {
  PpipeLoads loads;
  HEDDLE_ASSIGN_OR_RETURN(loads.served, greatest_served());
  HEDDLE_ASSIGN_OR_RETURN(loads.bound, greatest_of([this](double load) { return bound(load); }));
  return loads;
}

Result<std::vector<FunctionTrace>> ppipe_functions(const PpipeBench& bench, int seeds) {
  std::vector<FunctionTrace> functions;
  for (int seed = 0; seed < seeds; ++seed) {
    HEDDLE_ASSIGN_OR_RETURN(const auto text,
                            synthetic_function_trace(
                                {}, static_cast<uint64_t>(bench.options.seed) + static_cast<uint64_t>(seed)));
    HEDDLE_ASSIGN_OR_RETURN(functions.emplace_back(), function_trace_from_csv(text));
  }
  return functions;
}

Result<FleetPlan> plan_for_traffic(const Fleet& fleet, size_t traffic, double requests,
                                   const PpipeBench& bench) {
  const auto seed = static_cast<uint64_t>(bench.options.seed) + kPpipeOtherSeeds;
  GoodputPlanOptions o;
  o.planning.deadline = Deadline::never(bench.control.cancel);
  o.goodput.attainment = kPpipeAttainment;
  o.goodput.requests = requests;
  o.goodput.seed = seed;
  FunctionTrace functions;
  if (traffic == 1) {
    HEDDLE_ASSIGN_OR_RETURN(const auto text, synthetic_function_trace({}, seed));
    HEDDLE_ASSIGN_OR_RETURN(functions, function_trace_from_csv(text));
    o.goodput.traffic.kind = TrafficKind::kFunctions;
    o.goodput.traffic.functions = &functions;
  }
  HEDDLE_ASSIGN_OR_RETURN(auto plan, plan_for_goodput(fleet, "auto", o));
  return std::move(plan.plan);
}

Result<PpipePlans> ppipe_plans_for_traffic(const PpipeBench& bench, const PpipePlans& plans) {
  PpipePlans made;
  std::vector<const PpipeReference*> references;
  for (const auto& c : plans.cases) {
    if (c.planner != "auto" || c.scheduler != SchedulerKind::kReservation) continue;
    for (const auto& r : bench.references) {
      if (r.algorithm != "v4" || r.cluster != c.cluster || r.group != c.group) continue;
      references.push_back(&r);
      made.cases.push_back(c);
      made.cases.back().planner = "auto for the traffic";
    }
  }
  made.deployments.resize(made.cases.size());
  std::optional<Error> error;
  std::mutex mutex;
  size_t done = 0;
  for_each_on_threads(made.cases.size(), 0, [&](size_t i) {
    const auto& fleet = references[i]->fleet;
    const auto plan = plan_for_traffic(fleet, made.cases[i].traffic, kPpipePlanRequests, bench);
    auto deployment = plan.ok() ? deploy(fleet, *plan) : Result<Deployment>(plan.error());
    const std::lock_guard lock(mutex);
    if (deployment.ok()) {
      made.deployments[i] = std::move(*deployment);
      made.cases[i].deployment = &made.deployments[i];
    } else if (!error) {
      error = std::move(deployment).error().with_context(references[i]->plan_id);
    }
    if (bench.control.progress)
      bench.control.progress->report({.what = "planning for the traffic",
                                      .done = static_cast<double>(++done),
                                      .total = static_cast<double>(made.cases.size())});
  });
  if (error) return std::move(*error);
  return made;
}

}  // namespace heddle::bench
