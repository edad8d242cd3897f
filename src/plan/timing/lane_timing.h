// Times one lane's decisions by event simulation. Private to the builder.
#pragma once

#include <optional>
#include <queue>
#include <vector>

#include "heddle/plan/builder.h"
#include "heddle/plan/flat_graph.h"
#include "heddle/plan/resource_map.h"
#include "run_times.h"

namespace heddle {

inline Error bad_assignment(std::string why) { return invalid_input("assignment: " + std::move(why)); }

// Tables that do not depend on the decisions; built once for several lanes or rounds.
struct TimingTables {
  explicit TimingTables(const Problem& p)
      : problem(p),
        flat(*p.graph),
        times(problem),
        map(*p.cluster, p.execution),
        is_cold(p.objective == Objective::kColdLatency),
        has_given_times(p.execution.transfers == Transfers::kGiven) {}
  const Problem problem;
  const FlatGraph flat;
  const RunTimes times;
  const ResourceMap map;
  const bool is_cold;
  const bool has_given_times;  // Transfers::kGiven
};

class LaneTiming {
 public:
  struct Run {
    DeviceId device;
    size_t first_place = 0;  // place of its first op in the order: the rank of its load
    double us = 0;
    double start = 0, finish = 0;
    double ready_elsewhere = 0;  // arrival of the last input from another device
    bool brings_params = false;  // cold: the run has a load step of its own
    bool host_access = false;    // direct host access sets its time and the links that it holds
    int32_t load_route = -1;     // route of its load: index into the assignment's routes
    // Runs of one stage are adjacent; the first represents all. It waits for the inputs of every member;
    // `start` and `us` of the others are unused.
    uint32_t stage_first = 0, stage_count = 1;  // the count is set only at the first
  };
  struct TimedStep {
    Step step;  // Step::segment is an index into runs()
    double start;
  };

  explicit LaneTiming(const TimingTables& tables) : t_(tables) {}
  Status time(const Assignment& assignment);  // `assignment` must outlive this

  // Segments in topological order, the order in which devices run them.
  const std::vector<Run>& runs() const { return runs_; }
  std::span<const OpId> ops_of(size_t run) const {
    return std::span<const OpId>(ops_).subspan(ops_begin_[run], ops_begin_[run + 1] - ops_begin_[run]);
  }
  size_t run_of(size_t op) const { return static_cast<size_t>(run_of_[op]); }
  // The stage of a run, named by the index of its first run; -1: it runs alone.
  int32_t stage_of(size_t run) const {
    const size_t first = runs_[run].stage_first;
    return runs_[first].stage_count > 1 ? static_cast<int32_t>(first) : -1;
  }
  // Sorted by start; ties keep each step after those that it depends on.
  std::vector<TimedStep>& steps() { return steps_; }

 private:
  static constexpr uint32_t kTransfer = 0, kHostRun = 1, kLoad = 2;
  struct Request {
    double ready;
    uint32_t kind;    // tie order: transfers (readers wait), host runs, loads (ahead of use)
    uint32_t rank;    // loads: order of first use; transfers: producer; host access: the run
    uint32_t tensor;  // loads: the run
    int32_t to;
    bool operator>(const Request& o) const {
      if (ready != o.ready) return ready > o.ready;
      if (kind != o.kind) return kind > o.kind;
      if (rank != o.rank) return rank > o.rank;
      return tensor != o.tensor ? tensor > o.tensor : to > o.to;
    }
  };
  struct Wait {
    int32_t next;
    uint32_t run;
  };  // linked list of runs that wait for the same event

  Status check_ops(const Assignment& a);
  Status make_runs(const Assignment& a);
  Status make_singles(const Assignment& a);
  Status find_stages(const Assignment& a, const std::vector<uint32_t>& place_of_last);
  Status sort_runs(const Assignment& a);
  void place_unit(const std::vector<uint32_t>& segments, const std::vector<std::vector<OpId>>& members,
                  std::vector<int32_t>& place);
  void time_stages();
  Status fill_runs(const Assignment& a);
  void add_moves();
  Status link_runs();
  Status link_inputs(size_t r);
  void link_devices();
  Status plan_loads();
  Status plan_load(uint32_t r, std::vector<int32_t>& chain_of_resource);
  Status find_own_loads();
  const RoutedTransfer& load_of(size_t r) const {
    return own_loads_[r] ? *own_loads_[r] : t_.map.load(runs_[r].device);
  }
  void add_wait(int32_t& head, size_t member) {
    const uint32_t run = runs_[member].stage_first;
    waits_.push_back({head, run});
    head = static_cast<int32_t>(waits_.size()) - 1;
    ++missing_[run];
  }
  void release(int32_t head, double at, bool elsewhere);
  void start_ready_runs();
  void start_run(size_t first);
  void finish_run(size_t r);
  void serve(const Request& request);
  void issue_next_load(size_t chain, double at);
  void serve_load(const Request& request);
  void serve_host_run(size_t r);
  Status set_cold_choices(const Assignment& a);
  double hold(std::span<const uint32_t> resources, double ready, double us);

  const TimingTables& t_;
  const Assignment* assignment_ = nullptr;
  std::vector<Run> runs_;
  std::vector<uint32_t> ops_begin_;
  std::vector<OpId> ops_;
  std::vector<int32_t> run_of_;  // per op
  // Used while runs are made: a stage, or a segment that runs alone; ordered as one.
  struct Unit {
    std::vector<uint32_t> segments;
    uint32_t last = 0;  // place in the order of its last op
    int stage = -1;
  };
  std::vector<OpId> first_op_;  // per segment
  std::vector<Unit> units_;
  std::vector<uint32_t> unit_of_;     // per segment
  std::vector<uint32_t> unit_sizes_;  // in run order; empty: no stages
  std::vector<uint32_t> missing_;     // per run: number of events that it still waits for
  std::vector<Wait> waits_;
  std::vector<int32_t> after_run_;     // per run: runs after it on its device or on an overlapping one
  std::vector<int32_t> free_readers_;  // per run: readers that need no transfer
  // Per tensor, the devices that it is sent to, each with the runs that wait for it there.
  struct Arrival {
    int32_t next;
    int32_t to;
    int32_t waiting;
  };
  std::vector<int32_t> first_arrival_;  // per tensor
  std::vector<Arrival> arrivals_;
  // Loads (cold): runs whose loads share a resource form a chain and go one after another, by first use.
  std::vector<std::vector<uint32_t>> chains_;
  std::vector<size_t> chain_at_;
  std::vector<int32_t> load_waiting_;  // per run
  std::vector<int64_t> load_bytes_;
  std::vector<int32_t> chain_of_device_, chain_of_run_;
  std::vector<std::optional<RoutedTransfer>> own_loads_;  // per run; none: over the cluster's own route
  std::vector<std::vector<uint32_t>> own_resources_;      // of these
  std::vector<double> free_at_;                           // per resource
  std::vector<uint32_t> ready_;                           // runs that can start
  std::priority_queue<Request, std::vector<Request>, std::greater<>> requests_;
  std::vector<TimedStep> steps_;
};

}  // namespace heddle
