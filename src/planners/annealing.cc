// Simulated annealing over strings of devices: DiviML's baseline "SA" (section V-A). S. Kirkpatrick, C. D.
// Gelatt, M. P. Vecchi, "Optimization by simulated annealing", Science 220, 1983.
//
// Minimises the latency of one request, or of a batch, with tasks in breadth-first order; the paper gives no
// schedule, so the usual one is taken: from the fastest devices, one random gene a move, temperature falling
// geometrically over the time given. O(V + E) a move. Exploits unequal devices, transfer times and batches;
// ignores contention, memory limits and any other order of tasks.
#include <algorithm>
#include <cmath>

#include "factories.h"
#include "string_search.h"

namespace heddle {
namespace {

// Temperatures as shares of the start's value.
constexpr double kHot = 0.02, kCold = 1e-5;
constexpr double kHotFromAPlan = 0.002;  // where there is a plan to improve, which heat would destroy
constexpr size_t kMovesPerLook = 64;     // between two looks at the clock

void anneal(StringSearch& search, const Deadline& deadline) {
  const double seconds = deadline.seconds_left();
  const bool timed = seconds < kImpossible;
  const size_t most = kTriesPerGene * search.size();
  double now = search.fitness(), best = now, share = 0;
  const double scale = now, hot = search.has_start() ? kHotFromAPlan : kHot;
  auto champion = search.genes();
  for (size_t i = 0;; ++i) {
    if (i % kMovesPerLook == 0) {
      if (deadline.should_stop() || (!timed && i >= most)) break;
      share =
          timed ? 1 - deadline.seconds_left() / seconds : static_cast<double>(i) / static_cast<double>(most);
    }
    const double temperature = scale * hot * std::pow(kCold / hot, std::clamp(share, 0.0, 1.0));
    if (!search.mutate(search.random().below(search.size()))) continue;
    // Accepted with probability exp((now - next) / temperature): drawn first, so that what is worse than that
    // is not timed to the end.
    const double limit = now - temperature * std::log(1 - search.random().unit());
    const double next = search.fitness(limit);
    if (next <= limit) {
      search.keep();
      now = next;
      if (now < best) {
        best = now;
        champion = search.genes();
      }
    } else {
      search.undo();
    }
  }
  search.set_genes(champion);
}

class Annealing final : public Planner {
 public:
  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions& options) override {
    return plan_by_strings(problem, options, "sa", anneal);
  }
};

}  // namespace

std::unique_ptr<Planner> make_sa() { return std::make_unique<Annealing>(); }

}  // namespace heddle
