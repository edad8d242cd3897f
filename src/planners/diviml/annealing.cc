// Simulated annealing over strings of devices: DiviML's baseline "SA" (section V-A). S. Kirkpatrick, C. D.
// Gelatt, M. P. Vecchi, "Optimization by simulated annealing", Science 220, 1983.
//
// Minimises the latency of one request, or of a batch, with tasks in breadth-first order; the paper gives no
// schedule, so the usual one is taken: from the fastest devices, one random gene a move, temperature falling
// geometrically over the time given. O(V + E) a move. Exploits unequal devices, transfer times and batches;
// ignores contention, memory limits and any other order of tasks.
#include "search/cooling.h"
#include "string_search.h"

namespace heddle {
namespace {

// Temperatures as shares of the start's value.
constexpr double kStringHot = 0.02, kStringCold = 1e-5;
constexpr double kHotFromAPlan = 0.002;  // where there is a plan to improve, which heat would destroy

// What cool_down() asks for.
struct Strings {
  StringSearch& search;
  std::vector<uint32_t> champion;
  void look() {}
  bool propose() { return search.mutate(search.random().below(search.size())); }
  double value(double limit) { return search.fitness(limit); }
  void keep() { search.keep(); }
  void undo() { search.undo(); }
  void note_best() { champion = search.genes(); }
};

void anneal_string(StringSearch& search, const Deadline& deadline) {
  const bool timed = deadline.seconds_left() < kImpossible;
  const double now = search.fitness();
  Strings strings{search, search.genes()};
  const Cooling cooling{now * (search.has_start() ? kHotFromAPlan : kStringHot), now * kStringCold,
                        timed ? std::numeric_limits<size_t>::max() : kTriesPerGene * search.size()};
  cool_down(strings, now, cooling, deadline, search.random());
  search.set_genes(strings.champion);
}

Result<PlannerOutput> plan_annealing(const Problem& problem, const PlannerOptions& options) {
  return plan_by_strings(problem, options, "sa", anneal_string);
}

}  // namespace

PlannerEntry sa_planner() {
  return {{.name = "sa",
           .description = "simulated annealing over a string of devices, tasks in breadth-first order",
           .source = "DiviML, section V-A (SA); Kirkpatrick et al. 1983",
           .objectives = {Objective::kLatency},
           .exploits = "unequal devices, transfer times, batches of requests",
           .ignores = "contention, memory limits, other orders of tasks"},
          plan_annealing};
}

}  // namespace heddle
