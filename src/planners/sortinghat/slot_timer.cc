#include "slot_timer.h"

#include <algorithm>
#include <numeric>

namespace heddle {

SlotTimer::SlotTimer(const SlotProblem& problem)
    : p_(problem),
      readers_(problem.num_nodes()),
      load_start_(problem.num_slots()),
      load_finish_(problem.num_slots()),
      start_(problem.num_slots()),
      finish_(problem.num_slots()),
      run_(problem.num_slots()),
      ready_(problem.num_slots()),
      missing_(problem.num_slots()),
      rank_(problem.num_slots()),
      next_(problem.num_slots()),
      mark_(problem.num_nodes() * problem.num_slots(), 0),
      seen_(problem.num_ops, 0),
      memory_(problem.k) {
  for (const auto& [u, v] : p_.edges) readers_[u].push_back(v);
}

bool SlotTimer::time(const Slots& slots) {
  ++round_;
  std::fill(run_.begin(), run_.end(), 0);
  std::fill(ready_.begin(), ready_.end(), 0);
  std::fill(memory_.begin(), memory_.end(), 0);
  for (auto& list : next_) list.clear();
  std::fill(missing_.begin(), missing_.end(), 0);
  for (size_t v = 0; v < p_.num_ops; ++v) {
    if (slots[v] == kNoSlot) continue;
    if (slots[v] == 0 || slots[v] >= p_.num_slots()) return false;  // (4)
    run_[slots[v]] += p_.us(v, slots[v]);
    memory_[p_.device_of(slots[v])] += static_cast<double>(p_.bytes[v]);
  }
  for (const auto& [v, i] : p_.fixed) {
    if (slots[v] != kNoSlot && slots[v] != i * p_.q + 1) return false;  // (3)
  }
  if (!place_loads(slots) || !count_copies(slots) || !run_slots(slots)) return false;
  count_memory(slots);
  return total_ < kImpossible;
}

// Equations 5 and 12 to 14.
bool SlotTimer::place_loads(const Slots& slots) {
  std::fill(load_finish_.begin(), load_finish_.end(), 0);
  for (size_t w = p_.num_ops; w < p_.num_nodes(); ++w) {
    if (slots[w] == kNoSlot) continue;
    if (slots[w] >= p_.num_slots()) return false;
    for (const uint32_t v : readers_[w]) {
      if (slots[v] != kNoSlot && (slots[w] == 0) != SlotProblem::in_place(slots[v])) return false;
    }
    if (slots[w] == 0) continue;
    const size_t i = p_.device_of(slots[w]);
    load_finish_[slots[w]] += p_.load_us[(w - p_.num_ops) * p_.k + i];  // the sum of (14) for now
    memory_[i] += static_cast<double>(p_.bytes[w]);
  }
  for (size_t b = 0; b < p_.load_order.size(); ++b) {
    double at = p_.bus_free[b];
    for (const uint32_t j : p_.load_order[b]) {
      load_start_[j] = at;
      at += load_finish_[j];
      load_finish_[j] = at;
    }
  }
  return true;
}

// Equations 9, 10 and the copies of 21 and 22; what each slot waits for (19, 20).
bool SlotTimer::count_copies(const Slots& slots) {
  for (const auto& [u, v] : p_.edges) {
    const uint32_t from = slots[u], to = slots[v];
    if (from == kNoSlot || to == kNoSlot) continue;
    const bool is_param = u >= p_.num_ops;
    if (is_param && from != 0) ready_[to] = std::max(ready_[to], load_finish_[from]);
    if (from == to || from == 0) continue;
    // (8) for parameters; for ops the order of the slots sees to it.
    if (is_param && returns(slots, v, from)) return false;
    if (!is_param) {
      next_[from].push_back(to);
      ++missing_[to];
    }
    uint32_t& mark = mark_[u * p_.num_slots() + to];
    if (mark == round_) continue;
    mark = round_;
    const size_t a = p_.device_of(from), b = p_.device_of(to);
    if (a == b) continue;
    run_[to] += p_.copy(u, a, b);
    memory_[b] += static_cast<double>(p_.bytes[u]);
  }
  return true;
}

// Does `from`, or what reads from it, lie in the slot?
bool SlotTimer::returns(const Slots& slots, uint32_t from, uint32_t slot) {
  ++search_;
  stack_ = {from};
  while (!stack_.empty()) {
    const uint32_t v = stack_.back();
    stack_.pop_back();
    if (seen_[v] == search_) continue;
    seen_[v] = search_;
    if (slots[v] == slot) return true;
    for (const uint32_t w : readers_[v]) stack_.push_back(w);
  }
  return false;
}

// Equations 17 to 23; false where slots wait for each other.
bool SlotTimer::run_slots(const Slots&) {
  for (size_t j = 1; j < p_.num_slots(); ++j) {
    if (j % p_.q == 1) {
      ready_[j] = std::max(ready_[j], p_.device_free[p_.device_of(j)]);
    } else {
      ++missing_[j];
    }
  }
  stack_.clear();
  for (size_t j = p_.num_slots(); j-- > 1;) {
    if (missing_[j] == 0) stack_.push_back(static_cast<uint32_t>(j));
  }
  uint32_t done = 0;
  total_ = 0;
  while (!stack_.empty()) {
    const uint32_t j = stack_.back();
    stack_.pop_back();
    rank_[j] = done++;
    start_[j] = ready_[j];
    finish_[j] = start_[j] + run_[j];
    total_ = std::max(total_, finish_[j]);
    const auto tell = [&](uint32_t to) {
      ready_[to] = std::max(ready_[to], finish_[j]);
      if (--missing_[to] == 0) stack_.push_back(to);
    };
    for (const uint32_t to : next_[j]) tell(to);
    if (j % p_.q != 0) tell(j + 1);
  }
  return done + 1 == p_.num_slots();
}

// Equation 11; devices of one memory are taken by themselves, as the paper does.
void SlotTimer::count_memory(const Slots&) {
  excess_ = 0;
  for (size_t i = 0; i < p_.k; ++i) {
    if (p_.limit[i] > 0)
      excess_ +=
          std::max(0.0, memory_[i] + static_cast<double>(p_.used[i]) - static_cast<double>(p_.limit[i]));
  }
}

double SlotTimer::free_us() const {
  double sum = 0;
  for (size_t i = 0; i < p_.k; ++i) sum += finish_[(i + 1) * p_.q];
  for (const auto& order : p_.load_order) sum += order.empty() ? 0 : load_finish_[order.back()];
  return sum;
}

std::vector<uint32_t> SlotTimer::sequence() const {
  std::vector<uint32_t> order(p_.num_slots() - 1);
  std::iota(order.begin(), order.end(), 1U);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return start_[a] != start_[b] ? start_[a] < start_[b] : rank_[a] < rank_[b];
  });
  return order;
}

}  // namespace heddle
