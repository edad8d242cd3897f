// Placement of Tarnawski et al.'s workloads (NeurIPS 2020): the portfolio over all methods for their two
// objectives.
//
// Minimises the largest load of a device, or the latency of one sample. Anytime: the best split when the deadline
// ends it, within 60 s where there is none. Each method is deterministic for its seed; they share incumbents as
// time allows, so two runs that are cut short may differ.
// Max-load, contiguous: linearised orders, then the exact programme over ideals.
// Max-load: these as a start, annealing in all threads, CP-SAT in one.
// Latency: greedy and linearised orders as a start, annealing in all threads, CP-SAT in one.
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "core/factories.h"
#include "dnn_board.h"
#include "lists/construction.h"

namespace heddle {
namespace {

constexpr double kGap = 1e-6;         // of two values that count as equal
constexpr double kUsualSeconds = 60;  // where the caller sets no end

class PlacementSearch final : public Planner {
 public:
  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions& options) override {
    HEDDLE_ASSIGN_OR_RETURN(const auto instance, DnnInstance::make(problem));
    const auto began = Deadline::Clock::now();
    const double left = options.deadline.seconds_left();
    const double seconds = std::isfinite(left) ? left : kUsualSeconds;
    DnnBoard board(instance);
    const auto deadline = Deadline::after_seconds(seconds, board.done());
    std::atomic<bool> finished = false;
    std::thread worker([&] {
      instance.is_latency() ? run_latency_portfolio(instance, options, deadline, board)
                            : run_load_portfolio(instance, options, deadline, board);
      finished = true;
    });
    // The caller's cancellation becomes the board's; the methods know only that one.
    while (!finished) {
      if (options.deadline.should_stop()) board.done().cancel();
      const double elapsed = std::chrono::duration<double>(Deadline::Clock::now() - began).count();
      report_progress(options, instance.workload().name, std::min(elapsed, seconds), seconds,
                      std::isfinite(board.value()) ? std::optional<double>(board.value()) : std::nullopt,
                      board.bound() > 0 ? std::optional<double>(board.bound()) : std::nullopt);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    worker.join();
    HEDDLE_ASSIGN_OR_RETURN(auto output, board.result());
    if (output.stop != StopReason::kOptimal && options.deadline.should_stop())
      output.stop = options.deadline.cancelled() ? StopReason::kCancelled : StopReason::kTimeLimit;
    return output;
  }
};

}  // namespace

double DnnBoard::offer(const DnnSplit& split, const std::string& method) {
  const auto value = instance_.value_us(split);
  if (!value) return std::numeric_limits<double>::infinity();
  const std::lock_guard lock(mutex_);
  if (*value >= value_) return *value;
  best_ = split;
  value_ = *value;
  method_ = method;
  note();
  if (met()) done_.cancel();
  return *value;
}

void DnnBoard::prove(double bound, const std::string& by) {
  const std::lock_guard lock(mutex_);
  if (!(bound > bound_)) return;
  bound_ = bound;
  bound_by_ = by;
  note();
  if (met()) done_.cancel();
}

void DnnBoard::note() {
  const double seconds = std::chrono::duration<double>(Deadline::Clock::now() - began_).count();
  trajectory_.push_back({seconds, value_, std::min(bound_, value_)});
}

void DnnBoard::fail(Error error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
  done_.cancel();
}

bool DnnBoard::met() const { return std::isfinite(value_) && bound_ >= value_ * (1 - kGap); }

double DnnBoard::value() const {
  const std::lock_guard lock(mutex_);
  return value_;
}

double DnnBoard::bound() const {
  const std::lock_guard lock(mutex_);
  return bound_;
}

DnnSplit DnnBoard::split() const {
  const std::lock_guard lock(mutex_);
  return best_;
}

Result<PlannerOutput> DnnBoard::result() const {
  const std::lock_guard lock(mutex_);
  if (error_) return *error_;
  if (!std::isfinite(value_))
    return Error(Code::kInfeasible, instance_.workload().name +
                                        ": found no split that memory and supported devices allow; give "
                                        "accelerators more memory, or the workload a CPU");
  if (bound_ > value_ * (1 + 1e-9))
    return Error(Code::kInternal, instance_.workload().name + ": " + bound_by_ + " claims the bound " +
                                      std::to_string(bound_) + ", but " + method_ +
                                      " found the checked value " + std::to_string(value_));
  PlannerOutput output;
  HEDDLE_ASSIGN_OR_RETURN(output.plan, instance_.plan_of(best_));
  // They may differ by the rounding of sums.
  if (bound_ > 0) output.bound = Bound{std::min(bound_, value_), bound_by_};
  output.stop = met() ? StopReason::kOptimal : StopReason::kFinished;
  output.detail = method_;
  output.trajectory = trajectory_;
  return output;
}

std::unique_ptr<Planner> make_placement_search() { return std::make_unique<PlacementSearch>(); }

}  // namespace heddle
