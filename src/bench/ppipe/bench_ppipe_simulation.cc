// The simulated part of the ppipe suite: the published plans, and the plans of Heddle's own planner for the
// same instances, under Poisson and bursty arrivals (PPipe, ATC'25, figures 6, 8 and 10, section 7.2).
#include <map>

#include "bench_ppipe_cases.h"

namespace heddle::bench {
namespace {

struct PublishedLoad {
  const char* planner;
  double load[2];  // Poisson, bursty
  double low_use;  // Poisson
};
// Section 7.2; the use is figure 8's.
constexpr PublishedLoad kPublishedLoads[] = {{"published ppipe", {.965, .903}, .736},
                                             {"published np", {.668, .611}, .081},
                                             {"published dart-r", {.749, .694}, .295}};

// Section 7.2: % by which PPipe's load is higher than a baseline's on each cluster.
struct PublishedGains {
  const char* cluster;
  double over_np[2], over_dart[2];  // Poisson, bursty
};
constexpr PublishedGains kPublishedGains[] = {{"HC1-L", {64.9, 161.6}, {47.2, 50.4}},
                                              {"HC2-L", {34.8, 34.1}, {17.3, 18.1}},
                                              {"HC3-L", {46.7, 50.4}, {34.8, 40.2}},
                                              {"HC4-L", {45.5, 54.1}, {29.3, 34.5}}};

void add_load_means(const std::map<std::tuple<std::string, size_t, SchedulerKind>, PpipeSum>& means,
                    std::vector<BenchRow>& rows) {
  const auto row = [&](const std::string& planner, const std::string& metric, const char* unit,
                       double value) {
    rows.push_back(ppipe_row("simulated mean", planner, metric, unit, value));
    return &rows.back();
  };
  for (const auto& [key, mean] : means) {
    const auto& [planner, traffic, scheduler] = key;
    if (scheduler == SchedulerKind::kReactive)
      row(planner, planner + ", reactive, load at 99 %, " + kPpipeTraffics[traffic], "", mean.load / mean.n);
    if (scheduler != SchedulerKind::kReservation) continue;
    const std::string with = std::string(", ") + kPpipeTraffics[traffic];
    auto* r = row(planner, planner + ", load at 99 %" + with, "", mean.load / mean.n);
    for (const auto& p : kPublishedLoads)
      if (planner == p.planner) {
        r->reference = p.load[traffic];
        r->reference_source = "PPipe, section 7.2";
      }
    if (traffic == 0) {
      r = row(planner, planner + ", low-class use", "", mean.low_use / mean.n);
      for (const auto& p : kPublishedLoads)
        if (planner == p.planner) {
          r->reference = p.low_use;
          r->reference_source = "PPipe, figure 8";
        }
      row(planner, planner + ", high-class use", "", mean.high_use / mean.n);
    }
    if (planner == "published ppipe" && traffic == 0) {
      r = row(planner, "probes per batch", "", mean.probes / mean.n);
      r->reference = 3.58;
      r->reference_source = "PPipe, section 7.2";
    }
  }
}

// By cluster, planner and traffic, with reservations.
using ClusterLoads = std::map<std::tuple<std::string, std::string, size_t>, PpipeSum>;

// PPipe's plans and ours over the baselines': a gain on each cluster, and the mean of the clusters' gains, which is
// what section 7.2 gives.
void add_gains(const ClusterLoads& loads, std::vector<BenchRow>& rows) {
  const std::string baselines[] = {"published np", "published dart-r"};
  for (const std::string planner : {"published ppipe", "auto"})
    for (size_t traffic = 0; traffic < 2; ++traffic)
      for (size_t b = 0; b < 2; ++b) {
        const std::string metric = planner + " over " + baselines[b] + ", " + kPpipeTraffics[traffic];
        double sum = 0, published_sum = 0;
        size_t clusters = 0;
        for (const auto& of_paper : kPublishedGains) {
          const auto ours = loads.find({of_paper.cluster, planner, traffic});
          const auto theirs = loads.find({of_paper.cluster, baselines[b], traffic});
          if (ours == loads.end() || theirs == loads.end() || !(theirs->second.load > 0)) continue;
          const double gain =
              100 * ((ours->second.load / ours->second.n) / (theirs->second.load / theirs->second.n) - 1);
          const double published = (b == 0 ? of_paper.over_np : of_paper.over_dart)[traffic];
          rows.push_back(
              ppipe_row("simulated gains", planner, of_paper.cluster + (", " + metric), "%", gain));
          if (planner == "published ppipe") rows.back().against(published, "PPipe, section 7.2");
          sum += gain;
          published_sum += published;
          ++clusters;
        }
        if (clusters < std::size(kPublishedGains)) continue;
        const auto n = static_cast<double>(clusters);
        rows.push_back(ppipe_row("simulated gains", planner, "mean of clusters, " + metric, "%", sum / n));
        if (planner == "published ppipe") rows.back().against(published_sum / n, "PPipe, section 7.2");
      }
}

void add_data_planes(const std::map<std::tuple<std::string, SchedulerKind>, PpipeSum>& means,
                     std::vector<BenchRow>& rows) {
  for (const auto& [key, mean] : means) {
    const auto& [cluster, scheduler] = key;
    rows.push_back(ppipe_row(cluster, "published ppipe",
                             std::string("data plane ") + scheduler_name(scheduler) + ", poisson", "",
                             mean.load / mean.n));
    if (scheduler == SchedulerKind::kBusyUntil) continue;
    rows.back().against(scheduler == SchedulerKind::kReactive ? .71 : .92, "PPipe, figure 10");
  }
}

}  // namespace

Status bench_ppipe_simulation(const PpipeBench& bench, std::vector<BenchRow>& rows) {
  const auto& options = bench.options;
  const auto& control = bench.control;
  HEDDLE_ASSIGN_OR_RETURN(const auto plans, make_ppipe_plans(bench.references, options));
  HEDDLE_ASSIGN_OR_RETURN(const auto text, synthetic_function_trace({}, static_cast<uint64_t>(options.seed)));
  HEDDLE_ASSIGN_OR_RETURN(const auto functions, function_trace_from_csv(text));
  HEDDLE_ASSIGN_OR_RETURN(const auto outcomes,
                          measure_ppipe_cases(plans.cases, functions, options.seed, control));
  std::map<std::tuple<std::string, size_t, SchedulerKind>, PpipeSum> means;
  std::map<std::tuple<std::string, SchedulerKind>, PpipeSum> planes;
  ClusterLoads of_clusters;
  for (size_t i = 0; i < plans.cases.size(); ++i) {
    const auto& c = plans.cases[i];
    const auto& o = outcomes[i];
    means[{c.planner, c.traffic, c.scheduler}].add(o);
    if (c.cluster == "HC2-L" && c.traffic == 0 && c.planner == "published ppipe")
      planes[{c.cluster, c.scheduler}].add(o);
    if (c.scheduler != SchedulerKind::kReservation) continue;
    of_clusters[{c.cluster, c.planner, c.traffic}].add(o);
    rows.push_back(ppipe_row(ppipe_instance(c), c.planner,
                             c.planner + ", load at 99 %, " + kPpipeTraffics[c.traffic], "", o.load));
    rows.back().seconds = o.simulating_s;
  }
  add_load_means(means, rows);
  add_gains(of_clusters, rows);
  add_data_planes(planes, rows);
  return {};
}

}  // namespace heddle::bench
