// The greatest load at 99 % in time beside the bound on any scheduler, over ten seeds, for the published plans and
// ours.
#include <array>
#include <atomic>
#include <cmath>
#include <map>

#include "bench_ppipe_loads.h"

namespace heddle::bench {
namespace {

constexpr int kSeeds = 10;
constexpr double kPublishedFactors[] = {.965, .903};  // section 7.2: Poisson, bursty
constexpr double kStudent = 2.262;                    // 95 %, nine degrees of freedom

// Means over the instances, one for each seed.
using Means = std::array<PpipeLoads, kSeeds>;

std::vector<BenchRow> mean_rows(const std::string& planner, size_t traffic, const Means& means) {
  PpipeLoads mean;
  for (const auto& m : means) {
    mean.served += m.served / kSeeds;
    mean.bound += m.bound / kSeeds;
  }
  double squares = 0;
  for (const auto& m : means) squares += (m.served - mean.served) * (m.served - mean.served);
  const std::string what = planner + ", load at 99 %, " + kPpipeTraffics[traffic];
  std::vector<BenchRow> rows{ppipe_row("goodput mean", planner, what, "", mean.served),
                             ppipe_row("goodput mean", planner, what + ", 95 % interval, half", "",
                                       kStudent * std::sqrt(squares / (kSeeds - 1) / kSeeds))};
  rows[0].at_most(mean.bound);
  if (planner == "published ppipe") {
    rows[0].reference = kPublishedFactors[traffic];
    rows[0].reference_source = "PPipe, section 7.2";
  }
  return rows;
}

}  // namespace

Status bench_ppipe_goodput(const PpipeBench& bench, std::vector<BenchRow>& rows) {
  const auto& options = bench.options;
  HEDDLE_ASSIGN_OR_RETURN(const auto plans, make_ppipe_plans(bench.references, options));
  HEDDLE_ASSIGN_OR_RETURN(const auto for_traffic, ppipe_plans_for_traffic(bench, plans));
  HEDDLE_ASSIGN_OR_RETURN(const auto functions, ppipe_functions(bench, kSeeds));
  std::vector<const PpipeCase*> cases;
  std::map<std::pair<std::string, size_t>, double> instances;
  for (const auto* from : {&plans, &for_traffic})
    for (const auto& c : from->cases) {
      if (c.scheduler != SchedulerKind::kReservation) continue;
      cases.push_back(&c);
      ++instances[{c.planner, c.traffic}];
    }
  std::vector<Result<PpipeLoads>> loads(cases.size() * kSeeds, PpipeLoads{});
  std::atomic<size_t> done{0};
  for_each_on_threads(loads.size(), 0, [&](size_t i) {
    loads[i] = PpipeLoadShares(*cases[i / kSeeds], functions[i % kSeeds],
                               static_cast<uint64_t>(options.seed) + i % kSeeds, bench.control.cancel)
                   .greatest();
    if (bench.control.progress)
      bench.control.progress->report({.what = "goodput of " + ppipe_instance(*cases[i / kSeeds]),
                                      .done = static_cast<double>(++done),
                                      .total = static_cast<double>(loads.size())});
  });
  std::map<std::pair<std::string, size_t>, Means> means;
  for (size_t i = 0; i < loads.size(); ++i) {
    const auto& c = *cases[i / kSeeds];
    if (!loads[i].ok()) return std::move(loads[i]).error().with_context(ppipe_instance(c));
    const std::pair of{c.planner, c.traffic};
    auto& mean = means[of][i % kSeeds];
    mean.served += loads[i]->served / instances[of];
    mean.bound += loads[i]->bound / instances[of];
  }
  for (const auto& [of, mean] : means)
    for (auto& row : mean_rows(of.first, of.second, mean)) rows.push_back(std::move(row));
  return {};
}

}  // namespace heddle::bench
