// The methods of the search on flows: first decisions, annealing, exact blocks and a constraint program.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "flow_instance.h"
#include "heddle/base/cancel.h"

namespace heddle {

// Feasible decisions: each device alone that can hold everything, list schedules by falling rank (HEFT with
// ports) and, where memory is tight, what packs best. Empty when nothing was found that fits.
// O(devices * flows) each.
std::vector<FlowDecisions> construct_flows(const FlowWorkload& workload);

struct FlowAnnealOptions {
  Deadline deadline;
  uint64_t seed = 1;
  int64_t target = 0;              // a proven bound: nothing below it is looked for
  int64_t moves = 0;               // at most so many in all; 0: until the deadline
  int idle_rounds = 0;             // ends after so many rounds without a better schedule; 0: not
  std::vector<uint8_t> fixed;      // per op: its device stays; empty: none
  std::function<void()> on_round;  // may be empty
};

struct FlowAnnealResult {
  FlowDecisions best;
  int64_t moves = 0;
};

// Rounds of annealing of doubling length, from hot to cold, each from the best so far. The start must be
// feasible. Deterministic for a seed and a number of moves.
FlowAnnealResult anneal_flows(const FlowWorkload& workload, FlowDecisions start,
                              const FlowAnnealOptions& options);

struct FlowCpOptions {
  Deadline deadline;
  double work = std::numeric_limits<double>::infinity();  // as in SolveOptions
  uint64_t seed = 1;
  int threads = 1;
  std::vector<int32_t> device;         // per op, or kAnyDevice; empty: all free
  const FlowSchedule* hint = nullptr;  // feasible; also the limit of what is looked for
  int64_t at_least = 0;                // a proven bound
  std::optional<int64_t> wanted;       // only schedules below this
};

struct FlowCpResult {
  std::optional<FlowSchedule> schedule;  // better than the hint; evaluated again
  int64_t bound = 0;                     // proven for the workload with those devices
};

// Order by start of a feasible schedule: evaluating it gives no later starts. O(tasks log tasks).
FlowDecisions decisions_of(const FlowWorkload& workload, const FlowSchedule& schedule);

// Fails when the solver does.
Result<FlowCpResult> solve_flows(const FlowWorkload& workload, const FlowCpOptions& options);

struct FlowBlockOptions {
  Deadline deadline;
  // As in SolveOptions, of the solves that prove nothing. If it is finite, solves are cut by work and not by time.
  double work = std::numeric_limits<double>::infinity();
  uint64_t seed = 1;
  int threads = 1;
  std::function<void(int64_t best, int64_t bound, const std::string& claimed_by)> on_progress;
};

struct FlowBlockResult {
  std::optional<FlowSchedule> schedule;  // better than the start
  int64_t bound = 0;
  std::string claimed_by;                      // the solver that vouches for the bound; empty: it is proven
  int64_t blocks = 0, solves = 0, proven = 0;  // proven: solves that ended with a proof
};

// Where memory binds nowhere, the best makespan is a shortest path over the serial ops and their devices,
// each block's length between two of them being a small problem of its own. Blocks begin with a combinatorial
// bound and are solved (CP-SAT) only where the shortest path uses them, until its length is proven or the
// deadline has come. nullopt when there are no blocks to gain from (memory binds, or fewer than two).
Result<std::optional<FlowBlockResult>> solve_by_blocks(const FlowWorkload& workload,
                                                       const FlowSchedule& start,
                                                       const FlowBlockOptions& options);

}  // namespace heddle
