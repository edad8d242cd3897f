// Predict Earliest Finish Time: a list scheduler that looks ahead by an optimistic cost table. H. Arabnejad,
// J. G. Barbosa, "List scheduling algorithm for heterogeneous systems by an optimistic cost table", IEEE TPDS
// 25(3), 2014.
//
// Minimises the makespan of one request. OCT(v, d) is the least time from the end of v on d to the end of the
// graph when every later op has its best device for itself (equation 1 there); ops by falling mean of OCT,
// each on the device with the least finish + OCT. O(E k + V k log V): the inner minimum over devices is
// min(own, best of all + mean transfer). Exploits unequal devices, transfer times and memory limits; ignores
// that transfers wait for links.
#include <algorithm>

#include "construction.h"

namespace heddle {
namespace {

// Row-major ops x devices.
std::vector<double> optimistic_costs(const FlatProblem& flat) {
  const size_t k = flat.num_devices();
  const TransferRate mean = mean_transfer(flat);
  std::vector<double> oct(flat.num_ops() * k, 0);
  const auto order = flat.topological();
  for (size_t p = order.size(); p-- > 0;) {
    const uint32_t v = order[p];
    for (const uint32_t t : flat.outputs(v)) {
      const double transfer = mean.us(static_cast<double>(flat.bytes(t)));
      for (const uint32_t w : flat.readers(t)) {
        double best = kImpossible;
        for (size_t i = 0; i < k; ++i) best = std::min(best, oct[w * k + i] + flat.us(w, i));
        for (size_t i = 0; i < k; ++i) {
          const double here = oct[w * k + i] + flat.us(w, i);
          oct[v * k + i] = std::max(oct[v * k + i], std::min(here, best + transfer));
        }
      }
    }
  }
  return oct;
}

ListDecisions by_optimistic_costs(const FlatProblem& flat) {
  const size_t k = flat.num_devices();
  std::vector<double> oct = optimistic_costs(flat), rank(flat.num_ops(), 0);
  for (size_t v = 0; v < rank.size(); ++v) {
    for (size_t i = 0; i < k; ++i) rank[v] += oct[v * k + i] / static_cast<double>(k);
  }
  return {order_by_priority(flat, rank), [k, oct = std::move(oct)](uint32_t v, const auto& slots) {
            int32_t best = -1;
            double least = kImpossible;
            for (size_t i = 0; i < k; ++i) {
              const double us = slots[i].finish + oct[v * k + i];
              if (us < least) least = us, best = static_cast<int32_t>(i);
            }
            return best;
          }};
}

Result<PlannerOutput> plan_lookahead(const Problem& problem, const PlannerOptions& options) {
  return plan_by_list(problem, options, "lookahead",
                      {.list = {.insertion = true}, .decide = by_optimistic_costs});
}

}  // namespace

PlannerEntry lookahead_planner() {
  return {{.name = "lookahead",
           .description = "list scheduling with an optimistic cost table (PEFT)",
           .source = "Arabnejad and Barbosa, TPDS 2014",
           .objectives = {Objective::kLatency, Objective::kColdLatency},
           .exploits = "unequal devices, transfers, parameter loads, memory limits",
           .ignores = "contention"},
          plan_lookahead};
}

}  // namespace heddle
