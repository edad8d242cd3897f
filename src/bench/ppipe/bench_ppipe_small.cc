// The paper's testbeds of 16 devices (PPipe, ATC'25, section 7.3 and figures 9 and 11): one model at a time,
// under Poisson and bursty arrivals. No plan of them is published: np, dart-r and auto plan here, with the
// estimated rate of np, and load factor 1 is auto's rate.
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <tuple>

#include "bench_ppipe_loads.h"
#include "heddle/fleet/estimated_rates.h"

namespace heddle::bench {
namespace {

constexpr const char* kSmallPlanners[] = {"auto", "np", "dart-r"};

struct Small {
  std::deque<Deployment> deployments;  // cases point into it
  std::vector<PpipeCase> cases;
  std::vector<PpipeCase> for_traffic;  // plans chosen for their traffic
};

constexpr double kSmallPlanRequests = 6000;  // of each simulation that chooses a plan
constexpr double kWantedSmallLoad = .75;     // bursty

// The one plan that the paper prints (figure 11): 162 and 1050 requests per second.
constexpr const char* kPrintedCluster = "HC3-S";
constexpr const char* kPrintedModel = "fcn";
constexpr double kPrintedRate = 162 + 1050, kPrintedLoad = .95;

bool is_printed(const std::string& cluster, const std::string& model) {
  return cluster == kPrintedCluster && model.rfind(kPrintedModel, 0) == 0;
}

// Clusters that no published plan is for.
std::vector<std::string> small_clusters(const PpipeBench& bench) {
  std::vector<std::string> names;
  for (const auto& cluster : bench.data.clusters)
    if (std::none_of(bench.references.begin(), bench.references.end(),
                     [&](const auto& r) { return r.cluster == cluster.name; }))
      names.push_back(cluster.name);
  return names;
}

// The evaluated models: those of the groups.
std::vector<std::string> evaluated_models(const PpipeData& data) {
  std::vector<std::string> names;
  for (const auto& group : data.groups)
    for (const auto& name : group.models)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

Status add_instance(const PpipeBench& bench, const std::string& cluster, const std::string& model,
                    Small& small, std::vector<BenchRow>& rows) {
  HEDDLE_ASSIGN_OR_RETURN(auto fleet, ppipe_fleet(bench.data, cluster, {model}, {}));
  FleetPlanOptions options;
  options.deadline = Deadline::never(bench.control.cancel);
  options.seed = static_cast<uint64_t>(bench.options.seed);
  HEDDLE_ASSIGN_OR_RETURN(const auto estimated, np_rates(fleet, options));
  HEDDLE_RETURN_IF_ERROR(set_estimated_rates(fleet, estimated));
  std::vector<double> rates;
  for (const std::string planner : kSmallPlanners) {
    HEDDLE_ASSIGN_OR_RETURN(const auto plan, plan_fleet(fleet, planner, options));
    if (rates.empty()) rates = {std::floor(plan.models[0].rate_per_s + 1e-6)};
    rows.push_back(ppipe_row(cluster + "/" + model, planner, planner + ", planned rate", "/s", plan.value));
    rows.back().at_most(plan.bound);
    rows.back().seconds = plan.planning_s;
    if (planner == "auto" && is_printed(cluster, model)) {
      rows.back().against(kPrintedRate, "PPipe, figure 11");
    }
    HEDDLE_ASSIGN_OR_RETURN(auto deployment, deploy(fleet, plan));
    small.deployments.push_back(std::move(deployment));
    for (size_t traffic = 0; traffic < std::size(kPpipeTraffics); ++traffic)
      for (const auto kind : {SchedulerKind::kReservation, SchedulerKind::kReactive})
        if (planner == "auto" || kind == SchedulerKind::kReservation)
          small.cases.push_back({cluster, model, planner, traffic, kind, &small.deployments.back(), rates});
  }
  for (size_t traffic = 0; traffic < std::size(kPpipeTraffics); ++traffic) {
    HEDDLE_ASSIGN_OR_RETURN(const auto plan, plan_for_traffic(fleet, traffic, kSmallPlanRequests, bench));
    HEDDLE_ASSIGN_OR_RETURN(auto deployment, deploy(fleet, plan));
    small.deployments.push_back(std::move(deployment));
    small.for_traffic.push_back({cluster, model, "auto for the traffic", traffic, SchedulerKind::kReservation,
                                 &small.deployments.back(), rates});
  }
  return {};
}

// By cluster, planner, traffic and scheduler.
using SmallSums = std::map<std::tuple<std::string, std::string, size_t, SchedulerKind>, PpipeSum>;

std::string load_metric(const std::string& planner, size_t traffic, SchedulerKind scheduler) {
  return planner + (scheduler == SchedulerKind::kReactive ? ", reactive" : "") + ", load at 99 %, " +
         kPpipeTraffics[traffic];
}

void add_mean_rows(const SmallSums& sums, std::vector<BenchRow>& rows) {
  for (const auto& [key, sum] : sums) {
    const auto& [cluster, planner, traffic, scheduler] = key;
    std::vector<std::pair<std::string, double>> totals = {
        {load_metric(planner, traffic, scheduler), sum.load}};
    if (traffic == 0 && scheduler == SchedulerKind::kReservation) {
      totals.emplace_back(planner + ", low-class use", sum.low_use);
      totals.emplace_back(planner + ", high-class use", sum.high_use);
      if (planner == "auto") totals.emplace_back("probes per batch", sum.probes);
    }
    for (const auto& [metric, total] : totals)
      rows.push_back(ppipe_row(cluster, planner, metric + ", mean", "", total / sum.n));
  }
}

// Each model's load, the means of each cluster and of all.
Status add_rows_for_traffic(const PpipeBench& bench, const std::vector<PpipeCase>& cases,
                            const FunctionTrace& functions, std::vector<BenchRow>& rows) {
  std::vector<Result<PpipeLoads>> loads(cases.size(), PpipeLoads{});
  for_each_on_threads(cases.size(), 0, [&](size_t i) {
    loads[i] =
        PpipeLoadShares(cases[i], functions, static_cast<uint64_t>(bench.options.seed), bench.control.cancel)
            .greatest();
  });
  struct Sum {
    double served = 0, bound = 0, n = 0;
  };
  std::map<std::pair<std::string, size_t>, Sum> sums;
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto& c = cases[i];
    if (!loads[i].ok()) return std::move(loads[i]).error().with_context(ppipe_instance(c));
    rows.push_back(ppipe_row(ppipe_instance(c), c.planner, load_metric(c.planner, c.traffic, c.scheduler), "",
                             loads[i]->served));
    rows.back().at_most(loads[i]->bound);
    for (const std::string& of : {c.cluster, std::string("small clusters")}) {
      auto& sum = sums[{of, c.traffic}];
      sum.served += loads[i]->served;
      sum.bound += loads[i]->bound;
      ++sum.n;
    }
  }
  for (const auto& [of, sum] : sums) {
    const auto& [cluster, traffic] = of;
    const std::string planner = "auto for the traffic";
    rows.push_back(ppipe_row(cluster, planner,
                             load_metric(planner, traffic, SchedulerKind::kReservation) + ", mean", "",
                             sum.served / sum.n));
    rows.back().at_most(sum.bound / sum.n);
    if (cluster == "small clusters" && traffic == 1) rows.back().against(kWantedSmallLoad, "goal");
  }
  return {};
}

// Section 7.3 gives only the ranges of the gains over the clusters.
void add_gain_rows(const SmallSums& sums, std::vector<BenchRow>& rows) {
  std::map<std::pair<std::string, size_t>, std::pair<double, double>> gains;  // least and greatest
  for (const auto& [key, sum] : sums) {
    const auto& [cluster, planner, traffic, scheduler] = key;
    if (planner == "auto" || !(sum.load > 0)) continue;
    const auto& ours = sums.at({cluster, "auto", traffic, SchedulerKind::kReservation});
    const double gain = 100 * (ours.load / ours.n / (sum.load / sum.n) - 1);
    rows.push_back(
        ppipe_row(cluster, "auto", "auto over " + planner + ", " + kPpipeTraffics[traffic], "%", gain));
    auto& range = gains.try_emplace({planner, traffic}, gain, gain).first->second;
    range = {std::min(range.first, gain), std::max(range.second, gain)};
  }
  const std::map<std::string, std::pair<double, double>> published = {{"np", {42.6, 52.8}},
                                                                      {"dart-r", {16.7, 34.1}}};
  for (const auto& [key, range] : gains)
    for (const bool least : {true, false}) {
      rows.push_back(ppipe_row(
          "small clusters", "auto",
          "auto over " + key.first + ", " + kPpipeTraffics[key.second] + (least ? ", least" : ", greatest"),
          "%", least ? range.first : range.second));
      if (key.second != 0) continue;
      const auto& of_paper = published.at(key.first);
      rows.back().against(least ? of_paper.first : of_paper.second, "PPipe, section 7.3");
    }
}

}  // namespace

Status bench_ppipe_small(const PpipeBench& bench, std::vector<BenchRow>& rows) {
  Small small;
  const auto clusters = small_clusters(bench);
  const auto models = evaluated_models(bench.data);
  double done = 0;
  for (const auto& cluster : clusters)
    for (const auto& model : models) {
      if (bench.control.cancel.cancelled()) return cancelled_error("the suite was stopped");
      if (bench.control.progress)
        bench.control.progress->report({.what = "planning " + cluster,
                                        .done = done++,
                                        .total = static_cast<double>(clusters.size() * models.size())});
      if (!ppipe_instance_wanted(bench.options, cluster, model)) continue;
      auto status = add_instance(bench, cluster, model, small, rows);
      if (!status.ok()) return std::move(status).error().with_context(cluster + "/" + model);
    }
  if (small.cases.empty()) return {};
  HEDDLE_ASSIGN_OR_RETURN(const auto text,
                          synthetic_function_trace({}, static_cast<uint64_t>(bench.options.seed)));
  HEDDLE_ASSIGN_OR_RETURN(const auto functions, function_trace_from_csv(text));
  HEDDLE_ASSIGN_OR_RETURN(const auto outcomes,
                          measure_ppipe_cases(small.cases, functions, bench.options.seed, bench.control));
  SmallSums sums;
  for (size_t i = 0; i < small.cases.size(); ++i) {
    const auto& c = small.cases[i];
    sums[{c.cluster, c.planner, c.traffic, c.scheduler}].add(outcomes[i]);
    rows.push_back(ppipe_row(ppipe_instance(c), c.planner, load_metric(c.planner, c.traffic, c.scheduler), "",
                             outcomes[i].load));
    rows.back().seconds = outcomes[i].simulating_s;
    if (c.planner == "auto" && c.traffic == 0 && c.scheduler == SchedulerKind::kReservation &&
        is_printed(c.cluster, c.group)) {
      rows.back().against(kPrintedLoad, "PPipe, section 7.5");
    }
  }
  add_mean_rows(sums, rows);
  HEDDLE_RETURN_IF_ERROR(add_rows_for_traffic(bench, small.for_traffic, functions, rows));
  add_gain_rows(sums, rows);
  return {};
}

}  // namespace heddle::bench
