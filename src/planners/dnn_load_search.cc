#include "dnn_load_search.h"

#include <algorithm>
#include <cmath>

namespace heddle {
namespace {

size_t at(int32_t v) { return static_cast<size_t>(v); }

class LoadSearch {
 public:
  LoadSearch(const DnnUnits& units, const std::vector<int32_t>& start, const LoadSearchOptions& options)
      : units_(units), options_(options), random_(options.seed), loads_(units, start), best_(start) {
    best_value_ = loads_.fits() ? loads_.max_load() : std::numeric_limits<double>::infinity();
    scale_ = std::max(loads_.max_load(), 1e-30);
    floor_ = load_bound(units);
    retarget();
    mark_.assign(units.size(), 0);
  }

  std::vector<int32_t> run() {
    if (units_.devices() < 2 || units_.size() == 0) return best_;
    double energy = energy_now();
    const double hot = options_.heat * scale_, cold = hot * 1e-3;
    double temperature = hot;
    for (int64_t move = 0; move < options_.moves; ++move) {
      if (move % 1024 == 0) {
        if (options_.deadline.should_stop()) break;
        const double part = static_cast<double>(move) / static_cast<double>(options_.moves);
        temperature = hot * std::pow(cold / hot, part);
      }
      undo_.clear();
      if (!propose()) continue;
      const double next = energy_now();
      if (next <= energy || random_.unit() < std::exp((energy - next) / temperature)) {
        energy = next;
        const double value = loads_.max_load();
        if (value < best_value_ * (1 - 1e-12) && loads_.fits()) {
          best_ = loads_.device();
          best_value_ = value;
          retarget();
          energy = energy_now();
        }
      } else {
        while (!undo_.empty()) {
          loads_.move(undo_.back().first, undo_.back().second);
          undo_.pop_back();
        }
      }
    }
    return best_;
  }

 private:
  // A little below the best: far targets make all devices equally bad, near ones leave no slope.
  void retarget() {
    const double value = std::isfinite(best_value_) ? best_value_ : scale_;
    target_ = std::max(floor_, value * 0.98);
  }

  double energy_now() const {
    double worst = 0, excess = 0, sum = 0;
    const auto& load = loads_.load();
    for (size_t d = 0; d < load.size(); ++d) {
      const double over = load[d] - target_;
      if (over > 0) excess += over;
      worst = std::max(worst, over);
      sum += load[d];
      if (d < at(units_.accelerators) && loads_.bytes()[d] > units_.accelerator_bytes)
        excess += scale_ * 4 * (loads_.bytes()[d] / units_.accelerator_bytes - 1);
    }
    return worst + 0.3 * excess + 0.02 * sum;
  }

  int32_t any_unit() { return static_cast<int32_t>(random_.below(units_.size())); }

  // A device of a neighbour more often than any.
  int32_t device_for(int32_t unit) {
    if (!units_.nets_of[at(unit)].empty() && !random_.chance(0.2)) {
      const auto& nets = units_.nets_of[at(unit)];
      const auto& pins = units_.nets[at(nets[random_.below(nets.size())])].pins;
      return loads_.device()[at(pins[random_.below(pins.size())])];
    }
    return static_cast<int32_t>(random_.below(static_cast<uint64_t>(units_.devices())));
  }

  bool put(int32_t unit, int32_t device) {
    const auto from = loads_.device()[at(unit)];
    if (from == device || !units_.allowed(unit, device)) return false;
    undo_.emplace_back(unit, from);
    loads_.move(unit, device);
    return true;
  }

  bool propose() {
    const auto unit = any_unit();
    const double kind = random_.unit();
    if (kind < 0.5) return put(unit, device_for(unit));
    if (kind < 0.7) {
      const auto other = any_unit();
      const auto here = loads_.device()[at(unit)], there = loads_.device()[at(other)];
      if (here == there) return false;
      const bool first = put(unit, there), second = put(other, here);
      return first || second;
    }
    if (kind < 0.93) return move_group(unit);
    const auto& nets = units_.nets_of[at(unit)];
    if (nets.empty()) return false;
    const auto to = device_for(unit);
    bool moved = false;
    for (const auto pin : units_.nets[at(nets[random_.below(nets.size())])].pins) moved |= put(pin, to);
    return moved;
  }

  // A connected group of units of one device, grown from `unit`; heavy nets are followed like light ones.
  bool move_group(int32_t unit) {
    const auto here = loads_.device()[at(unit)];
    auto to = device_for(unit);
    if (to == here) to = static_cast<int32_t>(random_.below(static_cast<uint64_t>(units_.devices())));
    if (to == here) return false;
    const double largest = std::min(64.0, static_cast<double>(units_.size()) / 2 + 1);
    const auto size = static_cast<size_t>(std::exp(random_.uniform(std::log(2.0), std::log(largest + 2))));
    ++stamp_;
    group_.assign(1, unit);
    mark_[at(unit)] = stamp_;
    for (size_t i = 0; i < group_.size() && group_.size() < size; ++i) {
      for (const auto net : units_.nets_of[at(group_[i])]) {
        for (const auto pin : units_.nets[at(net)].pins) {
          if (mark_[at(pin)] == stamp_ || loads_.device()[at(pin)] != here || group_.size() >= size) continue;
          mark_[at(pin)] = stamp_;
          group_.push_back(pin);
        }
      }
    }
    bool moved = false;
    for (const auto member : group_) moved |= put(member, to);
    return moved;
  }

  const DnnUnits& units_;
  const LoadSearchOptions& options_;
  Random random_;
  DnnLoads loads_;
  std::vector<int32_t> best_;
  double best_value_ = 0, scale_ = 0, target_ = 0, floor_ = 0;
  std::vector<std::pair<int32_t, int32_t>> undo_;
  std::vector<int32_t> group_;
  std::vector<int64_t> mark_;
  int64_t stamp_ = 0;
};

}  // namespace

std::vector<int32_t> search_load(const DnnUnits& units, const std::vector<int32_t>& start,
                                 const LoadSearchOptions& options) {
  return LoadSearch(units, start, options).run();
}

}  // namespace heddle
