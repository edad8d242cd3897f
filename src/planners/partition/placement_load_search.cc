// Simulated annealing over devices of units for max-load. The energy is what exceeds a target a little below
// the best max-load so far, plus a light weight on all accelerators' load.
#include <algorithm>
#include <cmath>

#include "placement_load.h"
#include "placement_moves.h"

namespace heddle {
namespace {

constexpr double kHopeless = 0.1;  // of the start's max-load

class MaxLoadSearch : public UnitMoves<PlacementLoads> {
 public:
  MaxLoadSearch(const PlacementUnits& units, const std::vector<int32_t>& start,
                const PlacementSearchOptions& options)
      : UnitMoves(units, PlacementLoads(units, start), options.seed), options_(options), best_(start) {
    best_value_ = state_.fits() ? state_.max_load() : std::numeric_limits<double>::infinity();
    scale_ = std::max(state_.max_load(), 1e-30);
    floor_ = load_bound(units);
    retarget();
  }

  std::vector<int32_t> run() {
    if (units_.devices() < 2) return best_;
    energy_ = energy_now();
    const double hot = options_.heat * scale_;
    const AnnealSchedule schedule{.hot = hot,
                                  .cold = hot * 1e-3,
                                  .moves = static_cast<uint64_t>(options_.moves),
                                  .moves_per_look = 1024};
    anneal(*this, schedule, options_.deadline, random_);
    return best_;
  }

  // For anneal(). One to three changes that are accepted or refused together: what one device gains, another
  // may pass on.
  bool propose() {
    begin_move();
    const double several = random_.unit();
    const int changes = several < 0.6 ? 1 : several < 0.9 ? 2 : 3;
    bool moved = false;
    for (int i = 0; i < changes; ++i) moved |= change();
    return moved;
  }
  double rise(Metropolis& /*rule*/) {
    next_energy_ = energy_now();
    return next_energy_ - energy_;
  }
  void keep() {
    energy_ = next_energy_;
    const double value = state_.max_load();
    if (value >= best_value_ * (1 - 1e-12) || !state_.fits()) return;
    best_ = state_.device();
    best_value_ = value;
    retarget();
    energy_ = energy_now();
  }

 private:
  // A little below the best: of a far target all devices are equally short, a near one leaves no slope.
  void retarget() {
    const double value = std::isfinite(best_value_) ? best_value_ : scale_;
    target_ = std::max(value * 0.985, floor_ + 0.15 * (value - floor_));
  }

  // What exceeds the target, and a little of all accelerators' load: transfers are waste, idle CPUs are not.
  double energy_now() const {
    double excess = 0, sum = 0, overflow = 0;
    const auto& load = state_.load();
    for (size_t d = 0; d < load.size(); ++d) {
      excess += std::max(0.0, load[d] - target_);
      if (d >= at(units_.accelerators)) continue;
      sum += load[d];
      if (state_.bytes()[d] > units_.accelerator_bytes)
        overflow += state_.bytes()[d] / units_.accelerator_bytes - 1;
    }
    return excess + 0.05 * sum + 4 * scale_ * overflow;
  }

  // A device of a neighbour more often than any.
  int32_t device_for(int32_t unit) {
    if (!units_.nets_of[at(unit)].empty() && !random_.chance(0.2)) {
      const auto& nets = units_.nets_of[at(unit)];
      const auto& pins = units_.nets[at(nets[pick(nets.size())])].pins;
      return state_.device()[at(pins[pick(pins.size())])];
    }
    return static_cast<int32_t>(pick(static_cast<uint64_t>(units_.devices())));
  }

  bool change() {
    const double kind = random_.unit();
    if (kind < 0.15) {
      const auto unit = any_unit();
      return put(unit, device_for(unit));
    }
    if (kind < 0.3) {
      const auto unit = any_unit(), other = any_unit();
      const auto here = device(unit), there = device(other);
      if (here == there) return false;
      const bool first = put(unit, there), second = put(other, here);
      return first || second;
    }
    // At a border: inside of a device a change only adds transfers.
    int32_t unit = any_unit(), to = device_for(unit);
    if (!state_.cut().empty() && !random_.chance(0.1)) {
      const auto net = state_.cut()[pick(state_.cut().size())];
      const auto& pins = units_.nets[at(net)].pins;
      unit = pins[pick(pins.size())];
      to = state_.device()[at(pins[pick(pins.size())])];
      if (random_.chance(0.1)) to = static_cast<int32_t>(pick(static_cast<uint64_t>(units_.devices())));
    }
    if (kind < 0.6) return put(unit, to);
    return move_group(unit, to, kind < 0.8);
  }

  // A connected group of units of one device, grown from `unit`: either a few, or all that hang together by
  // nets of at least the cost of one drawn at random, so that only cheaper ones are cut.
  bool move_group(int32_t unit, int32_t to, bool few) {
    const auto here = device(unit);
    if (to == here) return false;
    const auto half = units_.size() / 2 + 1;
    size_t size = half;
    double least = 0;
    if (few) {
      const double largest = std::min(40.0, static_cast<double>(half));
      size = static_cast<size_t>(std::exp(random_.uniform(std::log(2.0), std::log(largest + 2))));
    } else if (!units_.nets.empty()) {
      least = units_.nets[pick(units_.nets.size())].cost;
    }
    gather_connected(unit, size, least);
    // Too heavy for where it goes, whatever transfers it may save there: not worth its moves.
    double work = 0;
    for (const auto member : group_) work += units_.time(member, to);
    if (state_.load()[at(to)] + work > state_.max_load() + kHopeless * scale_) return false;
    return put_group(to);
  }

  const PlacementSearchOptions& options_;
  std::vector<int32_t> best_;
  double best_value_ = 0, scale_ = 0, target_ = 0, floor_ = 0;
  double energy_ = 0, next_energy_ = 0;
};

}  // namespace

std::vector<int32_t> search_load(const PlacementUnits& units, const std::vector<int32_t>& start,
                                 const PlacementSearchOptions& options) {
  return MaxLoadSearch(units, start, options).run();
}

}  // namespace heddle
