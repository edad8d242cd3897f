// Simulated annealing over strings of devices: DiviML's baseline "SA" (section V-A). S. Kirkpatrick, C. D.
// Gelatt, M. P. Vecchi, "Optimization by simulated annealing", Science 220, 1983.
//
// Minimises the latency of one request, or of a batch, with tasks in breadth-first order; the paper gives no
// schedule, so the usual one is taken: from the fastest devices, one random gene a move, temperature falling
// geometrically over the time given. O(V + E) a move. Exploits unequal devices, transfer times and batches;
// ignores contention, memory limits and any other order of tasks.
#include "search/anneal.h"
#include "string_search.h"

namespace heddle {
namespace {

// Temperatures as shares of the start's value.
constexpr double kStringHot = 0.02, kStringCold = 1e-5;
constexpr double kHotFromAPlan = 0.002;  // where there is a plan to improve, which heat would destroy

class Strings : public AnnealSearch {
 public:
  explicit Strings(StringSearch& search)
      : search_(search), now_(search.fitness()), best_(now_), champion_(search.genes()) {}

  double now() const { return now_; }
  const std::vector<uint32_t>& champion() const { return champion_; }

  bool propose() { return search_.mutate(search_.random().below(search_.size())); }
  double rise(Metropolis& rule) {
    next_ = search_.fitness(now_ + rule.most());
    return next_ - now_;
  }
  void keep() {
    search_.keep();
    now_ = next_;
    if (now_ >= best_) return;
    best_ = now_;
    champion_ = search_.genes();
  }
  void undo() { search_.undo(); }

 private:
  StringSearch& search_;
  double now_, best_, next_ = 0;
  std::vector<uint32_t> champion_;
};

void anneal_string(StringSearch& search, const Deadline& deadline) {
  const bool timed = deadline.seconds_left() < kImpossible;
  Strings strings(search);
  AnnealSchedule schedule{.hot = strings.now() * (search.has_start() ? kHotFromAPlan : kStringHot),
                          .cold = strings.now() * kStringCold,
                          .follows_deadline = true};
  if (!timed) schedule.moves = kTriesPerGene * search.size();
  anneal(strings, schedule, deadline, search.random());
  search.set_genes(strings.champion());
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
