#include "gates.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace heddle {
namespace {

// The rates of what leaves (or enters) a node. Links that hold one resource in common can use only one of
// them at a time: the fastest counts for all.
struct ChannelRates {
  std::map<uint32_t, double> bytes_per_us;  // by ResourceMap::channel()

  void add(const FlatProblem& flat, const Hop& hop) {
    const Cluster& cluster = *flat.problem().cluster;
    double& most = bytes_per_us[flat.resources().channel(hop)];
    most = std::max(most, link_bytes_per_s(cluster, cluster.link(hop.link)) * 1e-6);
  }
  double sum() const {
    double all = 0;
    for (const auto& [channel, rate] : bytes_per_us) all += rate;
    return all;
  }
};

class GateFinder {
 public:
  GateFinder(const FlatProblem& flat, const Relaxation& relaxation)
      : flat_(flat),
        r_(relaxation),
        cluster_(*flat.problem().cluster),
        k_(flat.num_devices()),
        loads_everything_(flat.is_cold() && !flat.problem().has_host_access() &&
                          flat.problem().resident.empty()) {}

  std::vector<Gate> run() {
    const ExecutionModel& model = flat_.problem().execution;
    // Under fixed sharing transfers pass links together.
    if (model.link_contention && !model.fixed_sharing) {
      for (size_t n = 0; n < cluster_.nodes().size(); ++n) add_node(NodeId(n));
    }
    if (model.engine_contention) {
      for (uint32_t i = 0; i < k_; ++i) add_engines(i);
    }
    return std::move(gates_);
  }

 private:
  Gate gate(std::vector<uint8_t> inside, bool out, bool in) const {
    Gate g;
    g.inside = g.free_out = g.free_in = std::move(inside);
    g.out = out;
    g.in = in;
    for (size_t i = 0; i < k_; ++i) {
      for (size_t j = 0; g.inside[i] && j < k_; ++j) {
        if (flat_.way(i, j).passage == Passage::kFree) g.free_out[j] = 1;
        if (flat_.way(j, i).passage == Passage::kFree) g.free_in[j] = 1;
      }
    }
    g.load_us_per_byte.assign(k_, 0);
    return g;
  }

  // The least latency, and the least time of a byte, of all that passes.
  void set_fastest(Gate& g) const {
    g.least = {kImpossible, kImpossible};
    const auto pass = [&](size_t i, size_t j) {
      const TransferRate& rate = r_.rates[i * k_ + j];
      if (!std::isfinite(rate.latency_us)) return;
      g.least = {std::min(g.least.latency_us, rate.latency_us),
                 std::min(g.least.us_per_byte, rate.us_per_byte)};
    };
    for (size_t i = 0; i < k_; ++i) {
      for (size_t j = 0; g.inside[i] && j < k_; ++j) {
        if (g.out && !g.free_out[j]) pass(i, j);
        if (g.in && !g.free_in[j]) pass(j, i);
      }
    }
    if (!std::isfinite(g.least.latency_us)) g.least = {};
  }

  void add_node(NodeId node) {
    std::vector<uint8_t> inside(k_, 0);
    for (size_t i = 0; i < k_; ++i) inside[i] = cluster_.device_node(flat_.device(i)) == node ? 1 : 0;
    ChannelRates leaving, entering, either;
    for (size_t l = 0; l < cluster_.links().size(); ++l) {
      const Link& link = cluster_.links()[l];
      for (const bool forward : {true, false}) {
        if (!forward && link.duplex == Duplex::kOneWay) continue;
        const Hop hop{LinkId(l), forward};
        const bool leaves = (forward ? link.a : link.b) == node, enters = (forward ? link.b : link.a) == node;
        if (leaves) leaving.add(flat_, hop);
        if (enters) entering.add(flat_, hop);
        if (leaves || enters) either.add(flat_, hop);
      }
    }
    // If data cannot pass both ways at once, one gate for both directions is enough.
    const bool one_way_at_a_time = either.sum() <= std::max(leaving.sum(), entering.sum());
    if (!one_way_at_a_time) {
      add_links(node, inside, leaving, true, false);
      add_links(node, inside, entering, false, true);
    }
    if (either.sum() < leaving.sum() + entering.sum()) add_links(node, inside, either, true, true);
  }

  void add_links(NodeId node, const std::vector<uint8_t>& inside, const ChannelRates& channels, bool out,
                 bool in) {
    const double rate = channels.sum();
    if (!(rate > 0) || !std::isfinite(rate)) return;
    Gate g = gate(inside, out, in);
    // One channel is held for the whole transfer; of several a transfer holds one at least.
    if (channels.bytes_per_us.size() == 1) set_fastest(g);
    if (!(g.least.us_per_byte > 0)) g.least.us_per_byte = 1 / rate;
    bool serves = false;
    for (size_t i = 0; i < k_; ++i) {
      serves = serves || inside[i];
      if (!loads_everything_ || !flat_.needs_load(i)) continue;
      const NodeId to = cluster_.device_node(flat_.device(i));
      const NodeId from = cluster_.host_node(cluster_.device(flat_.device(i)).host);
      if (from == to) continue;
      if ((out && from == node) || (in && to == node)) {
        g.load_us_per_byte[i] = 1 / rate;
        serves = true;
      }
    }
    if (serves) gates_.push_back(std::move(g));
  }

  void add_engines(uint32_t i) {
    const int engines = cluster_.device(flat_.device(i)).copy_engines;
    if (engines <= 0) return;
    std::vector<uint8_t> inside(k_, 0);
    inside[i] = 1;
    const auto add = [&](bool out, bool in) {
      Gate g = gate(inside, out, in);
      set_fastest(g);
      const auto says_as_much = [&](const Gate& other) {
        return other.inside == g.inside && other.out >= out && other.in >= in &&
               other.least.latency_us >= g.least.latency_us && other.least.us_per_byte >= g.least.us_per_byte;
      };
      const bool new_gate = std::none_of(gates_.begin(), gates_.end(), says_as_much);
      if (new_gate && (g.least.latency_us > 0 || g.least.us_per_byte > 0)) gates_.push_back(std::move(g));
    };
    if (engines == 1) return add(true, true);
    add(true, false);
    add(false, true);
  }

  const FlatProblem& flat_;
  const Relaxation& r_;
  const Cluster& cluster_;
  const size_t k_;
  // Where parameters may be there already, or be read in place, no load is certain.
  const bool loads_everything_;
  std::vector<Gate> gates_;
};

}  // namespace

std::vector<Gate> find_gates(const FlatProblem& flat, const Relaxation& relaxation) {
  return GateFinder(flat, relaxation).run();
}

std::vector<double> shared_param_bytes(const FlatProblem& flat) {
  std::vector<double> users(flat.num_params(), 0), bytes(flat.num_ops(), 0);
  for (size_t v = 0; v < flat.num_ops(); ++v) {
    for (const uint32_t p : flat.params(v)) ++users[p];
  }
  for (size_t v = 0; v < flat.num_ops(); ++v) {
    for (const uint32_t p : flat.params(v)) bytes[v] += static_cast<double>(flat.param_bytes(p)) / users[p];
  }
  return bytes;
}

}  // namespace heddle
