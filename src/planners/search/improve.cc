#include "improve.h"

#include <algorithm>
#include <array>
#include <thread>

#include "lists/construction.h"
#include "load_search.h"
#include "order_search.h"

namespace heddle {
namespace {

// Moves of the first round; each round after that has half as many again, up to the limit.
constexpr double kFirstMovesPerOp = 40;
constexpr double kLeastMoves = 1500, kGrowth = 1.4;
// Elementary steps (ops and reads timed) of one round, some seconds.
constexpr double kMostStepsPerRound = 4e8;
// Without a deadline: elementary steps of all rounds together, about two seconds.
constexpr double kMostSteps = 1.5e8;
constexpr int kMostRounds = 200;
// Rounds in a row without a better plan after which it ends.
constexpr int kRoundsWithoutGain = 12;
// Begin temperatures of successive rounds, relative to the usual one: cold rounds polish, hot ones start
// afresh.
constexpr std::array<double, 5> kHeat{1.0, 0.3, 2.0, 0.5, 4.0};
// Temperatures of a round of heat 1: of an order in mean times of an op, of loads as shares of the value.
constexpr SearchRound kOrderRound{.hot = 0.5, .cold = 0.01}, kLoadRound{.hot = 0.02, .cold = 1e-4};
// A bound counts as reached within rounding.
constexpr double kMeetsBound = 1 + 1e-9;
constexpr uint64_t kRoundSeedStep = 0x9e3779b97f4a7c15ULL;

class Improver {
 public:
  Improver(const Problem& problem, const PlannerOptions& options, std::string name, PlanStore& candidates)
      : problem_(problem),
        options_(options),
        name_(std::move(name)),
        candidates_(candidates),
        flat_(problem, problem.usable_devices()),
        reserve_(flat_.num_pools(), 0) {
    work_per_move_ =
        has_loads() ? 4 + 2 * static_cast<double>(flat_.num_reads()) / static_cast<double>(flat_.num_ops())
                    : static_cast<double>(flat_.num_ops() + flat_.num_reads());
  }

  ImproveResult run(const std::vector<Plan>& starts, std::optional<double> known_us) {
    ImproveResult result;
    result.bound_us = known_us ? *known_us : lower_bound(problem_, options_.deadline).us;
    auto start = best_start(starts);
    if (!start) return result;
    const int threads = std::max(1, options_.threads);
    for (int c = 0; c < threads; ++c) chains_.push_back(make_chain(*start, static_cast<uint64_t>(c)));
    result.stop = rounds(result.bound_us * kMeetsBound);
    for (const auto& chain : chains_) moves_ += chain->moves_tried();
    result.counters["search_rounds"] = round_;
    result.counters["search_moves"] = static_cast<double>(moves_);
    return result;
  }

 private:
  std::unique_ptr<DeviceSearch> make_chain(FlatPlan start, uint64_t number) const {
    const uint64_t seed =
        options_.seed + kRoundSeedStep * (number + 1 + 1000 * static_cast<uint64_t>(round_));
    if (has_loads()) return std::make_unique<LoadSearch>(flat_, std::move(start), reserve_, seed);
    return std::make_unique<OrderSearch>(flat_, std::move(start), reserve_, seed);
  }

  // Ops one by one; the best of them by the chain's own measure, which is the evaluator's. When no start is
  // feasible, a list schedule that disregards memory: the search then mends it.
  std::optional<FlatPlan> best_start(const std::vector<Plan>& starts) const {
    std::optional<FlatPlan> best;
    double best_us = kImpossible;
    for (const Plan& plan : starts) {
      const auto flat_plan = to_flat_plan(flat_, assignment_of(problem_, plan));
      if (!flat_plan) continue;
      const double us = make_chain(*flat_plan, 0)->best_us();
      if (best && us >= best_us) continue;
      best = *flat_plan;
      best_us = us;
    }
    if (best) return best;
    const Reserve none(flat_.num_pools(), INT64_MIN / 4);
    for (const auto& devices : configurations(problem_)) {
      const FlatProblem part(problem_, devices);
      const auto plan = list_plan(part, {}, none, options_.deadline,
                                  {order_by_priority(part, upward_ranks(part)), earliest_finish});
      if (plan) return to_flat_plan(flat_, to_assignment(part, *plan));
    }
    return std::nullopt;
  }

  bool run_round(uint64_t moves, double stop_at_us) {
    SearchRound round = has_loads() ? kLoadRound : kOrderRound;
    round.moves = moves;
    round.hot *= kHeat[static_cast<size_t>(round_) % kHeat.size()];
    round.stop_at_us = stop_at_us;
    std::vector<uint8_t> finished(chains_.size(), 0);
    const auto one = [&](size_t c) { finished[c] = chains_[c]->run(round, options_.deadline) ? 1 : 0; };
    std::vector<std::thread> threads;
    for (size_t c = 1; c < chains_.size(); ++c) threads.emplace_back(one, c);
    one(0);
    for (auto& thread : threads) thread.join();
    return std::all_of(finished.begin(), finished.end(), [](uint8_t f) { return f != 0; });
  }

  // Offers what the chains found. A plan whose tensors do not fit makes all chains leave more room. True when
  // something got better.
  bool meet() {
    bool better = false;
    Reserve more(reserve_.size(), 0);
    size_t leader = 0;
    for (size_t c = 0; c < chains_.size(); ++c) {
      const auto key = [](const DeviceSearch& chain) {
        return std::pair(chain.best_excess(), chain.best_us());
      };
      if (key(*chains_[c]) < key(*chains_[leader])) leader = c;
      if (chains_[c]->best_excess() > 0 || chains_[c]->best_us() >= candidates_.value_us()) continue;
      better = candidates_.offer(to_assignment(flat_, chains_[c]->best()), name_) || better;
      for (size_t p = 0; p < more.size(); ++p) more[p] = std::max(more[p], candidates_.excess()[p]);
    }
    const bool too_large = std::any_of(more.begin(), more.end(), [](int64_t bytes) { return bytes > 0; });
    for (size_t p = 0; p < more.size(); ++p) reserve_[p] = plus_bytes(reserve_[p], more[p]);
    // The chain that is behind goes on from the leader, so that chains differ but none is lost.
    for (size_t c = 0; c < chains_.size(); ++c) {
      if (!too_large && (c == leader || round_ % 2 == 0)) continue;
      if (!too_large && chains_.size() == 1) continue;
      FlatPlan from = too_large ? chains_[c]->best() : chains_[leader]->best();
      moves_ += chains_[c]->moves_tried();
      chains_[c] = make_chain(std::move(from), c);
    }
    return better;
  }

  StopReason rounds(double stop_at_us) {
    const bool endless = options_.deadline.seconds_left() == std::numeric_limits<double>::infinity();
    double moves = std::max(kLeastMoves, kFirstMovesPerOp * static_cast<double>(flat_.num_ops()));
    double work = 0;
    int idle = 0;
    for (round_ = 0; round_ < kMostRounds || !endless; ++round_) {
      if (candidates_.value_us() <= stop_at_us) return StopReason::kOptimal;
      if (options_.deadline.should_stop()) return StopReason::kTimeLimit;
      moves = std::clamp(moves, 200.0, std::max(200.0, kMostStepsPerRound / work_per_move_));
      if (endless && work + moves * work_per_move_ > kMostSteps && round_ > 0) return StopReason::kFinished;
      const bool finished = run_round(static_cast<uint64_t>(moves), stop_at_us);
      idle = meet() ? 0 : idle + 1;
      report_progress(options_, "planner " + name_, round_ + 1, 0,
                      candidates_.empty() ? std::nullopt : std::optional<double>(candidates_.value_us()),
                      stop_at_us / kMeetsBound);
      if (candidates_.value_us() <= stop_at_us) return StopReason::kOptimal;
      if (!finished && options_.deadline.should_stop()) return StopReason::kTimeLimit;
      if (idle >= kRoundsWithoutGain) return StopReason::kFinished;
      work += moves * work_per_move_;
      moves *= kGrowth;
    }
    return StopReason::kFinished;
  }

  // The objective depends on loads alone, not on the order.
  bool has_loads() const { return problem_.objective == Objective::kThroughput; }

  const Problem& problem_;
  const PlannerOptions& options_;
  const std::string name_;
  PlanStore& candidates_;
  const FlatProblem flat_;
  Reserve reserve_;
  double work_per_move_ = 1;
  std::vector<std::unique_ptr<DeviceSearch>> chains_;
  uint64_t moves_ = 0;
  int round_ = 0;
};

}  // namespace

ImproveResult improve(const Problem& problem, const PlannerOptions& options, const std::vector<Plan>& starts,
                      const std::string& name, PlanStore& candidates, std::optional<double> known_us) {
  return Improver(problem, options, name, candidates).run(starts, known_us);
}

}  // namespace heddle
