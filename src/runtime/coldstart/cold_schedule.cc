#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "heddle/runtime/cold_plan.h"

namespace heddle {
namespace {

class Simulation {
 public:
  Simulation(std::span<const ColdTask> tasks, const ColdMachine& machine)
      : tasks_(tasks), machine_(machine), times_(tasks.size()), state_(tasks.size()), left_(tasks.size()) {
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (!tasks[i].resident) continue;
      state_[i] = State::kReady;
      used_ += tasks[i].bytes;
    }
  }

  Result<std::vector<ColdTimes>> run() {
    while (finished_ < tasks_.size()) {
      while (start_what_can()) {
      }
      if (!advance()) return infeasible("a segment never fits into the budget");
    }
    return times_;
  }

 private:
  enum class State : uint8_t { kWaiting, kLoading, kReady, kRunning, kDone };

  bool start_what_can() {
    bool any = false;
    while (next_ < tasks_.size() && state_[next_] != State::kWaiting) ++next_;
    if (next_ < tasks_.size() && may_load(next_)) {
      state_[next_] = State::kLoading;
      left_[next_] = tasks_[next_].load_us + tasks_[next_].compile_us;
      times_[next_].begin_us = now_;
      used_ += tasks_[next_].bytes;
      ++loading_;
      any = true;
    }
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (state_[i] != State::kReady) continue;
      const auto& after = tasks_[i].after;
      if (!std::all_of(after.begin(), after.end(), [&](int32_t t) { return done(t); })) continue;
      state_[i] = State::kRunning;
      left_[i] = tasks_[i].run_us;
      times_[i].start_us = now_;
      any = true;
    }
    return any;
  }

  bool done(int32_t task) const { return state_[static_cast<size_t>(task)] == State::kDone; }

  bool may_load(size_t task) const {
    if (loading_ == machine_.load_workers) return false;
    if (machine_.budget_bytes > 0 && used_ + tasks_[task].bytes > machine_.budget_bytes) return false;
    if (machine_.overlap) return true;
    for (size_t i = 0; i < task; ++i) {
      if (state_[i] != State::kDone) return false;
    }
    return true;
  }

  // Advances to the next end of a load or run; false if nothing is active.
  bool advance() {
    int wanted = 0;
    double step = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (state_[i] == State::kLoading || state_[i] == State::kRunning) {
        wanted += state_[i] == State::kLoading ? 1 : tasks_[i].threads;
        step = std::min(step, left_[i]);
      }
    }
    if (wanted == 0) return false;
    const double rate = std::min(1.0, static_cast<double>(machine_.cores) / wanted);
    now_ += step / rate;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      if (state_[i] != State::kLoading && state_[i] != State::kRunning) continue;
      left_[i] = std::max(0.0, left_[i] - step);
      if (left_[i] > 0) continue;
      if (state_[i] == State::kLoading) {
        state_[i] = State::kReady;
        times_[i].ready_us = now_;
        --loading_;
      } else {
        state_[i] = State::kDone;
        times_[i].finish_us = now_;
        if (!tasks_[i].stays) used_ -= tasks_[i].bytes;
        ++finished_;
      }
    }
    return true;
  }

  std::span<const ColdTask> tasks_;
  const ColdMachine& machine_;
  std::vector<ColdTimes> times_;
  std::vector<State> state_;
  std::vector<double> left_;
  size_t next_ = 0, finished_ = 0;
  int loading_ = 0;
  int64_t used_ = 0;
  double now_ = 0;
};

}  // namespace

Result<std::vector<ColdTimes>> predict_cold_start(std::span<const ColdTask> tasks,
                                                  const ColdMachine& machine) {
  if (machine.cores < 1 || machine.load_workers < 1 || machine.budget_bytes < 0)
    return invalid_input("a cold start needs at least one core and one load worker");
  for (size_t i = 0; i < tasks.size(); ++i) {
    const ColdTask& t = tasks[i];
    for (const double us : {t.load_us, t.compile_us, t.run_us}) {
      if (!std::isfinite(us) || us < 0)
        return invalid_input("task " + std::to_string(i) + " has the time " + std::to_string(us) + " us");
    }
    bool good = t.threads >= 1 && t.bytes >= 0;
    for (const int32_t a : t.after) good = good && a >= 0 && static_cast<size_t>(a) < i;
    if (!good)
      return invalid_input("task " + std::to_string(i) +
                           " needs a thread, bytes that are not negative, and earlier tasks "
                           "to come after");
  }
  return Simulation(tasks, machine).run();
}

}  // namespace heddle
