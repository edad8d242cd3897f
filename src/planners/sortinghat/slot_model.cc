// The numbers in brackets are the equations of SortingHat (ICS'25), section 3.3.
#include "slot_model.h"

#include <algorithm>
#include <cmath>

namespace heddle {
namespace {

// Memory is counted in so many parts of a device's limit, rounded up: (11) keeps small whole numbers.
constexpr double kMemoryParts = 1 << 20;

}  // namespace

SlotModel::SlotModel(const SlotProblem& problem, const Slots& start)
    : p_(problem), readers_(problem.num_nodes()) {
  for (const auto& [u, v] : p_.edges) readers_[u].push_back(v);
  rescale(start);
  add_variables();
  assignment();
  data_movement();
  memory();
  parameter_copy();
  subgraph_inference();
  start_from(start);
}

size_t SlotModel::count_rows(const SlotProblem& p) {
  const size_t slots = p.k * p.q, nodes = p.num_nodes(), edges = p.edges.size();
  return nodes * slots * (2 + p.k) + 5 * edges * slots + 6 * slots;
}

double SlotModel::units(double us) const {
  return us < kImpossible ? std::ceil(us / tick_ - 1e-9) / kTicksPerUnit : us;
}

bool SlotModel::allowed(size_t node, size_t slot) const {
  if (node >= p_.num_ops)
    return slot == 0 || p_.load_us[(node - p_.num_ops) * p_.k + p_.device_of(slot)] < kImpossible;
  return slot > 0 && p_.us(node, slot) < kImpossible;  // (4)
}

// What happens before the first device or bus is free does not matter, and the start's end is H.
void SlotModel::rescale(const Slots& start) {
  SlotTimer timer(p_);
  timer.time(start);
  base_ = kImpossible;
  for (const double at : p_.device_free) base_ = std::min(base_, at);
  for (size_t b = 0; b < p_.load_order.size(); ++b) base_ = std::min(base_, p_.bus_free[b]);
  double last = timer.total_us();
  for (const double at : timer.load_finish()) last = std::max(last, at);
  tick_ = std::max((last - base_) / kTicks, 1e-9);
  for (auto* list : {&p_.gpu_us, &p_.host_us, &p_.load_us}) {
    for (double& us : *list) us = units(us);
  }
  for (auto* list : {&p_.bus_free, &p_.device_free}) {
    for (double& us : *list) us = std::max(0.0, units(us - base_));
  }
  p_.copy_tick = tick_;
  p_.copy_unit = 1 / kTicksPerUnit;
  SlotTimer scaled(p_);
  scaled.time(start);
  horizon_ = scaled.total_us();
  for (const double at : scaled.load_finish()) horizon_ = std::max(horizon_, at);
}

void SlotModel::add_variables() {
  const size_t slots = p_.num_slots();
  x_.resize(p_.num_nodes() * slots);
  z_.resize(x_.size());
  edge_in_.resize(x_.size());
  copy_in_.resize(p_.num_nodes() * p_.k * slots);
  for (size_t v = 0; v < p_.num_nodes(); ++v) {
    for (size_t j = 0; j < slots; ++j) {
      if (allowed(v, j)) x_[v * slots + j] = milp_.add_binary();
      if (j == 0) continue;
      z_[v * slots + j] = milp_.add_binary();
      if (readers_[v].empty()) continue;
      edge_in_[v * slots + j] = milp_.add_binary();
      for (size_t i = 0; i < p_.k; ++i) {
        if (i != p_.device_of(j)) copy_in_[(v * p_.k + i) * slots + j] = milp_.add_binary();
      }
    }
    node_finish_.push_back(milp_.add_continuous(0, horizon_));
  }
  const auto times = [&](std::vector<Var>& list) {
    list.resize(slots);
    for (size_t j = 1; j < slots; ++j) list[j] = milp_.add_continuous(0, horizon_);
  };
  times(load_start_);
  times(load_finish_);
  times(start_);
  times(finish_);
  total_ = milp_.add_continuous(0, horizon_);
  milp_.add_cost(total_, 1);  // (1)
}

void SlotModel::assignment() {
  const size_t slots = p_.num_slots();
  for (size_t v = 0; v < p_.num_nodes(); ++v) {  // (2)
    std::vector<Term> sum;
    for (size_t j = 0; j < slots; ++j) {
      if (x_[v * slots + j].index >= 0) sum.push_back({x_[v * slots + j], 1});
    }
    milp_.equal(sum, 1);
  }
  for (const auto& [v, i] : p_.fixed) milp_.set_bounds(x_[v * slots + i * p_.q + 1], 1, 1);  // (3)
  for (const auto& [u, v] : p_.edges) {
    if (u >= p_.num_ops) {  // (5)
      std::vector<Term> sum{{x_[u * slots], 1}};
      for (size_t j = 1; j < slots; j += 2) {
        if (x_[v * slots + j].index >= 0) sum.push_back({x_[v * slots + j], -1});
      }
      milp_.equal(sum, 0);
    }
    for (size_t j = 1; j < slots; ++j) {
      const Var xu = x_[u * slots + j], xv = x_[v * slots + j];
      milp_.at_least({{z_[u * slots + j], 1}, {z_[v * slots + j], -1}}, 0);  // (7)
      std::vector<Term> leaves{{z_[v * slots + j], 1}};                      // (8)
      if (xv.index >= 0) leaves.push_back({xv, -1});
      if (xu.index >= 0) leaves.push_back({xu, 1});
      milp_.at_most(leaves, 1);
    }
  }
  for (size_t at = 0; at < x_.size(); ++at) {  // (6)
    if (x_[at].index >= 0 && z_[at].index >= 0) milp_.at_least({{z_[at], 1}, {x_[at], -1}}, 0);
  }
}

void SlotModel::data_movement() {
  const size_t slots = p_.num_slots();
  for (const auto& [u, v] : p_.edges) {
    for (size_t j = 1; j < slots; ++j) {  // (9)
      if (x_[v * slots + j].index < 0) continue;
      std::vector<Term> enters{{edge_in_[u * slots + j], 1}, {x_[v * slots + j], -1}};
      if (x_[u * slots + j].index >= 0) enters.push_back({x_[u * slots + j], 1});
      milp_.at_least(enters, 0);
    }
  }
  for (size_t v = 0; v < p_.num_nodes(); ++v) {
    for (size_t i = 0; i < p_.k && !readers_[v].empty(); ++i) {
      for (size_t j = 1; j < slots; ++j) {  // (10)
        const Var copy = copy_in_[(v * p_.k + i) * slots + j];
        if (copy.index < 0) continue;
        std::vector<Term> both{{copy, 1}, {edge_in_[v * slots + j], -1}};
        for (size_t from = i * p_.q + 1; from <= (i + 1) * p_.q; ++from) {
          if (x_[v * slots + from].index >= 0) both.push_back({x_[v * slots + from], -1});
        }
        milp_.at_least(both, -1);
        if (!(p_.copy(v, i, p_.device_of(j)) < kImpossible)) milp_.set_bounds(copy, 0, 0);
      }
    }
  }
}

void SlotModel::memory() {  // (11)
  const size_t slots = p_.num_slots();
  for (size_t i = 0; i < p_.k; ++i) {
    if (p_.limit[i] <= 0) continue;
    const double part = std::max(1.0, static_cast<double>(p_.limit[i]) / kMemoryParts);
    const auto parts = [&](int64_t bytes) { return std::ceil(static_cast<double>(bytes) / part); };
    std::vector<Term> sum;
    double most = 0;
    for (size_t v = 0; v < p_.num_nodes(); ++v) {
      const double m = parts(p_.bytes[v]);
      most += m * static_cast<double>(p_.q + 1);
      if (m == 0) continue;
      for (size_t j = i * p_.q + 1; j <= (i + 1) * p_.q; ++j) {
        if (x_[v * slots + j].index >= 0) sum.push_back({x_[v * slots + j], m});
        for (size_t from = 0; from < p_.k && !readers_[v].empty(); ++from) {
          const Var copy = copy_in_[(v * p_.k + from) * slots + j];
          if (copy.index >= 0) sum.push_back({copy, m});
        }
      }
    }
    const double room = std::floor(static_cast<double>(p_.limit[i] - p_.used[i]) / part);
    if (most > room) milp_.at_most(sum, room);
  }
}

void SlotModel::parameter_copy() {
  const size_t slots = p_.num_slots();
  for (size_t b = 0; b < p_.load_order.size(); ++b) {
    uint32_t parent = 0;
    for (const uint32_t j : p_.load_order[b]) {
      if (parent == 0)
        milp_.equal({{load_start_[j], 1}}, p_.bus_free[b]);  // (12)
      else
        milp_.equal({{load_start_[j], 1}, {load_finish_[parent], -1}}, 0);  // (13)
      parent = j;
      std::vector<Term> sum{{load_finish_[j], 1}, {load_start_[j], -1}};  // (14)
      for (size_t w = p_.num_ops; w < p_.num_nodes(); ++w) {
        const double us = p_.load_us[(w - p_.num_ops) * p_.k + p_.device_of(j)];
        if (x_[w * slots + j].index >= 0 && us > 0) sum.push_back({x_[w * slots + j], -us});
      }
      milp_.equal(sum, 0);
    }
  }
}

void SlotModel::subgraph_inference() {
  const size_t slots = p_.num_slots();
  for (size_t j = 1; j < slots; ++j) {
    const size_t i = p_.device_of(j);
    if (j % p_.q == 1)
      milp_.at_least({{start_[j], 1}}, p_.device_free[i]);  // (17)
    else
      milp_.at_least({{start_[j], 1}, {finish_[j - 1], -1}}, 0);  // (18)
    std::vector<Term> sum{{finish_[j], 1}, {start_[j], -1}};      // (21), (22)
    for (size_t v = 0; v < p_.num_nodes(); ++v) {
      const Var x = x_[v * slots + j];
      if (x.index >= 0) {  // (15), (16)
        const Var end = v < p_.num_ops ? finish_[j] : load_finish_[j];
        milp_.add_indicator(x, true, 0, {{node_finish_[v], 1}, {end, -1}}, kNoBound);
        if (v < p_.num_ops && p_.us(v, j) > 0) sum.push_back({x, -p_.us(v, j)});
      }
      if (readers_[v].empty()) continue;
      milp_.add_indicator(edge_in_[v * slots + j], true, 0, {{start_[j], 1}, {node_finish_[v], -1}},
                          kNoBound);  // (19)
      for (size_t from = 0; from < p_.k; ++from) {
        const Var copy = copy_in_[(v * p_.k + from) * slots + j];
        const double us = from == i ? 0 : p_.copy(v, from, i);
        if (copy.index >= 0 && us > 0 && us < kImpossible) sum.push_back({copy, -us});
      }
    }
    milp_.equal(sum, 0);
    for (const auto& [w, v] : p_.edges) {  // (20)
      const Var xw = x_[w * slots + j], xv = x_[v * slots + j];
      if (w < p_.num_ops || xw.index < 0 || xv.index < 0) continue;
      milp_.add_indicator(xw, true, -horizon_, {{start_[j], 1}, {node_finish_[w], -1}, {xv, -horizon_}},
                          kNoBound);
    }
    if (j % p_.q == 0) milp_.at_least({{total_, 1}, {finish_[j], -1}}, 0);  // (23)
  }
}

void SlotModel::start_from(const Slots& start) {
  const size_t slots = p_.num_slots();
  SlotTimer timer(p_);
  timer.time(start);
  // Which slots each node leads to.
  std::vector<std::vector<uint8_t>> leads(p_.num_nodes(), std::vector<uint8_t>(slots, 0));
  for (size_t v = p_.num_nodes(); v-- > 0;) {
    // Ops come in topological order; parameters, which only ops read, are last in number and first in order.
    const size_t node = v;
    if (node < p_.num_ops) leads[node][start[node]] = 1;
    for (const uint32_t w : readers_[node]) {
      if (node >= p_.num_ops) break;
      for (size_t j = 1; j < slots; ++j) leads[node][j] |= leads[w][j];
    }
  }
  for (size_t w = p_.num_ops; w < p_.num_nodes(); ++w) {
    leads[w][start[w]] = 1;
    for (const uint32_t v : readers_[w]) {
      for (size_t j = 1; j < slots; ++j) leads[w][j] |= leads[v][j];
    }
  }
  for (size_t v = 0; v < p_.num_nodes(); ++v) {
    const size_t own = start[v];
    std::vector<uint8_t> enters(slots, 0);
    for (const uint32_t w : readers_[v]) enters[start[w]] = start[w] != own;
    for (size_t j = 0; j < slots; ++j) {
      if (x_[v * slots + j].index >= 0) set(x_[v * slots + j], j == own ? 1 : 0);
      if (j == 0) continue;
      set(z_[v * slots + j], leads[v][j]);
      if (readers_[v].empty()) continue;
      set(edge_in_[v * slots + j], enters[j]);
      for (size_t i = 0; i < p_.k; ++i) {
        const Var copy = copy_in_[(v * p_.k + i) * slots + j];
        const bool from_there = own > 0 && p_.device_of(own) == i;
        if (copy.index >= 0) set(copy, enters[j] && from_there ? 1 : 0);
      }
    }
    const double end = v < p_.num_ops ? timer.finish()[own] : own > 0 ? timer.load_finish()[own] : 0;
    set(node_finish_[v], end);
  }
  for (size_t j = 1; j < slots; ++j) {
    set(load_start_[j], timer.load_start()[j]);
    set(load_finish_[j], timer.load_finish()[j]);
    set(start_[j], timer.start()[j]);
    set(finish_[j], timer.finish()[j]);
  }
  set(total_, timer.total_us());
}

Slots SlotModel::slots(std::span<const double> values) const {
  Slots slots(p_.num_nodes(), kNoSlot);
  for (size_t at = 0; at < x_.size(); ++at) {
    if (x_[at].index >= 0 && values[static_cast<size_t>(x_[at].index)] > 0.5)
      slots[at / p_.num_slots()] = static_cast<uint32_t>(at % p_.num_slots());
  }
  return slots;
}

}  // namespace heddle
