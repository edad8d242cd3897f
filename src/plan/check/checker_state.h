// The checker's own view of a plan. Private to the checker: shares nothing with evaluator, builder or
// planners.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "heddle/plan/checker.h"

namespace heddle {

class PlanChecker {
 public:
  PlanChecker(const Problem& problem, const Plan& plan, const Timeline& timeline)
      : problem_(problem),
        graph_(*problem.graph),
        cluster_(*problem.cluster),
        plan_(plan),
        timeline_(timeline) {}
  CheckReport run(std::optional<double> bound_us);

 private:
  using ResourceKey = std::tuple<int, int, int, int>;  // lane, kind of resource, number, direction or core
  struct Interval {
    double start, finish;
    size_t step;
  };
  struct CheckedRoute {
    bool ok = false;
    double bytes_per_s = 0, latency_us = 0;
    std::vector<Hop> hops;
  };
  struct LiveInterval {
    int lane, tensor, pool;
    double start, finish;
  };

  // Structure (checker.cc).
  bool check_ids();
  bool check_shares();
  void check_segment_ids(size_t s);
  void check_segment_flags(size_t s);
  void check_step_ids(size_t i);
  void check_ops_once();
  void check_runs();
  void check_stages();
  void check_quotient();
  void check_devices();
  void index_transfers();
  void index_loads();
  // Rules of placement and transfers within runs (checker_placement.cc).
  void check_rules();
  void check_colours();
  void check_contiguous();
  void check_segment_counts();
  double moves_us(size_t i);
  // Times (checker_times.cc).
  double alone_us(const Segment& segment) const;
  double run_us(size_t i) const;
  double transfer_sharing(const CheckedRoute& route) const;
  bool in_one_stage(size_t i, size_t j) const;
  void check_steps();
  void check_run(size_t i);
  void check_transfer(size_t i);
  void check_load(size_t i);
  void check_duration(size_t i, double expected);
  void need(size_t i, int64_t before, const std::string& what);
  void need_tensor(size_t i, TensorId tensor);
  bool may_pass(NodeId node) const;
  CheckedRoute route_of(size_t i, const Route* by_default, NodeId from, NodeId to);
  void occupy_route(size_t i, const CheckedRoute& route);
  void occupy_host_access(size_t i);
  using Places = std::set<std::tuple<int, int, int>>;  // kind, number, direction
  void add_links(const std::vector<Hop>& hops, Places& used) const;
  void occupy(size_t i, int kind, int number, int detail);
  void check_overlaps();
  void check_totals();
  // Memory (checker_memory.cc).
  void check_memory();
  void live_in_run(size_t i, std::vector<LiveInterval>& live);
  void check_peak(size_t pool, int64_t peak);
  std::vector<int64_t> activation_peaks();
  int64_t inner_peak(const Segment& segment) const;
  bool leaves(const Segment& segment, TensorId tensor) const;
  void live_params(std::vector<std::tuple<int, double, double, int64_t>>& live) const;
  int64_t param_bytes(int pool) const;

  void report(Violation kind, std::string message);
  static double tolerance(double us) { return std::max(1e-6, 1e-9 * std::abs(us)); }
  const Segment& segment_of(size_t step) const { return plan_.segments[plan_.steps[step].segment.index()]; }
  std::string step_text(size_t step) const;
  bool free_between(DeviceId a, DeviceId b) const;
  bool loads_needed(DeviceId d) const { return is_cold() && cluster_.device(d).kind != DeviceKind::kCpu; }
  bool is_resident(int pool, ParamId p) const {
    const auto& all = problem_.resident;
    return !all.empty() &&
           std::count(all[static_cast<size_t>(pool)].begin(), all[static_cast<size_t>(pool)].end(), p) > 0;
  }
  bool has_given_times() const { return problem_.execution.transfers == Transfers::kGiven; }
  bool moves_within_runs() const { return problem_.execution.transfers == Transfers::kWithinRuns; }
  bool is_cold() const { return problem_.objective == Objective::kColdLatency; }

  const Problem& problem_;
  const Graph& graph_;
  const Cluster& cluster_;
  const Plan& plan_;
  const Timeline& timeline_;
  CheckReport report_;
  double makespan_ = 0;
  std::vector<bool> is_output_;
  std::array<int, 16> reported_{};
  std::vector<std::vector<int>> place_;                      // [lane][op]: segment, -1
  std::vector<int64_t> run_step_;                            // per segment, -1
  std::map<int32_t, std::vector<size_t>> stages_;            // number -> run steps, ascending
  std::map<std::tuple<int, int, int>, size_t> transfer_to_;  // (lane, tensor, device) -> step
  std::map<std::pair<int, int>, size_t> load_of_;            // (pool, param) -> step
  std::vector<int64_t> load_bytes_;                          // per step
  std::map<ResourceKey, std::vector<Interval>> intervals_;
  std::map<std::tuple<int, int, int>, double> load_us_;  // (kind, number, detail): us per request
  std::map<std::pair<int, int>, int> core_users_;        // (host, core) -> devices
  std::set<std::pair<int, int>> moved_in_;               // throughput, within runs: (tensor, device)
};

}  // namespace heddle
