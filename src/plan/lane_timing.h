// One lane's decisions, timed by events. Private to the builder.
#pragma once

#include <queue>
#include <vector>

#include "flat_graph.h"
#include "heddle/plan/builder.h"
#include "resource_map.h"

namespace heddle {

// What does not depend on the decisions; made once for several lanes or rounds.
struct TimingTables {
  explicit TimingTables(const Problem& p)
      : problem(p),
        flat(*p.graph),
        times(p),
        map(*p.cluster, p.execution),
        is_cold(p.objective == Objective::kColdLatency) {}
  const Problem problem;
  const FlatGraph flat;
  const RunTimes times;
  const ResourceMap map;
  const bool is_cold;
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
  };
  struct TimedStep {
    Step step;  // segments are numbered by runs()
    double start;
  };

  explicit LaneTiming(const TimingTables& tables) : t_(tables) {}
  Status time(const Assignment& assignment);

  // Segments in topological order, as the devices run them.
  const std::vector<Run>& runs() const { return runs_; }
  std::span<const OpId> ops_of(size_t run) const {
    return std::span<const OpId>(ops_).subspan(ops_begin_[run], ops_begin_[run + 1] - ops_begin_[run]);
  }
  size_t run_of(size_t op) const { return static_cast<size_t>(run_of_[op]); }
  // By start; ties in an order in which each step comes after what it needs.
  std::vector<TimedStep>& steps() { return steps_; }

 private:
  struct Request {
    double ready;
    uint32_t is_load;  // transfers first: somebody waits for them already
    uint32_t rank;     // loads: order of first use; transfers: producer
    uint32_t tensor;   // loads: the run
    int32_t to;
    bool operator>(const Request& o) const {
      if (ready != o.ready) return ready > o.ready;
      if (is_load != o.is_load) return is_load > o.is_load;
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
  Status sort_runs(const Assignment& a, std::vector<uint32_t>& place_of_last);
  Status fill_runs(const Assignment& a);
  Status link_runs();
  Status link_inputs(size_t r);
  void link_devices();
  void plan_loads();
  void add_wait(int32_t& head, size_t run) {
    waits_.push_back({head, static_cast<uint32_t>(run)});
    head = static_cast<int32_t>(waits_.size()) - 1;
    ++missing_[run];
  }
  void release(int32_t head, double at, bool elsewhere);
  void start_ready_runs();
  void start_run(size_t r);
  void serve(const Request& request);
  void issue_next_load(size_t chain, double at);
  void serve_load(const Request& request);
  double hold(const Way& way, double ready, double us);

  const TimingTables& t_;
  std::vector<Run> runs_;
  std::vector<uint32_t> ops_begin_;
  std::vector<OpId> ops_;
  std::vector<int32_t> run_of_;    // per op
  std::vector<uint32_t> missing_;  // per run: what it still waits for
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
  std::vector<int32_t> chain_of_device_;
  std::vector<double> free_at_;  // per resource
  std::vector<uint32_t> ready_;  // runs to start
  std::priority_queue<Request, std::vector<Request>, std::greater<>> requests_;
  std::vector<TimedStep> steps_;
};

}  // namespace heddle
