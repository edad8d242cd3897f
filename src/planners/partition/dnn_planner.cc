#include "heddle/planners/dnn_planner.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "dnn_board.h"

namespace heddle {
namespace {

constexpr double kGap = 1e-6;         // of two values that count as equal
constexpr double kUsualSeconds = 60;  // where the caller sets no end

}  // namespace

bool DnnBoard::offer(const DnnSplit& split, const std::string& planner) {
  if (!check_dnn_split(workload_, split, rules_).ok()) return false;
  const auto value = evaluate_dnn_split(workload_, split, rules_.objective);
  if (!value.ok()) return false;
  const std::lock_guard lock(mutex_);
  if (has_split_ && value->value >= best_.value) return true;
  best_.split = split;
  best_.value = value->value;
  best_.planner = planner;
  has_split_ = true;
  note();
  if (met()) done_.cancel();
  return true;
}

void DnnBoard::prove(double bound, const std::string& by) {
  const std::lock_guard lock(mutex_);
  if (!(bound > best_.bound)) return;
  best_.bound = bound;
  best_.bound_by = by;
  note();
  if (met()) done_.cancel();
}

void DnnBoard::note() {
  const double seconds = std::chrono::duration<double>(Deadline::Clock::now() - began_).count();
  const double value = has_split_ ? best_.value : std::numeric_limits<double>::infinity();
  best_.trajectory.push_back({seconds, value, std::min(best_.bound, value)});
}

void DnnBoard::fail(Error error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
  done_.cancel();
}

bool DnnBoard::met() const { return has_split_ && best_.bound >= best_.value * (1 - kGap); }

double DnnBoard::value() const {
  const std::lock_guard lock(mutex_);
  return has_split_ ? best_.value : std::numeric_limits<double>::infinity();
}

double DnnBoard::bound() const {
  const std::lock_guard lock(mutex_);
  return best_.bound;
}

DnnSplit DnnBoard::split() const {
  const std::lock_guard lock(mutex_);
  return best_.split;
}

Result<DnnPlan> DnnBoard::result() const {
  const std::lock_guard lock(mutex_);
  if (error_) return *error_;
  if (!has_split_)
    return Error(Code::kInfeasible, workload_.name +
                                        ": found no split that memory and supported devices allow; give "
                                        "accelerators more memory, or the workload a CPU");
  DnnPlan plan = best_;
  if (plan.bound > plan.value * (1 + 1e-9))
    return Error(Code::kInternal, workload_.name + ": " + plan.bound_by + " claims the bound " +
                                      std::to_string(plan.bound) + ", but " + plan.planner +
                                      " found the checked value " + std::to_string(plan.value));
  plan.bound = std::min(plan.bound, plan.value);  // they may differ by the rounding of sums
  plan.optimal = met();
  return plan;
}

Result<DnnPlan> plan_dnn(const DnnWorkload& workload, const DnnRules& rules, const DnnPlanOptions& options) {
  if (rules.pieces < 1 || options.threads < 1)
    return Error(Code::kInvalidInput, "pieces and threads must be at least 1");
  const auto began = Deadline::Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Deadline::Clock::now() - began).count(); };
  const double seconds =
      std::isfinite(options.deadline.seconds_left()) ? options.deadline.seconds_left() : kUsualSeconds;
  DnnBoard board(workload, rules);
  const auto deadline = Deadline::after_seconds(seconds, board.done());
  std::atomic<bool> finished = false;
  std::thread worker([&] {
    if (rules.objective == DnnObjective::kLatency) {
      run_latency_portfolio(workload, rules, options, deadline, board);
    } else {
      run_load_portfolio(workload, rules, options, deadline, board);
    }
    finished = true;
  });
  // The caller's cancellation becomes the board's; the methods know only that one.
  while (!finished) {
    if (options.deadline.should_stop()) board.done().cancel();
    if (options.progress != nullptr) {
      ProgressUpdate update;
      update.what = workload.name;
      update.done = std::min(elapsed(), seconds);
      update.total = seconds;
      if (std::isfinite(board.value())) update.best_us = board.value() * 1e3;
      if (board.bound() > 0) update.bound_us = board.bound() * 1e3;
      options.progress->report(update);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  worker.join();
  HEDDLE_ASSIGN_OR_RETURN(auto plan, board.result());
  plan.seconds = elapsed();
  plan.trajectory.push_back({plan.seconds, plan.value, plan.bound});
  return plan;
}

}  // namespace heddle
