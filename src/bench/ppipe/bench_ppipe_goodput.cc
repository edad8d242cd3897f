// The greatest load at 99 % in time beside the bound on any scheduler, over ten seeds, for the published PPipe
// plans and ours.
#include <array>
#include <atomic>
#include <cmath>
#include <map>

#include "bench_ppipe_cases.h"
#include "heddle/fleet/goodput_plan.h"

namespace heddle::bench {
namespace {

constexpr int kSeeds = 10;
constexpr int64_t kOtherSeeds = 1000;  // plans are chosen on other arrivals than those they are judged on
constexpr double kPublishedFactors[] = {.96, .90};  // section 7.2: Poisson, bursty
constexpr double kStudent = 2.262;                  // 95 %, nine degrees of freedom

struct Loads {
  double simulated = 0, bound = 0;  // mean over the models
};

// Steps of .01 up to 1.2, so that a bound above load factor 1 is seen.
std::vector<double> fine_grid() {
  std::vector<double> grid;
  for (int percent = 30; percent <= 120; ++percent) grid.push_back(percent / 100.);
  return grid;
}

Result<Loads> measure_loads(const PpipeCase& c, const FunctionTrace& functions, uint64_t seed,
                            const CancelToken& cancel) {
  const auto grid = fine_grid();
  std::map<size_t, SweepPoint> at;
  std::optional<Error> error;
  const auto share = [&](size_t i, size_t m, bool bound) {
    if (!at.contains(i)) {
      SweepOptions o;
      o.load_factors = {grid[i]};
      o.rates_per_s = c.rates;
      o.duration_s = kPpipeSeconds;
      o.threads = 1;
      o.bound = true;
      o.simulation.seed = seed;
      o.simulation.cancel = cancel;
      if (c.traffic == 1) {
        o.traffic.kind = TrafficKind::kFunctions;
        o.traffic.functions = &functions;
      }
      auto points = sweep_loads(*c.deployment, o);
      if (!points.ok()) {
        if (!error) error = points.error();
        return 0.;
      }
      at[i] = std::move((*points)[0]);
    }
    const auto& requests = at[i].result.models[m].requests;
    const auto n = static_cast<double>(std::max<uint64_t>(1, requests.arrivals));
    return static_cast<double>(bound ? at[i].bound[m] : requests.in_time) / n;
  };
  Loads loads;
  const auto models = c.deployment->models.size();
  for (size_t m = 0; m < models; ++m) {
    const auto greatest = [&](bool bound) {
      return greatest_load(grid, [&](size_t i) { return share(i, m, bound) >= kPpipeAttainment; });
    };
    loads.simulated += greatest(false) / static_cast<double>(models);
    loads.bound += greatest(true) / static_cast<double>(models);
  }
  if (error) return std::move(*error);
  return loads;
}

// Means over the instances, one for each seed.
using Means = std::array<Loads, kSeeds>;

std::vector<BenchRow> mean_rows(const std::string& planner, size_t traffic, const Means& means) {
  Loads mean;
  for (const auto& m : means) {
    mean.simulated += m.simulated / kSeeds;
    mean.bound += m.bound / kSeeds;
  }
  double squares = 0;
  for (const auto& m : means) squares += (m.simulated - mean.simulated) * (m.simulated - mean.simulated);
  const std::string what = planner + ", load at 99 %, " + kPpipeTraffics[traffic];
  std::vector<BenchRow> rows{ppipe_row("goodput mean", planner, what, "", mean.simulated),
                             ppipe_row("goodput mean", planner, what + ", 95 % interval, half", "",
                                       kStudent * std::sqrt(squares / (kSeeds - 1) / kSeeds))};
  if (planner == "published ppipe") {
    rows[0].reference = kPublishedFactors[traffic];
    rows[0].reference_source = "PPipe, section 7.2";
  }
  rows.push_back(ppipe_row("goodput mean", planner, what + ", bound of any scheduler", "", mean.bound));
  return rows;
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
      o.goodput.attainment = kPpipeAttainment;
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
  const auto& options = bench.options;
  HEDDLE_ASSIGN_OR_RETURN(const auto plans, make_ppipe_plans(bench.references, options));
  HEDDLE_ASSIGN_OR_RETURN(const auto for_traffic, plans_for_traffic(bench, plans));
  // Bursty arrivals depend on the trace alone, so each seed has its own.
  std::vector<FunctionTrace> functions;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    HEDDLE_ASSIGN_OR_RETURN(const auto text,
                            synthetic_function_trace({}, static_cast<uint64_t>(options.seed) + seed));
    HEDDLE_ASSIGN_OR_RETURN(functions.emplace_back(), function_trace_from_csv(text));
  }
  std::vector<const PpipeCase*> cases;
  for (const auto& c : plans.cases)
    if (c.scheduler == SchedulerKind::kReservation && (c.planner == "auto" || c.planner == "published ppipe"))
      cases.push_back(&c);
  for (const auto& c : for_traffic.cases) cases.push_back(&c);
  std::vector<Result<Loads>> loads(cases.size() * kSeeds, Loads{});
  std::atomic<size_t> done{0};
  for_each_on_threads(loads.size(), 0, [&](size_t i) {
    loads[i] = measure_loads(*cases[i / kSeeds], functions[i % kSeeds],
                             static_cast<uint64_t>(options.seed) + i % kSeeds, bench.control.cancel);
    if (bench.control.progress)
      bench.control.progress->report({.what = "goodput of " + ppipe_instance(*cases[i / kSeeds]),
                                      .done = static_cast<double>(++done),
                                      .total = static_cast<double>(loads.size())});
  });
  std::map<std::pair<std::string, size_t>, Means> means;
  for (size_t i = 0; i < loads.size(); ++i) {
    const auto& c = *cases[i / kSeeds];
    if (!loads[i].ok()) return std::move(loads[i]).error().with_context(ppipe_instance(c));
    // Three plans have a case for each instance and each of two traffics.
    const double instances = static_cast<double>(cases.size()) / 6;
    auto& mean = means[{c.planner, c.traffic}][i % kSeeds];
    mean.simulated += loads[i]->simulated / instances;
    mean.bound += loads[i]->bound / instances;
  }
  std::vector<BenchRow> rows;
  for (const auto& [of, mean] : means)
    for (auto& row : mean_rows(of.first, of.second, mean)) rows.push_back(std::move(row));
  return rows;
}

}  // namespace heddle::bench
