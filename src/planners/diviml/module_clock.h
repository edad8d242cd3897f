// When batches run: put in one after another, each starts as soon as its device is free and its inputs are
// there; transfers never wait for each other. Any batches, also several of one task on one device; the timer
// of searches, ModuleSchedule, knows one place in the order for each task.
#pragma once

#include <span>
#include <vector>

#include "module_problem.h"

namespace heddle {

class ModuleClock {
 public:
  // The module must outlive the clock.
  explicit ModuleClock(const ModuleProblem& module);

  // The start of the batch if it were the next one. Infinite when something is impossible.
  double start(const Batch& batch) const;
  // Takes the batch as the next one and returns its start.
  double append(const Batch& batch);
  // The end of everything so far, tails included; infinite unless all requests of all tasks have run.
  double value() const { return done_ == ends_.size() ? latest_ : kImpossible; }
  double latest() const { return latest_; }
  // When the devices are free; where and when a request of a task has ended.
  const std::vector<double>& free_us() const { return free_; }
  struct End {
    double at_us = kImpossible;
    uint32_t device = 0;
  };
  const End& end(size_t task, size_t request) const { return ends_[task * requests_ + request]; }

 private:
  const ModuleProblem& m_;
  const size_t requests_;
  std::vector<std::vector<const ModuleProblem::Source*>> sources_;  // per task
  std::vector<double> free_;                                        // per device
  std::vector<End> ends_;                                           // task x request
  double latest_ = 0;
  size_t done_ = 0;
};

// All tasks of the model as one module.
inline ModuleProblem whole_problem(const TaskModel& model) { return {.model = model}; }

// Start of each batch of the whole model when they run in this topological order, and the makespan.
struct BatchTimes {
  std::vector<double> start;
  double makespan = 0;
};
BatchTimes time_batches(const TaskModel& model, const std::vector<Batch>& batches);
// Sorted by these starts. Equal ones keep their order, so that it stays topological where tasks take no time.
std::vector<Batch> by_start(const std::vector<Batch>& batches, std::span<const double> starts);

}  // namespace heddle
