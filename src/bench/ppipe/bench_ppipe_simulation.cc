// The simulated part of the ppipe suite: the published plans, and the plans of Heddle's own planner for the
// same instances, under Poisson and bursty arrivals (PPipe, ATC'25, figures 6, 8 and 10, section 7.2).
#include <map>

#include "bench_ppipe_cases.h"

namespace heddle::bench {
namespace {

struct PublishedLoad {
  const char* planner;
  double load[2];  // Poisson, bursty; 0: not stated
  double low_use;  // Poisson
};
// Section 7.2 and figure 6. The baselines' bursty loads follow from the stated gains of PPipe's .90.
constexpr PublishedLoad kPublishedLoads[] = {{"published ppipe", {.96, .90}, .736},
                                             {"published np", {.96 / 1.480, .90 / 1.751}, .081},
                                             {"published dart-r", {.96 / 1.322, .90 / 1.358}, .295}};

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

// PPipe's plans over the baselines', each a mean over all instances.
void add_gains(const std::map<std::tuple<std::string, size_t, SchedulerKind>, PpipeSum>& means,
               std::vector<BenchRow>& rows) {
  constexpr double kGains[2][2] = {{.480, .322}, {.751, .358}};  // section 7.2: [traffic][over np, dart-r]
  const std::string baselines[] = {"published np", "published dart-r"};
  for (const std::string planner : {"published ppipe", "auto"})
    for (size_t traffic = 0; traffic < 2; ++traffic)
      for (size_t b = 0; b < 2; ++b) {
        const auto ours = means.find({planner, traffic, SchedulerKind::kReservation});
        const auto theirs = means.find({baselines[b], traffic, SchedulerKind::kReservation});
        if (ours == means.end() || theirs == means.end() || !(theirs->second.load > 0)) continue;
        const double gain =
            (ours->second.load / ours->second.n) / (theirs->second.load / theirs->second.n) - 1;
        rows.push_back(ppipe_row("simulated mean", planner,
                                 planner + " over " + baselines[b] + ", " + kPpipeTraffics[traffic], "%",
                                 100 * gain));
        if (planner != "published ppipe") continue;
        rows.back().against(100 * kGains[traffic][b], "PPipe, section 7.2");
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

Result<std::vector<BenchRow>> bench_ppipe_simulation(const PpipeBench& bench) {
  const auto& options = bench.options;
  const auto& control = bench.control;
  HEDDLE_ASSIGN_OR_RETURN(const auto plans, make_ppipe_plans(bench.references, options));
  HEDDLE_ASSIGN_OR_RETURN(const auto text, synthetic_function_trace({}, static_cast<uint64_t>(options.seed)));
  HEDDLE_ASSIGN_OR_RETURN(const auto functions, function_trace_from_csv(text));
  HEDDLE_ASSIGN_OR_RETURN(const auto outcomes,
                          measure_ppipe_cases(plans.cases, functions, options.seed, control));
  std::vector<BenchRow> rows;
  std::map<std::tuple<std::string, size_t, SchedulerKind>, PpipeSum> means;
  std::map<std::tuple<std::string, SchedulerKind>, PpipeSum> planes;
  for (size_t i = 0; i < plans.cases.size(); ++i) {
    const auto& c = plans.cases[i];
    const auto& o = outcomes[i];
    means[{c.planner, c.traffic, c.scheduler}].add(o);
    if (c.cluster == "HC2-L" && c.traffic == 0 && c.planner == "published ppipe")
      planes[{c.cluster, c.scheduler}].add(o);
    if (c.scheduler != SchedulerKind::kReservation) continue;
    rows.push_back(ppipe_row(ppipe_instance(c), c.planner,
                             c.planner + ", load at 99 %, " + kPpipeTraffics[c.traffic], "", o.load));
    rows.back().seconds = o.simulating_s;
  }
  add_load_means(means, rows);
  add_gains(means, rows);
  add_data_planes(planes, rows);
  return rows;
}

}  // namespace heddle::bench
