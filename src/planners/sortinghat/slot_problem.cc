#include "slot_problem.h"

#include <algorithm>
#include <map>

namespace heddle {
namespace {

class Builder {
 public:
  Builder(const ColdTables& tables, const SlotState& state, const SlotOptions& options)
      : t_(tables), flat_(tables.flat()), state_(state), options_(options) {
    p_.k = flat_.num_devices();
    p_.q = options.q;
  }

  SlotProblem build(const Submodels& submodels, int index) {
    const auto inside = [&](uint32_t v) { return submodels.of_op[v] == index; };
    std::vector<uint32_t> own;
    for (const uint32_t v : flat_.topological()) {
      if (inside(v)) own.push_back(v);
    }
    for (const uint32_t v : own) {
      for (const uint32_t t : flat_.inputs(v)) {
        const uint32_t u = flat_.producer(t);
        if (!inside(u) && !options_.independent && node_.count(u) == 0) add_op(u, true);
      }
    }
    for (const uint32_t v : own) add_op(v, false);
    p_.num_ops = p_.op.size();
    if (!options_.independent) {
      for (const uint32_t v : own) add_params(v);
    }
    add_edges(own);
    add_ways();
    add_devices();
    return std::move(p_);
  }

 private:
  void add_op(uint32_t v, bool placeholder) {
    node_[v] = static_cast<uint32_t>(p_.op.size());
    if (placeholder && state_.device[v] >= 0)
      p_.fixed.push_back({node_[v], static_cast<uint32_t>(state_.device[v])});
    p_.op.push_back(v);
    p_.placeholder.push_back(placeholder ? 1 : 0);
    int64_t bytes = 0;
    for (const uint32_t t : flat_.outputs(v)) {
      if (!flat_.readers(t).empty()) bytes = plus_bytes(bytes, flat_.bytes(t));
    }
    p_.copy_bytes.push_back(bytes);
    if (options_.independent) {
      for (const uint32_t w : flat_.params(v)) bytes = plus_bytes(bytes, flat_.param_bytes(w));
    }
    p_.bytes.push_back(bytes);
    double least = kImpossible;
    for (size_t i = 0; i < p_.k; ++i) least = std::min(least, flat_.us(v, i));
    for (size_t i = 0; i < p_.k; ++i) {
      double us = flat_.us(v, i);
      if (options_.independent && us < kImpossible) us = least;
      if (placeholder) us = 0;
      p_.gpu_us.push_back(us);
      const bool plain = placeholder || options_.independent || !t_.has_params(v) || !flat_.needs_load(i);
      p_.host_us.push_back(plain ? us : in_place_us(v, i));
    }
  }

  // Section 3.4: twice as long for each device that shares the bus.
  double in_place_us(uint32_t v, size_t i) const {
    const double us = t_.in_place_us(v, i);
    if (flat_.problem().execution.fixed_sharing) return us;  // has the factor already
    return us * host_sharing_factor(*flat_.problem().cluster, flat_.device(i));
  }

  void add_params(uint32_t v) {
    for (const uint32_t w : flat_.params(v)) {
      if (!param_node_.insert({w, static_cast<uint32_t>(p_.num_ops + p_.param.size())}).second) continue;
      p_.param.push_back(w);
      const int64_t bytes = flat_.param_bytes(w);
      p_.bytes.push_back(bytes);
      p_.copy_bytes.push_back(bytes);
      for (size_t i = 0; i < p_.k; ++i) {
        const bool there = !flat_.needs_load(i) || state_.there[flat_.pool(i) * flat_.num_params() + w] != 0;
        const auto& ways = t_.ways(i);
        p_.load_us.push_back(there ? 0 : ways.empty() ? kImpossible : ways[0].way.time_us(bytes));
      }
    }
  }

  // T_i1,i2: x 1.5 over a direct link, x devices without one (section 3.4).
  void add_ways() {
    const Problem& problem = flat_.problem();
    const Cluster& cluster = *problem.cluster;
    double dram = 0;
    for (size_t i = 0; i < p_.k && options_.independent; ++i) {
      if (!t_.ways(i).empty()) dram = std::max(dram, 1e6 / t_.ways(i)[0].way.bytes_per_s);
    }
    for (size_t from = 0; from < p_.k; ++from) {
      for (size_t to = 0; to < p_.k; ++to) {
        const auto& way = flat_.way(from, to);
        double latency = 0, per_byte = 0;
        if (from != to && way.passage == Passage::kNone) latency = kImpossible;
        if (from != to && way.passage == Passage::kRoute) {
          const Route* route = cluster.route(flat_.device(from), flat_.device(to));
          const bool plain = problem.execution.fixed_sharing || route == nullptr;
          latency = way.latency_us;
          per_byte = 1e6 / way.bytes_per_s * (plain ? 1 : sharing_factor(cluster, route->hops));
          if (options_.independent && dram > 0) per_byte = dram;
        }
        p_.copy_latency_us.push_back(latency);
        p_.copy_us_per_byte.push_back(per_byte);
      }
    }
  }

  void add_edges(const std::vector<uint32_t>& own) {
    for (const uint32_t v : own) {
      for (const uint32_t t : flat_.inputs(v)) {
        const auto u = node_.find(flat_.producer(t));
        if (u != node_.end()) p_.edges.push_back({u->second, node_[v]});
      }
      for (const uint32_t w : flat_.params(v)) {
        if (!options_.independent) p_.edges.push_back({param_node_[w], node_[v]});
      }
    }
    std::sort(p_.edges.begin(), p_.edges.end());
    p_.edges.erase(std::unique(p_.edges.begin(), p_.edges.end()), p_.edges.end());
  }

  // Figure 7(d): the devices of a bus copy slot by slot in turn.
  void add_devices() {
    p_.bus = buses_of(t_);
    p_.load_order.resize(p_.bus.empty() ? 0 : *std::max_element(p_.bus.begin(), p_.bus.end()) + 1);
    for (size_t j = 1; j <= p_.q; ++j) {
      for (size_t i = 0; i < p_.k; ++i)
        p_.load_order[p_.bus[i]].push_back(static_cast<uint32_t>(i * p_.q + j));
    }
    for (size_t i = 0; i < p_.k; ++i) p_.limit.push_back(flat_.pool_limit(flat_.pool(i)));
    p_.used = state_.used;
    p_.bus_free = state_.bus_free;
    p_.device_free = state_.device_free;
  }

  const ColdTables& t_;
  const FlatProblem& flat_;
  const SlotState& state_;
  const SlotOptions& options_;
  SlotProblem p_;
  std::map<uint32_t, uint32_t> node_, param_node_;
};

}  // namespace

std::vector<uint32_t> buses_of(const ColdTables& tables) {
  const size_t k = tables.flat().num_devices();
  std::vector<uint32_t> bus(k);
  uint32_t count = 0;
  for (size_t i = 0; i < k; ++i) {
    int32_t found = -1;
    const auto& ways = tables.ways(i);
    for (size_t h = 0; h < i && found < 0 && !ways.empty(); ++h) {
      if (tables.ways(h).empty()) continue;
      const auto& a = ways[0].resources;
      const auto& b = tables.ways(h)[0].resources;
      const bool shares = std::any_of(a.begin(), a.end(),
                                      [&](uint32_t r) { return std::binary_search(b.begin(), b.end(), r); });
      if (shares) found = static_cast<int32_t>(bus[h]);
    }
    bus[i] = found >= 0 ? static_cast<uint32_t>(found) : count++;
  }
  return bus;
}

SlotState first_state(const ColdTables& tables) {
  const FlatProblem& flat = tables.flat();
  SlotState state;
  state.bus_free.assign(flat.num_devices(), 0);  // there are no more buses than devices
  state.device_free.assign(flat.num_devices(), 0);
  state.used.assign(flat.num_devices(), 0);
  state.device.assign(flat.num_ops(), -1);
  state.there.assign(flat.num_pools() * flat.num_params(), 0);
  for (size_t pool = 0; pool < flat.num_pools(); ++pool) {
    for (size_t p = 0; p < flat.num_params(); ++p)
      state.there[pool * flat.num_params() + p] = flat.is_resident(pool, p) ? 1 : 0;
  }
  return state;
}

SlotProblem slot_problem(const ColdTables& tables, const Submodels& submodels, int index,
                         const SlotState& state, const SlotOptions& options) {
  return Builder(tables, state, options).build(submodels, index);
}

}  // namespace heddle
