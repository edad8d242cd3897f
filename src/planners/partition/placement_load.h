// Max-load planners over PlacementUnits. All give devices of units; an empty vector: nothing found.
#pragma once

#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/random.h"
#include "placement_units.h"

namespace heddle {

// Load of the device that holds a growing set of units, with undo. O(nets of the unit) a step.
class PlacementSegment {
 public:
  explicit PlacementSegment(const PlacementUnits& units) : units_(units), count_(units.nets.size(), 0) {}
  void add(int32_t unit);
  void remove(int32_t unit);
  double work() const { return work_; }  // of an accelerator, without transfers
  double load() const { return work_ + transfer_; }
  double cpu() const { return cpu_; }
  double bytes() const { return bytes_; }
  int only_cpu() const { return only_cpu_; }  // units that cannot be on an accelerator

 private:
  template <int kSign>
  void change(int32_t unit);  // adds it, or removes it
  const PlacementUnits& units_;
  std::vector<int32_t> count_;  // of each net: its units in the set
  double work_ = 0, transfer_ = 0, cpu_ = 0, bytes_ = 0;
  int only_cpu_ = 0;
};

// All devices' loads under moves of units. O(nets of the unit) a move.
class PlacementLoads {
 public:
  PlacementLoads(const PlacementUnits& units, std::vector<int32_t> device);
  void move(int32_t unit, int32_t device);
  const std::vector<int32_t>& device() const { return device_; }
  const std::vector<double>& load() const { return load_; }
  const std::vector<double>& bytes() const { return bytes_; }
  const std::vector<int32_t>& cut() const { return cut_; }  // nets on several devices, in no order
  double max_load() const;
  bool fits() const;  // memory

 private:
  const PlacementUnits& units_;
  size_t devices_;
  void set_cut(int32_t net, bool cut);

  std::vector<int32_t> device_, count_, span_;  // count_: units of each net on each device
  std::vector<int32_t> cut_, place_in_cut_;     // place: -1 when it is whole
  std::vector<double> load_, bytes_;
};

// Units in their order, each to the device whose load is then least. Ignores memory only where nothing fits.
std::vector<int32_t> greedy_load(const PlacementUnits& units);

// The paper's linearisation (section 5.1.2, "DPL"): the best split of one order of the units into consecutive
// segments. Contiguous when the order is topological. O(V E + V^2 k c).
std::vector<int32_t> line_load(const PlacementUnits& units, const std::vector<int32_t>& order,
                               const Deadline& deadline);
// A topological order; depth first (children of the last unit first) or breadth first, ties by `random`.
std::vector<int32_t> random_order(const PlacementUnits& units, bool depth_first, Random& random);

// No split has a smaller max-load: fractional filling of all devices, and the best place of each unit.
double load_bound(const PlacementUnits& units);

// No split has a smaller max-load: minimum cuts around each unit, of which CPUs can take only so many. Values
// above `enough` are not distinguished. O(V) maximum flows; at the deadline fewer, and a weaker bound.
double cut_bound(const PlacementUnits& units, double enough, const Deadline& deadline);

struct PlacementSearchOptions {
  Deadline deadline;
  uint64_t seed = 1;
  int64_t moves = 0;  // of this round
  double heat = 0;    // first temperature, relative to the start's value
};
// Simulated annealing, contiguity not asked: the best split found from `start` (which must be allowed), or
// `start`. One to three changes at a time: a unit or a connected group across a border, two units exchanged, a
// unit anywhere. Deterministic for the seed when the deadline does not cut it.
std::vector<int32_t> search_load(const PlacementUnits& units, const std::vector<int32_t>& start,
                                 const PlacementSearchOptions& options);

struct IdealResult {
  std::vector<int32_t> device;  // empty: nothing is better than `above`
  bool exact = false;           // the search was complete: `device`, or else nothing below `above`, is best
};
// The paper's dynamic programme over ideals (section 5.1.1), exact for contiguous splits. Finds a best split
// whose max-load is below `above`. Gives up beyond `max_ideals` ideals or at the deadline.
IdealResult ideal_load(const PlacementUnits& units, double above, int64_t max_ideals,
                       const Deadline& deadline);

}  // namespace heddle
