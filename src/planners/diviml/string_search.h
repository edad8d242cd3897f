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
  // Begins with these batches, in a topological order, and takes the tasks in the order of their first ones.
  void start_from(std::span<const Batch> batches);
  bool has_start() const { return has_start_; }

  size_t size() const { return string_.size(); }
  // Each task on the device that runs it fastest: the biased start.
  void start_fastest();
  // Each task on a random device of those that can run it.
  void start_random();

  // Puts gene i on a random other device that can run it; false when there is none.
  bool mutate(size_t gene);
  // Takes back all changes since the last call of keep() or undo().
  void undo();
  // Keeps them. fitness() must have answered for them.
  void keep();
  // Makespan of the string, in the model's timing: requests of a task on one device form a batch. Above
  // `limit` it may be answered with kImpossible, as soon as it is known to be. Only what stands at the first
  // changed gene and behind it is timed again: O((V + E) requests) at worst.
  double fitness(double limit = kImpossible);
  std::vector<Batch> batches() const;
  const std::vector<uint32_t>& genes() const { return string_; }
  void set_genes(const std::vector<uint32_t>& genes);
  Random& random() { return random_; }

 private:
  struct Times {
    std::vector<double> finish;   // task x request
    std::vector<uint32_t> place;  // task x request
    std::vector<double> free;     // order place x device: before the place's task; one more place at the end
    std::vector<double> span;     // makespan of what stands before the place
  };
  void forget();

  const TaskModel& model_;
  Random random_;
  std::vector<uint32_t> order_, position_;  // tasks, breadth first or as the start has them; its inverse
  std::vector<uint32_t> string_;            // order place x request -> device
  std::vector<std::pair<size_t, uint32_t>> changed_;
  std::vector<double> rest_;  // TaskModel::least_rest()
  Times kept_, trial_;        // of the string as kept, and as it is from `from_` on
  size_t from_ = 0;           // 0 until something was kept
  bool timed_ = false;        // kept_ holds
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
