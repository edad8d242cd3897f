#include "lns_search.h"

#include <algorithm>
#include <numeric>

#include "lns_area.h"
#include "lns_load.h"
#include "order_search.h"

namespace heddle {
namespace {

// Placements (free ops x devices) of an area at most.
constexpr size_t kMostPlacements = 320;
// CP-SAT's work for one step, in its units.
constexpr double kStepWork = 0.02;
// And seconds at most: some propagation is not counted as work.
constexpr double kStepSeconds = 1;
// Steps between two rounds of local search, and its elementary steps.
constexpr uint64_t kPolishEvery = 6;
constexpr double kPolishSteps = 1e7;
constexpr double kPolishMoves = 4000;
constexpr double kSame = 1 + 1e-12;

class OrderLns final : public LnsSearch {
 public:
  OrderLns(const FlatProblem& flat, FlatPlan start, uint64_t seed)
      : flat_(flat),
        timer_(flat),
        random_(seed),
        seed_(seed),
        choice_(kMostPlacements / std::max<size_t>(1, flat.num_devices())),
        place_(flat.num_ops()) {
    restart(std::move(start));
  }

  void restart(FlatPlan plan) override { take(std::move(plan)); }

  Status step(const Deadline& deadline, const Accept& accept) override {
    const AreaKind kind = choice_.draw(random_);
    const TimedPlan timed{&plan_, &start_, &finish_, value_us_};
    const auto area = draw_area(flat_, timed, critical_, place_, kind, choice_.size(kind), random_);
    // A step without anything to decide counts too, or a search without a deadline would not end.
    ++counts_.steps;
    if (area.free.empty()) {
      choice_.learn(kind, false, true);
      return {};
    }
    WindowLimits limits;
    limits.deadline = deadline.sooner(kStepSeconds);
    limits.work = kStepWork;
    limits.seed = random_.next();
    HEDDLE_ASSIGN_OR_RETURN(auto answer, solve_window(flat_, timed, area, limits));
    const bool better = answer.changed && consider(std::move(answer.plan), accept);
    choice_.learn(kind, better, answer.complete);
    counts_.better += better ? 1 : 0;
    counts_.complete += answer.complete ? 1 : 0;
    if (counts_.steps % kPolishEvery == 0) polish(deadline, accept);
    return {};
  }

  const FlatPlan& best() const override { return plan_; }
  double best_us() const override { return value_us_; }

 private:
  int64_t excess(const FlatPlan& plan) const {
    if (!flat_.has_limits()) return 0;
    ParamUse use(flat_, Reserve(flat_.num_pools(), 0));
    for (uint32_t v = 0; v < plan.device.size(); ++v) use.add(v, plan.device[v]);
    return use.excess();
  }

  // Takes what is no worse; true when it is better. What is equal opens other ways.
  bool consider(FlatPlan plan, const Accept& accept) {
    const double us = timer_.time(plan, value_us_ * kSame);
    timer_.drop();
    if (!(us <= value_us_ * kSame) || excess(plan) > excess_) return false;
    const bool better = us < value_us_ || excess(plan) < excess_;
    if (better ? !accept(plan) : flat_.has_limits()) return false;
    take(std::move(plan));
    return better;
  }

  void polish(const Deadline& deadline, const Accept& accept) {
    const double size = static_cast<double>(flat_.num_ops() + flat_.num_reads());
    OrderSearch local(flat_, plan_, Reserve(flat_.num_pools(), 0), seed_ + counts_.steps);
    local.run({static_cast<uint64_t>(std::clamp(kPolishSteps / size, 50.0, kPolishMoves)), 0.1, 0.005, 0},
              deadline);
    if (local.best_us() < value_us_) consider(local.best(), accept);
  }

  // In the order of starts, so that a stretch of the order is a stretch of time.
  void take(FlatPlan plan) {
    plan_ = std::move(plan);
    value_us_ = timer_.time(plan_, kImpossible);
    timer_.keep();
    start_ = timer_.starts();
    finish_ = timer_.finishes();
    excess_ = excess(plan_);
    std::stable_sort(plan_.order.begin(), plan_.order.end(),
                     [&](uint32_t a, uint32_t b) { return start_[a] < start_[b]; });
    value_us_ = timer_.time(plan_, kImpossible);
    timer_.keep();
    critical_ = timer_.critical(plan_).ops;
    for (uint32_t i = 0; i < plan_.order.size(); ++i) place_[plan_.order[i]] = i;
  }

  const FlatProblem& flat_;
  OrderTimer timer_;
  Random random_;
  const uint64_t seed_;
  AreaChoice choice_;
  FlatPlan plan_;
  double value_us_ = kImpossible;
  int64_t excess_ = 0;
  std::vector<double> start_, finish_;
  std::vector<uint32_t> critical_, place_;
};

}  // namespace

std::unique_ptr<LnsSearch> make_lns_search(const FlatProblem& flat, FlatPlan start, uint64_t seed) {
  if (flat.problem().objective == Objective::kThroughput) return make_load_lns(flat, std::move(start), seed);
  return std::make_unique<OrderLns>(flat, std::move(start), seed);
}

}  // namespace heddle
