// HEFT, heterogeneous earliest finish time (Topcuoglu, Hariri and Wu, "Performance-Effective and
// Low-Complexity Task Scheduling for Heterogeneous Computing", 2002; a baseline of DiviML and HIOS).
//
// Priorities: upward rank (their equation 8) of mean times. Each op in rank order takes the device and the
// slot, gaps included (insertion, their section 4.1), on which it finishes first (equations 5 and 6). O((V +
// E) * devices) plus the search for gaps. Exploits unequal devices, transfer times without contention,
// overlapping core sets, parameter loads; ignores contention and what is to come.
#include "candidates.h"
#include "list_schedule.h"
#include "planners.h"

namespace heddle {
namespace {

constexpr int kPollEvery = 256;  // ops between two looks at the deadline

class Heft final : public Planner {
 public:
  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions& options) override {
    const PlacementCosts costs(problem);
    ListSchedule schedule(problem, costs, /*insertion=*/true);
    int placed = 0;
    bool hurry = false;
    for (const auto op : priority_order(*problem.graph, upward_ranks(problem, costs))) {
      // After the deadline the rest takes the first device that can run it: a plan, if not a good one.
      if (++placed % kPollEvery == 0) hurry = options.deadline.should_stop();
      size_t best = costs.num_devices();
      Slot slot;
      for (size_t d = 0; d < costs.num_devices(); ++d) {
        if (!schedule.fits(op, d)) continue;
        const auto s = schedule.probe(op, d);
        if (s.finish < slot.finish) {
          slot = s;
          best = d;
          if (hurry) break;
        }
      }
      if (best == costs.num_devices()) return no_room(problem, op);
      schedule.place(op, best, slot);
    }
    BestPlan plan(problem);
    plan.offer(schedule.assignment(), "");
    return plan.output(!hurry                         ? StopReason::kFinished
                       : options.deadline.cancelled() ? StopReason::kCancelled
                                                      : StopReason::kTimeLimit);
  }
};

}  // namespace

std::unique_ptr<Planner> make_heft() { return std::make_unique<Heft>(); }

}  // namespace heddle
