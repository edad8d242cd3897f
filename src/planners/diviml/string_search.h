// DiviML's search space for its general heuristics (section V-A): a string of integers, one per task (and
// request) in breadth-first topological order, each the device that it runs on. The fitness is the value of
// that mapping when all run in that order.
#pragma once

#include <optional>

#include "heddle/base/random.h"
#include "module_planner.h"
#include "module_schedule.h"

namespace heddle {

class StringSearch {
 public:
  // Begins with each task on the device that runs it fastest (the paper's biased start).
  StringSearch(const TaskModel& model, uint64_t seed);
  // Begins with these batches, in a topological order, and takes the tasks in the order of their first ones.
  void start_from(const std::vector<Batch>& batches);
  bool has_start() const { return has_start_; }

  size_t size() const { return model_.num_tasks() * model_.num_requests(); }

  // Puts gene i on a random other device that can run it; false when there is none.
  bool mutate(size_t gene);
  // Takes back all changes since the last call of keep() or undo().
  void undo();
  // Keeps them. fitness() must have answered for them.
  void keep();
  // Makespan of the string, in the model's timing: requests of a task on one device form a batch. Above
  // `limit` it may be answered with kImpossible, as soon as it is known to be. Only what stands at the first
  // changed gene and behind it is timed again: O((V + E) requests) at worst.
  double fitness(double limit = kImpossible) { return schedule_->value(limit); }
  // Task by task.
  std::vector<Batch> batches() const { return schedule_->batches(); }
  std::vector<uint32_t> genes() const;
  void set_genes(const std::vector<uint32_t>& genes);
  Random& random() { return random_; }

 private:
  // Gene i is that of a request of the task at a place of the order.
  uint32_t task(size_t gene) const { return schedule_->order()[gene / model_.num_requests()]; }
  size_t request(size_t gene) const { return gene % model_.num_requests(); }

  const TaskModel& model_;
  const ModuleProblem whole_;
  Random random_;
  std::optional<ModuleSchedule> schedule_;  // always there
  bool has_start_ = false;
};

// Runs `search` on each set of devices and times the string that it ends with, as plan_by_models() does, but
// without any constructive plan beside it. A plan to improve, where it is given and fits the set, is where
// the search starts.
using RunStrings = std::function<void(StringSearch& search, const Deadline& deadline)>;
Result<PlannerOutput> plan_by_strings(const Problem& problem, const PlannerOptions& options,
                                      const std::string& name, const RunStrings& search);

// Without a deadline so many mutations per gene are tried.
inline constexpr size_t kTriesPerGene = 1000;

}  // namespace heddle
