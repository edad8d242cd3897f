// The workers of the planner auto: what they do with their time, alone or side by side.
#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "core/flat_problem.h"
#include "core/plan_store.h"
#include "heddle/plan/relaxation.h"

namespace heddle {

// Searches and proves on one problem. With one thread the tasks follow each other, and the outcome depends on
// the seed alone unless the deadline cuts a task short; with several, one thread proves (linear program,
// modules, CP-SAT on the whole model) while the others search, all from and to one store.
class AutoWorkers {
 public:
  // `starts`: where the first local search begins, beside the store's best. The problem and the options must
  // outlive it; options.progress hears of the store's best and bound.
  AutoWorkers(const Problem& problem, const PlannerOptions& options, std::vector<Plan> starts,
              PlanStore& store, CancelToken closed);
  // Until there is nothing left to gain or to try, or the deadline.
  StopReason run();
  std::map<std::string, double> counters() const { return counters_; }

 private:
  bool open(const Deadline& deadline) const { return !deadline.should_stop() && store_.is_open(); }
  Deadline part(const Deadline& deadline, double share, double most_s = kImpossible) const;
  PlannerOptions quiet(const Deadline& deadline, uint64_t seed) const;
  void count(const std::string& name, double value);

  void run_planner_named(const std::string& name, const Deadline& deadline, uint64_t seed);
  void run_planner_named(const std::string& name, PlannerOptions o);
  const Relaxation& relaxation(const Deadline& deadline);
  void cuts(const Deadline& deadline);
  void with_stages();
  // The start of the planners that solve the whole graph, so that none of them is ahead by it.
  void start_of_programs(const Deadline& deadline);
  void combinatorial_bound(const Deadline& deadline);
  void linear_program(const Deadline& deadline);
  bool has_modules() const;
  double modules_share() const;
  bool proves_whole() const;
  // Slices that double until one solves the model, the gap is closed or the time is over; every other one
  // without linear programs.
  void prove_whole(const Deadline& deadline, int threads, double slice);
  bool cp_slice(const Deadline& deadline, int threads, bool linear_relaxation);
  void local_search(const Deadline& deadline, uint64_t seed);
  void large_neighbourhoods(const Deadline& deadline, uint64_t seed);
  void search(const Deadline& deadline, uint64_t seed, bool first);
  void throughput_programs(const Deadline& deadline);
  void batches(const Deadline& deadline, uint64_t seed, bool modules);

  void one_after_another();
  void batches_one_after_another();
  void side_by_side();
  void prover(const Deadline& deadline);
  void report() const;

  const Problem& problem_;
  const PlannerOptions& options_;
  std::vector<Plan> starts_;
  PlanStore& store_;
  const CancelToken closed_;
  const FlatProblem flat_;
  std::optional<Relaxation> relaxation_;
  bool batched_ = false;
  mutable std::mutex report_mutex_;
  std::mutex mutex_;  // of counters_ and starts_
  std::map<std::string, double> counters_;
};

}  // namespace heddle
