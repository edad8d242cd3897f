// What each policy of the data plane brings: the load at 99 % in time with all of them, without one, with none, and
// with one alone.
#include <array>
#include <atomic>
#include <cmath>
#include <deque>
#include <map>

#include "bench_ppipe_loads.h"

namespace heddle::bench {
namespace {

constexpr int kAblationSeeds = 3;
constexpr double kAblationStudent = 4.303;  // 95 %, two degrees of freedom

// What a data plane does; all by default.
struct Policies {
  DispatchOptions dispatch;
  ServerOrder servers = ServerOrder::kSpread;
};

struct Policy {
  const char* name;
  void (*leave_out)(Policies&);
};
constexpr Policy kPolicies[] = {
    {"pools spread over servers", [](Policies& p) { p.servers = ServerOrder::kConsecutive; }},
    {"devices whose links are free", [](Policies& p) { p.dispatch.free_links = false; }},
    {"whole batches under pressure", [](Policies& p) { p.dispatch.least_batch_rate = 0; }},
    {"the least wait of all pipelines", [](Policies& p) { p.dispatch.least_wait = false; }},
    {"look-ahead over later pools", [](Policies& p) { p.dispatch.look_ahead = false; }},
    {"gaps between reservations", [](Policies& p) { p.dispatch.fill_gaps = false; }},
};

struct Setting {
  std::string name;
  Policies policies;
};

std::vector<Setting> all_settings() {
  std::vector<Setting> settings{{"all", {}}};
  for (const auto& one : kPolicies) {
    settings.push_back({std::string("without ") + one.name, {}});
    one.leave_out(settings.back().policies);
  }
  Policies none;
  for (const auto& one : kPolicies) one.leave_out(none);
  settings.push_back({"none", none});
  for (const auto& alone : kPolicies) {
    settings.push_back({std::string("only ") + alone.name, {}});
    for (const auto& one : kPolicies)
      if (&one != &alone) one.leave_out(settings.back().policies);
  }
  return settings;
}

using SeedLoads = std::array<double, kAblationSeeds>;  // means over the instances

// The setting's mean load beside that of all policies, and how sure their difference is: both have the same arrivals.
void add_rows(const std::string& instance, const std::string& planner, const Setting& setting,
              const SeedLoads& loads, const SeedLoads& all, std::vector<BenchRow>& rows) {
  double mean = 0, mean_of_all = 0, squares = 0;
  for (size_t s = 0; s < kAblationSeeds; ++s) {
    mean += loads[s] / kAblationSeeds;
    mean_of_all += all[s] / kAblationSeeds;
  }
  for (size_t s = 0; s < kAblationSeeds; ++s) {
    const double off = loads[s] - all[s] - (mean - mean_of_all);
    squares += off * off;
  }
  rows.push_back(ppipe_row(instance, planner, setting.name, "", mean));
  if (&loads == &all) return;
  rows.back().beside("all policies", mean_of_all);
  rows.push_back(ppipe_row(instance, planner, setting.name + ", difference, 95 % interval, half", "",
                           kAblationStudent * std::sqrt(squares / (kAblationSeeds - 1) / kAblationSeeds)));
}

}  // namespace

Status bench_ppipe_ablation(const PpipeBench& bench, std::vector<BenchRow>& rows) {
  HEDDLE_ASSIGN_OR_RETURN(const auto plans, make_ppipe_plans(bench.references, bench.options));
  HEDDLE_ASSIGN_OR_RETURN(const auto for_traffic, ppipe_plans_for_traffic(bench, plans));
  HEDDLE_ASSIGN_OR_RETURN(const auto functions, ppipe_functions(bench, kAblationSeeds));
  const auto settings = all_settings();
  std::deque<Deployment> consecutive;  // cases point into it
  struct Job {
    PpipeCase of;
    size_t setting = 0, seed = 0;
  };
  std::vector<Job> jobs;
  std::map<std::pair<std::string, size_t>, double> instances;
  for (const auto* from : {&plans, &for_traffic})
    for (auto c : from->cases) {
      if (c.scheduler != SchedulerKind::kReservation) continue;
      if (c.planner != "published ppipe" && c.planner != "auto for the traffic") continue;
      ++instances[{c.planner, c.traffic}];
      consecutive.push_back(*c.deployment);
      put_on_servers(consecutive.back(), ServerOrder::kConsecutive);
      const Deployment* const spread = c.deployment;
      for (size_t k = 0; k < settings.size(); ++k) {
        const auto& policies = settings[k].policies;
        c.dispatch = policies.dispatch;
        c.deployment = policies.servers == ServerOrder::kSpread ? spread : &consecutive.back();
        c.scheduler = policies.dispatch.fill_gaps ? SchedulerKind::kReservation : SchedulerKind::kBusyUntil;
        for (size_t seed = 0; seed < kAblationSeeds; ++seed) jobs.push_back({c, k, seed});
      }
    }
  std::vector<Result<double>> loads(jobs.size(), 0.);
  std::atomic<size_t> done{0};
  for_each_on_threads(jobs.size(), 0, [&](size_t i) {
    const auto& job = jobs[i];
    loads[i] = PpipeLoadShares(job.of, functions[job.seed],
                               static_cast<uint64_t>(bench.options.seed) + job.seed, bench.control.cancel)
                   .greatest_served();
    if (bench.control.progress)
      bench.control.progress->report({.what = "ablation on " + ppipe_instance(job.of),
                                      .done = static_cast<double>(++done),
                                      .total = static_cast<double>(jobs.size())});
  });
  std::map<std::pair<std::string, size_t>, std::vector<SeedLoads>> means;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const auto& job = jobs[i];
    if (!loads[i].ok()) return std::move(loads[i]).error().with_context(ppipe_instance(job.of));
    const std::pair of{job.of.planner, job.of.traffic};
    auto& mean = means.try_emplace(of, settings.size(), SeedLoads{}).first->second;
    mean[job.setting][job.seed] += *loads[i] / instances[of];
  }
  for (const auto& [of, mean] : means)
    for (size_t k = 0; k < settings.size(); ++k)
      add_rows("ablation, " + of.first + ", " + kPpipeTraffics[of.second], of.first, settings[k], mean[k],
               mean[0], rows);
  return {};
}

}  // namespace heddle::bench
