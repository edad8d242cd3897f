// The biased (1+1) evolutionary algorithm: DiviML's baseline "(1+1) EA biased" (section V-A). S. Droste, T.
// Jansen, I. Wegener, "On the analysis of the (1+1) evolutionary algorithm", TCS 276, 2002: each gene mutates
// with probability 1/n, the child replaces its parent when it is no worse. Biased: it begins with each task
// on the device that runs it fastest.
//
// Minimises the latency of one request, or of a batch, with tasks in breadth-first order. O(V + E) a child.
// Exploits unequal devices, transfer times and batches; ignores contention, memory limits and any other
// order.
#include <cmath>

#include "string_search.h"

namespace heddle {
namespace {

constexpr size_t kChildrenPerLook = 64;  // between two looks at the clock

void evolve(StringSearch& search, const Deadline& deadline) {
  const bool timed = deadline.seconds_left() < kImpossible;
  const size_t n = search.size(), most = kTriesPerGene * n;
  const double p = 1.0 / static_cast<double>(n);
  double value = search.fitness();
  for (size_t i = 0; timed || i < most; ++i) {
    if (i % kChildrenPerLook == 0 && deadline.should_stop()) break;
    // The gaps between mutated genes are geometric: the same as a draw per gene.
    size_t gene = 0;
    while (true) {
      const double gap = n == 1 ? 0 : std::floor(std::log1p(-search.random().unit()) / std::log1p(-p));
      if (!(gap < static_cast<double>(n - gene))) break;
      gene += static_cast<size_t>(gap);
      search.mutate(gene);
      if (++gene >= n) break;
    }
    const double child = search.fitness(value);
    if (child <= value) {
      search.keep();
      value = child;
    } else {
      search.undo();
    }
  }
}

Result<PlannerOutput> plan_one_plus_one(const Problem& problem, const PlannerOptions& options) {
  return plan_by_strings(problem, options, "ea", evolve);
}

}  // namespace

PlannerEntry ea_planner() {
  return {{.name = "ea",
           .description = "(1+1) evolutionary algorithm from each task's fastest device",
           .source = "DiviML, section V-A ((1+1) EA biased); Droste et al., TCS 2002",
           .objectives = {Objective::kLatency},
           .exploits = "unequal devices, transfer times, batches of requests",
           .ignores = "contention, memory limits, other orders of tasks"},
          plan_one_plus_one};
}

}  // namespace heddle
