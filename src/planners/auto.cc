// auto: runs what fits in the time and keeps the best.
//
// First the quick planners on each maximal set of devices that do not exclude each other (a device of two
// cores, or two of one), then local search from the best of each set, then, for throughput, pipelines and
// replication as well. The time left is shared among the starts, best first. Stops as soon as a plan meets
// its bound. Deterministic for a seed as long as no deadline cuts it short.
#include <algorithm>

#include "candidates.h"
#include "configurations.h"
#include "local_search.h"
#include "planners.h"

namespace heddle {
namespace {

constexpr size_t kMostStarts = 4;  // for local search
constexpr double kLeastSearchSeconds = 0.005;

struct Start {
  double value_us;
  Problem problem;  // the original one, restricted to a set of devices
  Plan plan;
};

class Auto final : public Planner {
 public:
  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions& options) override {
    const auto bound = lower_bound(problem, options.deadline.sooner(1));
    BestPlan best(problem);
    std::vector<Start> starts;
    std::optional<Error> error;
    auto sets = device_configurations(problem);
    // Core sets that overlap may be mixed in time too: the quick planners also see all devices at once.
    if (sets.size() > 1) sets.push_back(problem.usable_devices());
    for (const auto* name : quick_planners(problem.objective)) {
      for (const auto& set : sets) {
        if (best.found() && (options.deadline.should_stop() || best.value_us() <= bound.us * (1 + 1e-9)))
          break;
        run_quick(*find_planner(name), problem, set, options, bound, best, starts, error);
      }
    }
    if (!best.found() && error) return *error;
    auto stop = search(problem, options, bound, best, starts);
    auto out = best.output(stop);
    if (out.ok()) out->bound = bound;
    return out;
  }

 private:
  static std::vector<const char*> quick_planners(Objective objective) {
    if (objective == Objective::kThroughput)
      return {"single", "replicate", "pipeline", "heft", "met", "greedy"};
    return {"single", "heft", "lookahead", "greedy", "critical-path", "met"};
  }

  static void run_quick(const PlannerEntry& entry, const Problem& problem, const std::vector<DeviceId>& set,
                        const PlannerOptions& options, const Bound& bound, BestPlan& best,
                        std::vector<Start>& starts, std::optional<Error>& error) {
    Problem part = problem;
    part.devices = set;
    if (!validate(part).ok()) return;  // these devices alone cannot run every op
    if (options.progress) {
      options.progress->report({"trying " + entry.info.name, 0, 0,
                                best.found() ? std::optional(best.value_us()) : std::nullopt, bound.us});
    }
    auto out = entry.make()->plan(part, options);
    if (!out.ok()) {
      if (!error) error = std::move(out).error();
      return;
    }
    const auto how = out->detail.empty() ? entry.info.name : entry.info.name + ": " + out->detail;
    const double value = best.offer(out->plan, how);
    if (value < kImpossible && out->plan.lane_shares.size() == 1)
      starts.push_back({value, std::move(part), std::move(out->plan)});
  }

  // The best start of each set of devices first, then the others.
  static StopReason search(const Problem& problem, const PlannerOptions& options, const Bound& bound,
                           BestPlan& best, std::vector<Start>& starts) {
    std::stable_sort(starts.begin(), starts.end(),
                     [](const Start& a, const Start& b) { return a.value_us < b.value_us; });
    std::vector<const Start*> chosen;
    for (const auto& s : starts) {
      const bool seen = std::any_of(chosen.begin(), chosen.end(),
                                    [&](const Start* c) { return c->problem.devices == s.problem.devices; });
      if (!seen && chosen.size() < kMostStarts && s.problem.devices.size() > 1) chosen.push_back(&s);
    }
    auto stop = StopReason::kFinished;
    for (size_t i = 0; i < chosen.size(); ++i) {
      if (best.value_us() <= bound.us * (1 + 1e-9)) return StopReason::kOptimal;
      const double left = options.deadline.seconds_left();
      if (left < kLeastSearchSeconds)
        return options.deadline.cancelled() ? StopReason::kCancelled : StopReason::kTimeLimit;
      auto share = options;
      if (left < 1e9) share.deadline = options.deadline.sooner(left / static_cast<double>(chosen.size() - i));
      share.seed = options.seed + i;
      // A plan of one segment is a fine start, but local search moves ops.
      auto out = improve(chosen[i]->problem, assignment_of(problem, chosen[i]->plan), bound, share);
      if (!out.ok()) continue;
      best.offer(std::move(out->plan), best.how() + ", then local search");
      if (out->stop != StopReason::kFinished) stop = out->stop;
    }
    return stop;
  }
};

}  // namespace

std::unique_ptr<Planner> make_auto() { return std::make_unique<Auto>(); }

}  // namespace heddle
