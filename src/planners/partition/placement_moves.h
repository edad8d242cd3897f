// Moves of units between devices, which the annealings of placement workloads share.
#pragma once

#include <utility>
#include <vector>

#include "heddle/base/random.h"
#include "placement_units.h"
#include "search/anneal.h"

namespace heddle {

// `State` has device(), of each unit, and move(unit, device).
template <class State>
class UnitMoves : public AnnealSearch {
 public:
  // For anneal().
  void undo() {
    for (; !moved_.empty(); moved_.pop_back()) state_.move(moved_.back().first, moved_.back().second);
  }

 protected:
  UnitMoves(const PlacementUnits& units, State state, uint64_t seed)
      : units_(units), random_(seed), state_(std::move(state)), mark_(units.size(), 0) {}

  // Uniform but for a part in 2^32: divisions for an exact one would cost as much as a change.
  uint64_t pick(uint64_t n) { return ((random_.next() >> 32) * n) >> 32; }
  int32_t any_unit() { return static_cast<int32_t>(pick(units_.size())); }
  int32_t device(int32_t unit) const { return state_.device()[at(unit)]; }

  void begin_move() { moved_.clear(); }
  bool put(int32_t unit, int32_t device) {
    const auto from = this->device(unit);
    if (from == device || !units_.allowed(unit, device)) return false;
    moved_.emplace_back(unit, from);
    state_.move(unit, device);
    return true;
  }
  bool put_group(int32_t device) {
    bool moved = false;
    for (const auto unit : group_) moved |= put(unit, device);
    return moved;
  }

  void begin_group(int32_t unit) {
    ++stamp_;
    group_.assign(1, unit);
    mark_[at(unit)] = stamp_;
  }
  // The unit joins where it is on that device and not yet in the group.
  void gather(int32_t unit, int32_t here) {
    if (mark_[at(unit)] == stamp_ || device(unit) != here) return;
    mark_[at(unit)] = stamp_;
    group_.push_back(unit);
  }
  // A connected group of units of one device, grown from `unit` along nets of at least that cost.
  void gather_connected(int32_t unit, size_t most, double least_cost) {
    const auto here = device(unit);
    begin_group(unit);
    for (size_t i = 0; i < group_.size() && group_.size() < most; ++i) {
      for (const auto net : units_.nets_of[at(group_[i])]) {
        if (units_.nets[at(net)].cost < least_cost) continue;
        for (const auto pin : units_.nets[at(net)].pins)
          if (group_.size() < most) gather(pin, here);
      }
    }
  }

  const PlacementUnits& units_;
  Random random_;
  State state_;
  std::vector<int32_t> group_;

 private:
  std::vector<std::pair<int32_t, int32_t>> moved_;  // by the move being tried: unit, its old device
  std::vector<int64_t> mark_;
  int64_t stamp_ = 0;
};

}  // namespace heddle
