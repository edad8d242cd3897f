// A placement problem (Transfers::kWithinRuns) in flat arrays, as the methods for placement workloads need it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/plan/evaluator.h"
#include "heddle/plan/placement_workload.h"
#include "heddle/plan/problem.h"

namespace heddle {

struct PlacementNode {
  double cpu = 0;          // time on a CPU
  double accelerator = 0;  // time on an accelerator
  double cost = 0;         // time to move the output between an accelerator and host memory, one direction
  double bytes = 0;        // occupied on an accelerator; CPUs have no limit
  int32_t colour = -1;     // nodes of one colour, 0.., share a device; -1: the node is free
  bool on_accelerator = true;  // false: it runs on CPUs only
  bool backward = false;       // of the training pass
};

// A node of each op. Times are microseconds.
struct PlacementGraph {
  std::string name;
  int accelerators = 0, cpus = 0;
  double accelerator_bytes = 0;  // memory of each accelerator; infinite: no limit
  std::vector<PlacementNode> nodes;
  std::vector<std::pair<int32_t, int32_t>> edges;  // node indices, each pair once, ascending
  std::vector<std::vector<int32_t>> out, in;       // consumers and producers of each node
  std::vector<int32_t> order;                      // topological; ties by index
  int32_t colours = 0;
};

struct PlacementSplit {
  // Of each node: 0..k-1 are the accelerators; k.. the CPUs. For latency all CPUs are one pool: k.
  std::vector<int32_t> device;
  // Latency: which piece of its accelerator, in their order from 0. Empty: all are in piece 0.
  std::vector<int32_t> piece;
};

class PlacementInstance {
 public:
  // Fails where accelerators, or CPUs, are not equal among each other, and for latency without a CPU or without
  // a limit of segments. The problem must outlive this.
  static Result<PlacementInstance> make(const Problem& problem);

  const Problem& problem() const { return *problem_; }
  const PlacementGraph& workload() const { return workload_; }
  bool is_latency() const { return problem_->objective == Objective::kLatency; }
  bool is_contiguous() const { return problem_->rules && problem_->rules->contiguous; }
  int pieces() const { return problem_->rules ? problem_->rules->most_segments : 0; }

  // Fails when pieces wait for each other.
  Result<Plan> plan_of(const PlacementSplit& split) const;
  // The evaluator's value of the split; nullopt when it has none, or the checker refuses its plan.
  std::optional<double> value_us(const PlacementSplit& split) const;

 private:
  const Problem* problem_ = nullptr;
  PlacementGraph workload_;
  std::vector<DeviceId> devices_;  // accelerators, then CPUs
};

}  // namespace heddle
