// A cold start in one sequence of decisions, timed as the evaluator times the plan that they stand for: what
// cold-search searches over, and how sortinghat's slots become a plan. The general timer does not serve here: loads
// have an order of their own. A move on GPT-2 large (217 units, four unequal V100) takes 154,000 instructions, the
// evaluator 756,000 for the whole plan, which would have to be built first.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/flat_problem.h"
#include "heddle/plan/plan.h"
#include "lists/list_schedule.h"

namespace heddle {

// Ways for parameters into each device, and times with direct host access. The problem must outlive it.
class ColdTables {
 public:
  struct LoadWay {
    RoutedTransfer way;
    std::vector<uint32_t> resources;
    std::vector<Hop> hops;  // empty: the cluster's own route
    int32_t helper = -1;    // the device whose bus it uses; -1: its own
  };

  // The devices must not share cores, and be at most kMostDevices.
  ColdTables(const Problem& problem, std::vector<DeviceId> devices);
  static constexpr size_t kMostDevices = 250;

  const FlatProblem& flat() const { return flat_; }
  // The first is the cluster's own; none where there is no route. Of helpers with one bus only the first
  // counts.
  const std::vector<LoadWay>& ways(size_t device) const { return ways_[device]; }
  // Infinite where the op cannot, or has no parameters.
  double in_place_us(size_t op, size_t device) const {
    return in_place_us_[op * flat_.num_devices() + device];
  }
  const std::vector<uint32_t>& in_place_resources(size_t device) const { return in_place_resources_[device]; }
  bool has_params(size_t op) const { return !flat_.params(op).empty(); }

 private:
  void add_ways(size_t device);

  const FlatProblem flat_;
  std::vector<std::vector<LoadWay>> ways_;
  std::vector<double> in_place_us_;
  std::vector<std::vector<uint32_t>> in_place_resources_;
};

// Of an op's parameters: read in place, not loaded.
inline constexpr uint8_t kInPlace = 255;

struct ColdDecisions {
  ColdDecisions() = default;
  explicit ColdDecisions(size_t num_ops) : device(num_ops, 0), way(num_ops, 0), lead(num_ops, 0) {}

  std::vector<uint32_t> order;  // all ops, topological
  std::vector<uint8_t> device;  // per op, the flat problem's number
  std::vector<uint8_t> way;     // per op: an index into ways(device), or kInPlace
  std::vector<uint32_t> lead;   // per op: by how many places of the order its load comes before its run
};

// Per op in turn: loads that are due, transfers of its inputs, its run; each as early as what it needs is
// there and what it holds is free. Not thread-safe.
class ColdTimer {
 public:
  explicit ColdTimer(const ColdTables& tables);

  // The makespan; infinite when an op cannot run where it is, or something cannot get there. O(V + E).
  double time(const ColdDecisions& decisions);
  // Of the decisions timed last: bytes of parameters above the pools' limits less `reserve` (per pool).
  double excess_bytes(const Reserve& reserve) const;
  double finish_us(size_t op) const { return finish_[op]; }
  double start_us(size_t op) const { return start_[op]; }
  double mean_finish_us() const;
  // Ops on whose run or load the end waited, last first: a critical path.
  std::vector<uint32_t> critical_ops() const;
  // The plan, for the evaluator; the decisions must be timed with a finite makespan.
  Plan plan(const ColdDecisions& decisions);

  // Step by step, for constructions: begin(), then each op in topological order.
  void begin();
  // When the op would end there; infinite where it cannot. Changes nothing.
  double try_op(uint32_t op, uint8_t device, uint8_t way);
  double place(uint32_t op, uint8_t device, uint8_t way);
  // Time for which the last try or place held buses and links for the op's parameters.
  double held_us() const { return held_us_; }

 private:
  struct Clock {
    double free_at = 0;
    int32_t by = -1;  // op, whose run (or, from num_ops on, whose load) held it last
  };
  // Undone by rollback() while something is only tried.
  template <class T>
  void set(T& at, T value) {
    if (trying_) undo_.push_back([&at, old = at] { at = old; });
    at = value;
  }
  bool load(uint32_t op, uint8_t device, uint8_t way);
  double run(uint32_t op, uint8_t device, uint8_t way);
  void wait(double at, int32_t cause, double& ready, int32_t& why) const {
    if (at > ready) {
      ready = at;
      why = cause;
    }
  }
  void rollback();

  const ColdTables& tables_;
  const FlatProblem& flat_;
  const size_t n_, k_;
  std::vector<Clock> clocks_, device_clocks_;
  std::vector<double> param_at_;  // pool x param; negative: absent
  std::vector<int32_t> param_by_;
  std::vector<double> arrival_;  // tensor x device; negative: not sent
  std::vector<double> start_, finish_;
  std::vector<uint8_t> device_;
  std::vector<int32_t> why_;  // per op, then per op's load: what it waited for last
  std::vector<int64_t> pool_bytes_;
  std::vector<int32_t> due_, next_due_;  // per place: loads to issue, in order
  std::vector<uint32_t> place_;
  bool trying_ = false;
  std::vector<std::function<void()>> undo_;
  double makespan_ = 0, held_us_ = 0;
  // While a plan is written.
  Plan* plan_ = nullptr;
  std::vector<std::vector<int32_t>> route_numbers_;  // device x way
  std::vector<int32_t> segment_of_;
};

// The decisions of a plan of one lane over these devices; nullopt when it uses others, or stages. A segment's
// ops follow each other.
std::optional<ColdDecisions> cold_decisions(const ColdTables& tables, const Plan& plan);

}  // namespace heddle
