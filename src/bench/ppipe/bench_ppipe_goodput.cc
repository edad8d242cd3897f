// The goodput part of the ppipe suite: the load factor up to which each plan answers 99 % in time, in steps of .01 and
// over several seeds, beside a proven bound for any scheduler on the same arrivals.
#include <cmath>
#include <map>
#include <mutex>

#include "bench_ppipe_cases.h"
#include "heddle/fleet/goodput_plan.h"

namespace heddle::bench {
namespace {

constexpr int kSeeds = 10;             // of the simulations
constexpr int kBoundSeeds = 1;         // the first of them; a bound takes a hundred times as long
constexpr int64_t kOtherSeeds = 1000;  // plans are chosen on other arrivals than those they are judged on

std::vector<double> fine_grid() {
  std::vector<double> grid;
  for (int percent = 30; percent <= 120; ++percent) grid.push_back(percent / 100.);
  return grid;
}

struct Goodputs {
  double served = 0, bound = 0;  // load factors, means over the models
};

// Every model has its own greatest load, as in the part "simulation".
Result<Goodputs> goodputs(const PpipeCase& c, const FunctionTrace& functions, int64_t seed, bool with_bound,
                          const CancelToken& cancel) {
  const auto grid = fine_grid();
  SweepOptions o;
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
  std::optional<Error> error;
  std::map<std::pair<size_t, bool>, SweepPoint> known;
  const auto point = [&](size_t i, bool bound) -> const SweepPoint* {
    if (const auto found = known.find({i, bound}); found != known.end()) return &found->second;
    o.load_factors = {grid[i]};
    o.bound = bound;
    auto points = sweep_loads(*c.deployment, o);
    if (!points.ok()) {
      if (!error) error = points.error();
      return nullptr;
    }
    return &(known[{i, bound}] = std::move((*points)[0]));
  };
  Goodputs out;
  const auto models = static_cast<double>(c.deployment->models.size());
  for (uint32_t m = 0; m < c.deployment->models.size(); ++m) {
    const auto served = [&](size_t i) {
      const auto* p = point(i, false);
      return p != nullptr && p->result.models[m].requests.attainment() >= kPpipeAttainment;
    };
    out.served += greatest_load(grid, served) / models;
    if (!with_bound) continue;
    out.bound += greatest_load(grid,
                               [&](size_t i) {
                                 const auto* p = point(i, true);
                                 if (p == nullptr) return false;
                                 for (const auto& part : p->bound->parts)
                                   if (part.models == std::vector{m}) return part.share() >= kPpipeAttainment;
                                 return true;  // it shares its pools: no bound for it alone
                               }) /
                 models;
  }
  if (error) return std::move(*error);
  return out;
}

// Mean and half the width of its 95 % interval, by Student's t for kSeeds values.
struct Estimate {
  double mean = 0, half_width = 0;
};
Estimate estimate(const std::vector<double>& values) {
  constexpr double kT9 = 2.262;  // 97.5 % quantile with 9 degrees of freedom
  Estimate e;
  for (const double v : values) e.mean += v / static_cast<double>(values.size());
  double squares = 0;
  for (const double v : values) squares += (v - e.mean) * (v - e.mean);
  const auto n = static_cast<double>(values.size());
  if (values.size() > 1) e.half_width = kT9 * std::sqrt(squares / (n - 1) / n);
  return e;
}

// Plans for requests in time under each traffic, of the instances that `plans` has.
Result<PpipePlans> plans_for_traffic(const PpipeBench& bench, const PpipePlans& plans) {
  HEDDLE_ASSIGN_OR_RETURN(
      const auto text, synthetic_function_trace({}, static_cast<uint64_t>(bench.options.seed + kOtherSeeds)));
  HEDDLE_ASSIGN_OR_RETURN(const auto functions, function_trace_from_csv(text));
  PpipePlans made;
  made.deployments.reserve(plans.cases.size());
  for (const auto& c : plans.cases) {
    if (c.planner != "auto" || c.scheduler != SchedulerKind::kReservation) continue;
    for (const auto& r : bench.references) {
      if (r.algorithm != "v4" || r.cluster != c.cluster || r.group != c.group) continue;
      GoodputPlanOptions o;
      o.planning.deadline = Deadline::never(bench.control.cancel);
      o.goodput.scheduler = SchedulerKind::kReservation;
      o.goodput.attainment = kPpipeAttainment;
      o.goodput.precision = .002;
      o.goodput.seed = static_cast<uint64_t>(bench.options.seed + kOtherSeeds);
      if (c.traffic == 1) o.goodput.traffic = {.kind = TrafficKind::kFunctions, .functions = &functions};
      auto plan = plan_for_goodput(r.fleet, "auto", o);
      if (!plan.ok()) return std::move(plan).error().with_context(r.plan_id);
      HEDDLE_ASSIGN_OR_RETURN(auto deployment, deploy(r.fleet, plan->plan));
      made.deployments.push_back(std::move(deployment));
      made.cases.push_back(c);
      made.cases.back().planner = "auto for the traffic";
      made.cases.back().deployment = &made.deployments.back();
    }
  }
  return made;
}

}  // namespace

Result<std::vector<BenchRow>> bench_ppipe_goodput(const PpipeBench& bench) {
  HEDDLE_ASSIGN_OR_RETURN(const auto plans, make_ppipe_plans(bench.references, bench.options));
  HEDDLE_ASSIGN_OR_RETURN(const auto for_traffic, plans_for_traffic(bench, plans));
  std::vector<const PpipeCase*> cases;
  for (const auto* list : {&plans.cases, &for_traffic.cases}) {
    for (const auto& c : *list) {
      if (c.scheduler == SchedulerKind::kReservation) cases.push_back(&c);
    }
  }
  std::vector<FunctionTrace> functions;
  for (int s = 0; s < kSeeds; ++s) {
    HEDDLE_ASSIGN_OR_RETURN(const auto text,
                            synthetic_function_trace({}, static_cast<uint64_t>(bench.options.seed + s)));
    HEDDLE_ASSIGN_OR_RETURN(auto trace, function_trace_from_csv(text));
    functions.push_back(std::move(trace));
  }
  std::vector<Goodputs> results(cases.size() * kSeeds);
  std::optional<Error> error;
  std::mutex mutex;
  size_t done = 0;
  for_each_on_threads(results.size(), 0, [&](size_t i) {
    const PpipeCase& c = *cases[i / kSeeds];
    const int s = static_cast<int>(i % kSeeds);
    const bool with_bound =
        s < kBoundSeeds && (c.planner == "published ppipe" || c.planner == "auto for the traffic");
    auto one = goodputs(c, functions[static_cast<size_t>(s)], bench.options.seed + s, with_bound,
                        bench.control.cancel);
    const std::lock_guard lock(mutex);
    if (one.ok()) {
      results[i] = *one;
    } else if (!error) {
      error = one.error();
    }
    if (bench.control.progress)
      bench.control.progress->report({.what = "goodput of " + ppipe_instance(c),
                                      .done = static_cast<double>(++done),
                                      .total = static_cast<double>(results.size())});
  });
  if (error) return std::move(*error);
  std::map<std::pair<std::string, size_t>, std::vector<size_t>> same;  // [planner, traffic] its cases
  for (size_t i = 0; i < cases.size(); ++i) same[{cases[i]->planner, cases[i]->traffic}].push_back(i);
  std::vector<BenchRow> rows;
  for (const auto& [key, members] : same) {
    const auto& [planner, traffic] = key;
    std::vector<double> served(kSeeds, 0);
    double with_bound = 0, bound = 0;
    for (const size_t i : members) {
      for (size_t s = 0; s < kSeeds; ++s) {
        const Goodputs& g = results[i * kSeeds + s];
        served[s] += g.served / static_cast<double>(members.size());
        if (s >= kBoundSeeds) continue;
        with_bound += g.served / static_cast<double>(members.size() * kBoundSeeds);
        bound += g.bound / static_cast<double>(members.size() * kBoundSeeds);
      }
    }
    const std::string with = planner + ", load at 99 %, " + kPpipeTraffics[traffic];
    const Estimate e = estimate(served);
    rows.push_back(ppipe_row("goodput mean", planner, with, "", e.mean));
    rows.push_back(ppipe_row("goodput mean", planner, with + ", 95 % interval +-", "", e.half_width));
    if (!(bound > 0)) continue;
    rows.push_back(ppipe_row("goodput mean", planner, with + ", served where bounded", "", with_bound));
    rows.back().against(bound, "proven bound for any scheduler");
  }
  return rows;
}

}  // namespace heddle::bench
