// The steps of portfolios that search and prove on any problem: auto, cp-sat and lns are tables of them.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/flat_problem.h"
#include "core/portfolio.h"
#include "heddle/plan/relaxation.h"

namespace heddle {

// All steps take plans from one store and offer what they find to it. Those that search may run on several
// threads; those that prove share a relaxation and belong to one thread.
class PlanSteps {
 public:
  // `name` is shown with progress. `starts`: where the first local search begins, beside the store's best.
  // The problem, the options and the store must outlive it.
  PlanSteps(std::string name, const Problem& problem, const PlannerOptions& options, std::vector<Plan> starts,
            PlanStore& store);

  bool is_open(const Deadline& deadline) const { return !deadline.should_stop() && store_.is_open(); }
  std::string standing() const { return standing_text(store_); }
  // The store's best and bound go to options.progress.
  void report() const;
  StopReason stop() const;
  std::map<std::string, double> counters() const { return counters_; }
  void count(const std::string& name, double value);

  // Batches of requests: known segments of several requests' ops.
  bool is_batched() const { return batched_; }
  bool has_modules() const;
  double modules_share() const;  // of the time
  bool fits_cp_sat() const;
  bool is_solved() const { return solved_; }          // by CP-SAT on the whole model
  bool has_searched() const { return lns_has_run_; }  // large neighbourhoods

  // Another planner, from the store's best plan.
  void planner(const std::string& name, const Deadline& deadline, uint64_t seed);
  void planner(const std::string& name, PlannerOptions o);
  // The start of the planners that solve the whole graph, so that none of them is ahead by it.
  void start_of_programs(const Deadline& deadline);
  void quick_bound(const Deadline& deadline);
  void combinatorial_bound(const Deadline& deadline);
  void cuts(const Deadline& deadline);
  void linear_program(const Deadline& deadline);
  // CP-SAT on the whole model, with or without linear programs inside.
  void cp_sat(const Deadline& deadline, int threads, bool linear);
  // Slices of CP-SAT that double until one solves the model, the gap is closed or the time is over; every
  // other one without linear programs.
  void cp_sat_slices(const Deadline& deadline, int threads, double slice);
  void local_search(const Deadline& deadline, uint64_t seed, int threads = 1);
  void large_neighbourhoods(const Deadline& deadline, uint64_t seed);
  // Turns at large neighbourhoods and local search (throughput: at numbers of lanes, too; batches: at modules
  // and annealing), until several in a row gain nothing.
  void search(const Deadline& deadline, uint64_t seed);

 private:
  Deadline part(const Deadline& deadline, double share, double most_s = kImpossible) const;
  PlannerOptions quiet(const Deadline& deadline, uint64_t seed) const;
  const Relaxation& relaxation(const Deadline& deadline);
  // Lanes of equal share (data parallelism), each with devices of its own choice for every op (model
  // parallelism): copies of the graph side by side as one lane, improved by local search and large
  // neighbourhoods from the store's best and a greedy plan. Does nothing on graphs that would become too large.
  void search_lanes(const Deadline& deadline, uint64_t seed, int lanes);
  void search_turn(const Deadline& deadline, uint64_t seed, size_t turn, int idle);

  // What steps report on the way is shown as the portfolio's best.
  class ProgressRelay final : public ProgressSink {
   public:
    explicit ProgressRelay(const PlanSteps& steps) : steps_(steps) {}
    void report(const ProgressUpdate&) override { steps_.report(); }

   private:
    const PlanSteps& steps_;
  };

  const std::string name_;
  const Problem& problem_;
  const PlannerOptions& options_;
  mutable ProgressRelay relay_{*this};
  std::vector<Plan> starts_;
  PlanStore& store_;
  const FlatProblem flat_;
  std::optional<Relaxation> relaxation_;
  bool batched_ = false, solved_ = false;
  std::atomic<bool> lns_has_run_ = false;
  mutable std::mutex report_mutex_;
  std::mutex mutex_;  // of counters_ and starts_
  std::map<std::string, double> counters_;
};

// A whole planner: a table of these steps, from the starting plans.
Result<PlannerOutput> plan_by_steps(const std::string& name, const Problem& problem,
                                    const PlannerOptions& options,
                                    const std::function<PortfolioSteps(PlanSteps&)>& table);

}  // namespace heddle
