// One lane's decisions, timed by events. Private to the builder.
#pragma once

#include <memory>
#include <queue>
#include <vector>

#include "heddle/plan/builder.h"
#include "heddle/plan/flat_graph.h"
#include "resource_map.h"
#include "run_times.h"

namespace heddle {

inline Error bad_assignment(std::string why) { return invalid_input("assignment: " + std::move(why)); }

// What does not depend on the decisions; made once for several lanes or rounds.
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
    size_t first_place = 0;  // of its first op in the order: the rank of its load
    double us = 0;
    double start = 0, finish = 0;
    double ready_elsewhere = 0;  // the last input that comes from another device
    bool brings_params = false;  // cold: has a load step of its own
    bool host_access = false;    // its time and what it holds are those of direct host access
    int32_t load_route = -1;     // of its load: index into the assignment's routes
    // Runs of one stage follow each other; the first stands for all: it waits for what any of them needs, and
    // `start` and `us` of the others are not used.
    uint32_t stage_first = 0, stage_count = 1;  // the count at the first only
  };
  struct TimedStep {
    Step step;  // segments are numbered by runs()
    double start;
  };

  explicit LaneTiming(const TimingTables& tables) : t_(tables) {}
  Status time(const Assignment& assignment);  // which must outlive this

  // Segments in topological order, as the devices run them.
  const std::vector<Run>& runs() const { return runs_; }
  std::span<const OpId> ops_of(size_t run) const {
    return std::span<const OpId>(ops_).subspan(ops_begin_[run], ops_begin_[run + 1] - ops_begin_[run]);
  }
  size_t run_of(size_t op) const { return static_cast<size_t>(run_of_[op]); }
  // The stage of a run, numbered by its first run; -1: it runs alone.
  int32_t stage_of(size_t run) const {
    const size_t first = runs_[run].stage_first;
    return runs_[first].stage_count > 1 ? static_cast<int32_t>(first) : -1;
  }
  // By start; ties in an order in which each step comes after what it needs.
  std::vector<TimedStep>& steps() { return steps_; }

 private:
  static constexpr uint32_t kTransfer = 0, kHostRun = 1, kLoad = 2;
  struct Request {
    double ready;
    uint32_t kind;    // transfers first, somebody waits for them already; loads last, they come early
    uint32_t rank;    // loads: order of first use; transfers: producer; runs with host access: the run
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
  };  // a linked list of runs that wait for the same thing

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
  Status make_load_ways();
  const Way& load_way(size_t r) const {
    return own_load_ways_[r] ? own_load_ways_[r]->way : t_.map.load_way(runs_[r].device);
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
  // While runs are made: what is ordered as one, a stage or a segment alone.
  struct Unit {
    std::vector<uint32_t> segments;
    uint32_t last = 0;  // the place in the order of its last op
    int stage = -1;
  };
  std::vector<OpId> first_op_;  // per segment
  std::vector<Unit> units_;
  std::vector<uint32_t> unit_of_;     // per segment
  std::vector<uint32_t> unit_sizes_;  // in the order of runs; empty: no stages
  std::vector<uint32_t> missing_;     // per run: what it still waits for
  std::vector<Wait> waits_;
  std::vector<int32_t> after_run_;     // per run: runs that wait for it on its device (or one that overlaps)
  std::vector<int32_t> free_readers_;  // per run: readers that need no transfer
  // Per tensor the devices that it goes to, each with the runs that wait there.
  struct Arrival {
    int32_t next;
    int32_t to;
    int32_t waiting;
  };
  std::vector<int32_t> first_arrival_;  // per tensor
  std::vector<Arrival> arrivals_;
  // Loads (cold): chains of runs whose loads share a resource go one after another, in order of first use.
  std::vector<std::vector<uint32_t>> chains_;
  std::vector<size_t> chain_at_;
  std::vector<int32_t> load_waiting_;  // per run
  std::vector<int64_t> load_bytes_;
  std::vector<int32_t> chain_of_device_, chain_of_run_;
  struct OwnWay {
    Route route;
    std::vector<uint32_t> resources;
    Way way;
  };
  std::vector<std::unique_ptr<OwnWay>> own_load_ways_;  // per run; null: the cluster's way
  std::vector<double> free_at_;                         // per resource
  std::vector<uint32_t> ready_;                         // runs to start
  std::priority_queue<Request, std::vector<Request>, std::greater<>> requests_;
  std::vector<TimedStep> steps_;
};

}  // namespace heddle
