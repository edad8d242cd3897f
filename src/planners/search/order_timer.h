// The general timer: the makespan of one lane's decisions, ops as segments of their own. It gives the very number
// that builder and evaluator give, many thousand times a second. Decisions that surely exceed a limit are given
// up early.
#pragma once

#include <vector>

#include "core/flat_problem.h"
#include "timer.h"

namespace heddle {

class OrderTimer {
 public:
  using Time = double;

  explicit OrderTimer(const FlatProblem& flat);

  // Infinity when it would exceed `limit_us`, or when the decisions are impossible. Before place `from` of
  // the order they must be those of the last call that was kept; 0 is always right. Follow with keep() or
  // drop().
  double time(const FlatPlan& plan, double limit_us, size_t from = 0);
  void keep();
  void drop();
  // Of each op in the plan timed last, when that was not given up.
  const std::vector<double>& starts() const { return start_; }
  const std::vector<double>& finishes() const { return finish_; }

  // The ops that determine the makespan of the plan, last to first. `behind[i]`: the op that ops[i] waited
  // for on its device (or on one that shares cores), UINT32_MAX when it waited for data.
  struct Critical {
    std::vector<uint32_t> ops, behind;
  };
  Critical critical(const FlatPlan& plan);

 private:
  struct ResourceRequest {
    double ready;
    uint64_t rank;  // loads after transfers; then the builder's order
    uint32_t to;
    bool operator<(const ResourceRequest& o) const {  // for a max-heap: the least request on top
      if (ready != o.ready) return ready > o.ready;
      return rank != o.rank ? rank > o.rank : to > o.to;
    }
  };
  struct WaitingOp {
    int32_t next;
    uint32_t op;
  };

  double time_in_order(const FlatPlan& plan, double limit_us, size_t from);
  double time_by_events(const FlatPlan& plan, double limit_us);
  bool link_ops(const FlatPlan& plan);
  bool plan_loads(const FlatPlan& plan);
  void add_wait(int32_t& head, uint32_t op);
  void release(int32_t head, double at);
  void arrive(uint32_t op, double at);
  bool start_ready(const FlatPlan& plan, double limit_us);
  void push(const ResourceRequest& request);
  void issue_next_load(size_t chain, double at);
  void serve_load(const FlatPlan& plan, const ResourceRequest& request);
  void serve_transfer(const FlatPlan& plan, const ResourceRequest& request);
  double hold(const RoutedTransfer& way, double ready, double us);

  const FlatProblem& flat_;
  const bool by_events_;
  std::vector<double> after_;           // per op: the least time from its end to the end of the graph
  std::vector<double> start_, finish_;  // per op
  double makespan_ = 0;
  // In order: the state of the devices before every kBlock-th place, of the kept decisions and of those being
  // timed.
  std::vector<double> kept_state_, state_;
  size_t first_block_ = 0, last_block_ = 0;
  struct OldTimes {
    uint32_t op;
    double start, finish;
  };
  std::vector<OldTimes> old_;
  std::vector<double> free_;
  // By events.
  std::vector<uint32_t> missing_, ready_, place_;
  std::vector<WaitingOp> waits_;
  std::vector<int32_t> after_op_, load_waiting_, last_on_;
  std::vector<double> arrival_, resource_free_;
  std::vector<ResourceRequest> requests_;
  std::vector<int64_t> load_bytes_;
  std::vector<int32_t> brought_, chain_of_device_, chain_of_resource_;
  std::vector<std::vector<uint32_t>> chains_;
  std::vector<size_t> chain_at_;
};
static_assert(Timer<OrderTimer, FlatPlan>);

}  // namespace heddle
