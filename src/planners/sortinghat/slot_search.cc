#include "slot_search.h"

#include <algorithm>

#include "search/anneal.h"

namespace heddle {
namespace {

class SlotSearch : public AnnealSearch {
 public:
  SlotSearch(const SlotProblem& problem, uint64_t seed, const Deadline& deadline)
      : p_(problem), timer_(problem), random_(seed), deadline_(deadline), params_(problem.num_ops) {
    for (const auto& [u, v] : p_.edges) {
      if (u >= p_.num_ops) params_[v].push_back(u);
    }
  }

  std::optional<Slots> run(size_t rounds) {
    for (size_t i = 0; i < p_.k; ++i) one_device(i);
    greedy();
    if (best_.empty()) return std::nullopt;
    for (uint32_t v = 0; v < p_.num_ops; ++v) {
      if (!is_fixed(v)) own_.push_back(v);
    }
    if (!own_.empty())
      anneal(*this, {.moves = rounds * p_.num_nodes(), .moves_per_look = 64}, deadline_, random_);
    return best_;
  }

  // For anneal(), which descends.
  bool propose() {
    next_ = best_;
    const auto at = static_cast<size_t>(random_.below(own_.size()));
    const auto slot = static_cast<uint32_t>(1 + random_.below(p_.num_slots() - 1));
    if (random_.chance(0.25) && p_.num_nodes() > p_.num_ops) {
      // A parameter comes over another device (parallel transmission), or back.
      const auto w = static_cast<uint32_t>(p_.num_ops + random_.below(p_.num_nodes() - p_.num_ops));
      if (next_[w] == 0) return false;
      next_[w] = slot;
      return true;
    }
    const size_t length = random_.chance(0.5) ? 1 : 1 + random_.below(8);
    const uint32_t from = next_[own_[at]];
    for (size_t i = at; i < std::min(own_.size(), at + length); ++i) {
      if (next_[own_[i]] == from) put(next_, own_[i], slot);
    }
    return true;
  }
  double rise(Metropolis& /*rule*/) {
    next_cost_ = slot_cost(timer_, next_);
    return next_cost_.total < kImpossible && next_cost_ < cost_ ? -1 : kImpossible;
  }
  void keep() {
    cost_ = next_cost_;
    std::swap(best_, next_);
  }
  void undo() {}

 private:
  bool is_fixed(uint32_t v) const { return p_.placeholder[v] != 0; }

  Slots fixed_only() const {
    Slots slots(p_.num_nodes(), kNoSlot);
    for (const auto& [v, i] : p_.fixed) slots[v] = static_cast<uint32_t>(i * p_.q + 1);
    // A placeholder without a device (nothing before was placed) may be anywhere.
    for (uint32_t v = 0; v < p_.num_ops; ++v) {
      if (is_fixed(v) && slots[v] == kNoSlot) slots[v] = 1;
    }
    return slots;
  }

  // Moves the op and what it alone decides: its parameters stay in host memory, or come to its slot.
  void put(Slots& slots, uint32_t v, uint32_t slot) const {
    slots[v] = slot;
    for (const uint32_t w : params_[v]) slots[w] = SlotProblem::in_place(slot) ? 0 : slot;
  }

  void take(Slots slots) {
    const SlotCost cost = slot_cost(timer_, slots);
    if (!(cost.total < kImpossible) || !(cost < cost_)) return;
    cost_ = cost;
    best_ = std::move(slots);
  }

  void one_device(size_t i) {
    Slots slots = fixed_only();
    for (uint32_t v = 0; v < p_.num_ops; ++v) {
      if (!is_fixed(v)) put(slots, v, static_cast<uint32_t>(i * p_.q + 2));
    }
    take(std::move(slots));
  }

  // Each op, in topological order, where what is placed so far ends first.
  void greedy() {
    Slots slots = fixed_only();
    for (uint32_t v = 0; v < p_.num_ops; ++v) {
      if (is_fixed(v)) continue;
      if (deadline_.cancelled() || (deadline_.expired() && !best_.empty())) return;
      SlotCost least;
      uint32_t where = kNoSlot;
      const Slots before = slots;
      for (uint32_t j = 1; j < p_.num_slots(); ++j) {
        if (!(p_.us(v, j) < kImpossible)) continue;
        put(slots, v, j);
        const SlotCost cost = slot_cost(timer_, slots);
        if (cost.total < kImpossible && cost < least) {
          least = cost;
          where = j;
        }
        slots = before;
      }
      if (where == kNoSlot) return;
      put(slots, v, where);
    }
    take(std::move(slots));
  }

  const SlotProblem& p_;
  SlotTimer timer_;
  Random random_;
  const Deadline& deadline_;
  std::vector<std::vector<uint32_t>> params_;  // per op node
  std::vector<uint32_t> own_;                  // ops that are placed here
  Slots best_, next_;
  SlotCost cost_, next_cost_;
};

}  // namespace

SlotCost slot_cost(SlotTimer& timer, const Slots& slots) {
  if (!timer.time(slots)) return {};
  return {timer.excess_bytes(), timer.total_us(), timer.free_us()};
}

std::optional<Slots> search_slots(const SlotProblem& problem, uint64_t seed, size_t rounds,
                                  const Deadline& deadline) {
  return SlotSearch(problem, seed, deadline).run(rounds);
}

}  // namespace heddle
