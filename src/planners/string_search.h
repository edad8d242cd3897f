// DiviML's search space for its general heuristics (section V-A): a string of integers, one per task (and
// request) in breadth-first topological order, each the device that it runs on. The fitness is the value of
// that mapping when all run in that order.
#pragma once

#include "heddle/base/random.h"
#include "module_planner.h"

namespace heddle {

class StringSearch {
 public:
  StringSearch(const TaskModel& model, uint64_t seed);

  size_t size() const { return string_.size(); }
  // Each task on the device that runs it fastest: the biased start.
  void start_fastest();
  // Each task on a random device of those that can run it.
  void start_random();

  // Puts gene i on a random other device that can run it; false when there is none.
  bool mutate(size_t gene);
  // Takes back all changes since the last call of keep() or undo().
  void undo();
  void keep() { changed_.clear(); }
  // Makespan of the string, in the model's timing: requests of a task on one device form a batch.
  double fitness();
  std::vector<Batch> batches() const;
  const std::vector<uint32_t>& genes() const { return string_; }
  void set_genes(const std::vector<uint32_t>& genes) { string_ = genes, changed_.clear(); }
  Random& random() { return random_; }

 private:
  const TaskModel& model_;
  Random random_;
  std::vector<uint32_t> order_;   // tasks, breadth first
  std::vector<uint32_t> string_;  // order place x request -> device
  std::vector<std::pair<size_t, uint32_t>> changed_;
  std::vector<double> free_, finish_;  // per device; task x request
  std::vector<uint32_t> place_;        // task x request
};

// Runs `search` on each set of devices and judges the string it ends with, as plan_by_models() does, but
// without any constructive plan beside it.
using RunStrings = std::function<void(StringSearch& search, const Deadline& deadline)>;
Result<PlannerOutput> plan_by_strings(const Problem& problem, const PlannerOptions& options,
                                      const std::string& name, const RunStrings& search);

// Without a deadline so many mutations per gene are tried.
inline constexpr size_t kTriesPerGene = 1000;

}  // namespace heddle
