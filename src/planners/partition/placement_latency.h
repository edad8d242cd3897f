// Latency planners over PlacementUnits (PlacementOrder::kPieces). A split of units is a piece for each: 0..k*q-1, piece
// p being the (p % q)-th of accelerator p / q, or k*q for the CPUs. An empty vector: nothing found. A move on
// ResNet-50's operators takes 500 instructions and timing the split 12,000; the evaluator takes 157,000.
#pragma once

#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/random.h"
#include "placement_load.h"
#include "placement_units.h"

namespace heddle {

// What latency planners work on. Its units have k*q accelerators and one CPU as devices, so that a piece's
// load is its duration (transfers in, work, transfers out).
struct LatencyProblem {
  LatencyProblem(const PlacementGraph& workload, int pieces);
  const PlacementGraph& workload;
  int pieces = 1;  // q
  PlacementUnits units;
  std::vector<int32_t> unit_of;  // of each node
  int32_t cpu() const { return units.accelerators; }
  PlacementSplit split(const std::vector<int32_t>& piece_of_unit) const;
};

// Latency under moves of units: durations are kept up to date, times are one pass. O(E of the unit) a move,
// O(V + E) a timing at worst.
class PlacementLatency {
 public:
  PlacementLatency(const LatencyProblem& problem, const std::vector<int32_t>& piece_of_unit);
  void move(int32_t unit, int32_t piece);
  // The piece of each unit.
  const std::vector<int32_t>& device() const { return loads_.device(); }
  double duration(int32_t piece) const { return loads_.load()[static_cast<size_t>(piece)]; }
  bool fits() const;  // memory of all accelerators
  const std::vector<int32_t>& units_in(int32_t piece) const { return members_[static_cast<size_t>(piece)]; }
  // Infinity when pieces wait for each other, or as soon as it is surely above the limit.
  double time(double limit);
  // When the piece began, after time() was finite.
  double start(int32_t piece) const { return start_[static_cast<size_t>(piece)]; }

 private:
  size_t vertex(int32_t node) const { return vertex_[static_cast<size_t>(node)]; }

  const LatencyProblem& problem_;
  PlacementLoads loads_;
  std::vector<std::vector<int32_t>> members_;  // units of each piece, the CPUs' too
  std::vector<int32_t> place_;                 // of each unit in its list
  std::vector<uint32_t> vertex_;               // of each node: its piece, or k*q + node on the CPUs
  std::vector<int32_t> entering_;         // of each vertex: edges from elsewhere; pieces: in their order too
  std::vector<int32_t> first_out_, out_;  // consumers of each node
  std::vector<int32_t> waiting_, ready_;
  std::vector<double> start_;
};

// Units in topological order, each piece filled until its memory is full, the rest on the CPUs; the better of
// that and everything on the CPUs is the caller's choice (upstream's greedy works likewise).
std::vector<int32_t> greedy_latency(const LatencyProblem& problem);

// Best split of one topological order into consecutive pieces and blocks on the CPUs, if each began when all
// before it is done: an upper bound of the latency that the exact timing then improves on. O(V^2 k + V E).
std::vector<int32_t> line_latency(const LatencyProblem& problem, const std::vector<int32_t>& order,
                                  const Deadline& deadline);

// Simulated annealing from `start`, which must be feasible. Deterministic for the seed when the deadline does
// not cut it. Returns `start` when nothing is better.
std::vector<int32_t> search_latency(const LatencyProblem& problem, const std::vector<int32_t>& start,
                                    const PlacementSearchOptions& options);

// No split with at most so many pieces an accelerator has a smaller latency. O(L^2 (V + k q)) for paths of
// length L.
double latency_bound(const PlacementGraph& workload, int pieces);

}  // namespace heddle
