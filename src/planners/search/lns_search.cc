#include "lns_search.h"

#include <algorithm>
#include <limits>

#include "lns_area.h"
#include "load_search.h"
#include "order_search.h"

namespace heddle {
namespace {

// Placements (free ops x devices) of an area at most.
constexpr size_t kMostPlacements = 320, kMostLoadPlacements = 400;
// CP-SAT's work for one step, in its units.
constexpr double kStepWork = 0.02;
// And seconds at most: some propagation is not counted as work.
constexpr double kStepSeconds = 1;
// Steps between two rounds of local search, and its elementary steps.
constexpr uint64_t kPolishEvery = 6;
constexpr double kPolishSteps = 1e7;
constexpr double kPolishMoves = 4000;
constexpr double kSame = 1 + 1e-12;
// Steps in a row without a better plan after which it ends, per size of the model; and without a deadline all
// steps.
constexpr uint64_t kPatience = 150, kUntimedSteps = 16;

// Latencies.
class OrderLns final : public LnsSearch {
 public:
  OrderLns(const FlatProblem& flat, FlatPlan start, uint64_t seed)
      : LnsSearch(flat, seed),
        timer_(flat),
        choice_(kMostPlacements / std::max<size_t>(1, flat.num_devices())) {
    const double size = static_cast<double>(flat.num_ops() + flat.num_reads());
    polish_ = {static_cast<uint64_t>(std::clamp(kPolishSteps / size, 50.0, kPolishMoves)), 0.1, 0.005, 0};
    take(std::move(start));
  }

 private:
  Neighbourhood draw() override {
    kind_ = choice_.draw(random_);
    return draw_area(flat_, timed(), critical_, place_, kind_, choice_.size(kind_), random_);
  }
  Result<WindowAnswer> solve(const Neighbourhood& area, const SolveOptions& options) override {
    return solve_window(flat_, timed(), area, options);
  }
  void learn(bool better, bool complete) override { choice_.learn(kind_, better, complete); }
  std::unique_ptr<DeviceSearch> local_search(uint64_t seed) const override {
    return std::make_unique<OrderSearch>(flat_, plan_, Reserve(), seed);
  }

  // What is equal opens other ways.
  bool consider(FlatPlan plan, const Accept& accept) override {
    const double us = timer_.time(plan, value_us_ * kSame);
    timer_.drop();
    if (!(us <= value_us_ * kSame) || excess(plan) > excess_) return false;
    const bool better = us < value_us_ || excess(plan) < excess_;
    if (better ? !accept(plan) : flat_.has_limits()) return false;
    take(std::move(plan));
    return better;
  }

  TimedPlan timed() const { return {&plan_, &start_, &finish_, value_us_}; }

  // In the order of starts, so that a stretch of the order is a stretch of time.
  void take(FlatPlan plan) {
    plan_ = std::move(plan);
    timer_.time(plan_, kImpossible);
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

  OrderTimer timer_;
  AreaChoice choice_;
  AreaKind kind_ = AreaKind::kTime;
  std::vector<double> start_, finish_;
  std::vector<uint32_t> critical_;
};

// Throughput: the order of the plan does not matter and is kept.
class LoadLns final : public LnsSearch {
 public:
  LoadLns(const FlatProblem& flat, FlatPlan start, uint64_t seed)
      : LnsSearch(flat, seed),
        model_(flat),
        most_(std::max<size_t>(8, kMostLoadPlacements / std::max<size_t>(1, flat.num_devices()))) {
    size_ = std::max<size_t>(8, most_ / 4);
    polish_ = {static_cast<uint64_t>(kPolishMoves), 0.005, 1e-4, 0};
    plan_ = std::move(start);
    for (uint32_t i = 0; i < plan_.order.size(); ++i) place_[plan_.order[i]] = i;
    put(plan_);
  }

 private:
  void put(const FlatPlan& plan) {
    for (uint32_t v = 0; v < plan.device.size(); ++v) model_.put(v, static_cast<int32_t>(plan.device[v]));
    model_.refresh();
    value_us_ = model_.period_us();
    norm_us_ = model_.norm_us();
    excess_ = excess(plan);
  }

  // Ops of the busiest device and others, near each other or anywhere.
  Neighbourhood draw() override {
    Neighbourhood area;
    const size_t n = flat_.num_ops(), size = std::min(size_, n);
    std::vector<uint8_t> seen(n, 0);
    const auto take = [&](uint32_t v) {
      if (area.free.size() >= size || seen[v]) return;
      seen[v] = 1;
      area.free.push_back(v);
    };
    const uint32_t busiest = model_.busiest();
    std::vector<uint32_t> there;
    for (uint32_t v = 0; v < n; ++v) {
      if (plan_.device[v] == busiest) there.push_back(v);
    }
    uint32_t centre = static_cast<uint32_t>(random_.below(n));
    if (!there.empty() && random_.chance(0.7)) centre = there[random_.below(there.size())];
    const double dice = random_.unit();
    if (dice < 0.4) {
      // Half from the busiest device, half from anywhere.
      random_.shuffle(there);
      for (size_t i = 0; i < there.size() && 2 * area.free.size() < size; ++i) take(there[i]);
      for (size_t i = 0; i < 4 * size; ++i) take(static_cast<uint32_t>(random_.below(n)));
    } else if (dice < 0.75) {
      take(centre);
      for (size_t i = 0; i < area.free.size() && area.free.size() < size; ++i) {
        for (const uint32_t t : flat_.inputs(area.free[i])) take(flat_.producer(t));
        for (const uint32_t t : flat_.outputs(area.free[i])) {
          for (const uint32_t w : flat_.readers(t)) take(w);
        }
      }
    } else {
      const size_t at = place_[centre], before = random_.below(size);
      const size_t first = std::min(at > before ? at - before : 0, n - size);
      for (size_t i = first; i < first + size; ++i) take(plan_.order[i]);
    }
    std::sort(area.free.begin(), area.free.end());
    return area;
  }
  Result<WindowAnswer> solve(const Neighbourhood& area, const SolveOptions& options) override {
    return solve_loads(flat_, model_, plan_, area, options);
  }
  void learn(bool better, bool complete) override {
    if (!complete)
      size_ = std::max<size_t>(4, size_ * 4 / 5);
    else if (!better)
      size_ = std::min(most_, size_ + 2);
  }
  std::unique_ptr<DeviceSearch> local_search(uint64_t seed) const override {
    return std::make_unique<LoadSearch>(flat_, plan_, Reserve(), seed);
  }

  // Less period, or the same with less load elsewhere.
  bool consider(FlatPlan plan, const Accept& accept) override {
    const double period = value_us_, norm = norm_us_;
    const int64_t before = excess_;
    put(plan);
    const bool better = excess_ < before || (excess_ == before && value_us_ < period * (1 - 1e-12));
    const bool same = excess_ == before && value_us_ <= period && norm_us_ < norm;
    if (better ? accept(plan) : same && !flat_.has_limits()) {
      plan_ = std::move(plan);
      return better;
    }
    put(plan_);
    return false;
  }

  LoadModel model_;
  const size_t most_;  // free ops of a step
  size_t size_ = 8;
  double norm_us_ = kImpossible;
};

}  // namespace

LnsSearch::LnsSearch(const FlatProblem& flat, uint64_t seed)
    : flat_(flat), random_(seed), place_(flat.num_ops()), seed_(seed) {}

int64_t LnsSearch::excess(const FlatPlan& plan) const {
  if (!flat_.has_limits()) return 0;
  ParamUse use(flat_, {});
  for (uint32_t v = 0; v < plan.device.size(); ++v) use.add(v, plan.device[v]);
  return use.excess();
}

Status LnsSearch::step(const Deadline& deadline, const Accept& accept) {
  const Neighbourhood area = draw();
  // A step without anything to decide counts too, or a search without a deadline would not end.
  ++counts_.steps;
  if (area.free.empty()) {
    learn(false, true);
    return {};
  }
  const SolveOptions options{
      .deadline = deadline.sooner(kStepSeconds), .work = kStepWork, .seed = random_.next()};
  HEDDLE_ASSIGN_OR_RETURN(auto answer, solve(area, options));
  const bool better = answer.changed && consider(std::move(answer.plan), accept);
  learn(better, answer.complete);
  counts_.better += better ? 1 : 0;
  counts_.complete += answer.complete ? 1 : 0;
  if (counts_.steps % kPolishEvery != 0) return {};
  const auto local = local_search(seed_ + counts_.steps);
  local->run(polish_, deadline);
  if (local->best_us() < value_us_) consider(local->best(), accept);
  return {};
}

std::unique_ptr<LnsSearch> make_lns_search(const FlatProblem& flat, FlatPlan start, uint64_t seed) {
  if (flat.problem().objective == Objective::kThroughput)
    return std::make_unique<LoadLns>(flat, std::move(start), seed);
  return std::make_unique<OrderLns>(flat, std::move(start), seed);
}

LnsResult lns_rounds(const Problem& problem, const FlatProblem& flat, const PlannerOptions& options,
                     const Plan& start, double stop_at_us, const OfferPlan& offer) {
  LnsResult result;
  auto first = to_flat_plan(flat, assignment_of(problem, start));
  if (!first) return result;
  const auto lns = make_lns_search(flat, std::move(*first), options.seed);
  const LnsSearch::Accept accept = [&](const FlatPlan& plan) { return offer(to_assignment(flat, plan)); };
  const bool endless = options.deadline.seconds_left() == std::numeric_limits<double>::infinity();
  const auto& counts = lns->counts();
  uint64_t last_better = 0;
  while (!options.deadline.should_stop() && lns->best_us() > stop_at_us) {
    if (counts.steps >= last_better + kPatience || (endless && counts.steps >= kUntimedSteps)) break;
    const uint64_t better = counts.better;
    if (!lns->step(options.deadline, accept).ok()) break;
    result.ran = true;
    if (counts.better > better) last_better = counts.steps;
  }
  result.counts = counts;
  return result;
}

}  // namespace heddle
