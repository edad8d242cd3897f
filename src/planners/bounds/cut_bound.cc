#include "cut_bound.h"

#include <algorithm>
#include <cmath>

#include "gates.h"
#include "max_flow.h"

namespace heddle {
namespace {

// Cuts that all gates share, and at least for each one; steps of the multipliers.
constexpr int kRounds = 240, kLeastRounds = 8, kMostRounds = 60, kPatience = 4;
constexpr double kFirstStep = 0.5, kShrink = 0.6, kLeastStep = 1e-3;
// Beyond so many (op, device) pairs and reads a cut takes seconds.
constexpr double kMostSize = 4e6;
// Capacities that are used up: relative to their sum.
constexpr double kSmallest = 1e-13;
// Rounding of flows over many arcs.
constexpr double kCutSafety = 1e-9;

class GateCut {
 public:
  GateCut(const FlatProblem& flat, const Relaxation& relaxation, const Gate& gate,
          const std::vector<double>& params)
      : flat_(flat),
        r_(relaxation),
        gate_(gate),
        params_(params),
        n_(flat.num_ops()),
        k_(flat.num_devices()) {
    // Free passage to devices outside would need a third side.
    out_ = gate.out && gate.free_out == gate.inside;
    in_ = gate.in && gate.free_in == gate.inside;
    weights_.assign(r_.exclusive.size() + 1, 1);
  }
  bool useful() const {
    const auto inside = std::count(gate_.inside.begin(), gate_.inside.end(), 1);
    return (out_ || in_) && inside > 0 && static_cast<size_t>(inside) < k_;
  }

  double best_us(int rounds, const Deadline& deadline) {
    double best = 0, step = kFirstStep;
    std::vector<double> best_weights = weights_;
    int since = 0;
    for (int round = 0; round < rounds && step > kLeastStep; ++round) {
      if (round > 0 && deadline.should_stop()) break;
      const double us = evaluate();
      if (us > best) {
        since = us > best * (1 + 1e-6) ? 0 : since + 1;
        best = us;
        best_weights = weights_;
      } else {
        ++since;
      }
      if (since >= kPatience) {
        step *= kShrink;
        since = 0;
        weights_ = best_weights;
        evaluate();
      }
      const double level = std::max(best, 1e-300);
      for (size_t s = 0; s < weights_.size(); ++s) {
        const double excess = std::clamp(loads_[s] / level - 1, -1.0, 4.0);
        weights_[s] = std::max(weights_[s] * std::exp(step * excess), 1e-12);
      }
    }
    return best;
  }

 private:
  // The cheapest device of an op on either side under the present weights.
  struct Place {
    double cost = kImpossible;
    uint32_t device = 0;
  };

  double evaluate() {
    double sum = 0;
    for (const double w : weights_) sum += w;
    for (double& w : weights_) w /= sum;
    per_us_.assign(k_, 0);
    for (size_t s = 0; s < r_.exclusive.size(); ++s) {
      for (const uint32_t i : r_.exclusive[s]) per_us_[i] += weights_[s];
    }
    const double gate_weight = weights_.back();
    // Vertices: ops, then a pair for each tensor that leaves and enters, source and sink.
    const size_t tensors = flat_.num_tensors(), source = n_ + 2 * tensors, sink = source + 1;
    MaxFlow flow(sink + 1);
    places_.assign(2 * n_, {});
    double whole = 0, sure = 0;
    for (size_t v = 0; v < n_; ++v) {
      for (uint32_t i = 0; i < k_; ++i) {
        const double t = r_.t(v, i);
        if (!std::isfinite(t)) continue;
        const double cost = t * per_us_[i] + gate_weight * params_[v] * gate_.load_us_per_byte[i];
        Place& place = places_[2 * v + (gate_.inside[i] ? 0 : 1)];
        if (cost < place.cost) place = {cost, i};
      }
      const double here = places_[2 * v].cost, there = places_[2 * v + 1].cost;
      // Only the difference has to flow.
      const double common = std::min(here, there);
      sure += common;
      if (there > common) flow.connect(source, v, there - common);
      if (here > common) flow.connect(v, sink, here - common);
      if (std::isfinite(here) && std::isfinite(there)) whole += std::fabs(here - there);
    }
    for (size_t t = 0; t < tensors; ++t) {
      const uint32_t u = flat_.producer(t);
      const double cost = gate_weight * gate_.us(flat_.bytes(t));
      if (u == UINT32_MAX || flat_.readers(t).empty() || !(cost > 0)) continue;
      whole += cost;
      const size_t leaves = n_ + 2 * t, enters = leaves + 1;
      if (out_) flow.connect(u, leaves, cost);
      if (in_) flow.connect(enters, u, cost);
      for (const uint32_t w : flat_.readers(t)) {
        if (w == u) continue;
        if (out_) flow.connect(leaves, w, kImpossible);
        if (in_) flow.connect(w, enters, kImpossible);
      }
    }
    const double cut = flow.run(source, sink, kImpossible, (whole + sure) * kSmallest);
    add_loads(flow);
    return sure + cut;
  }

  void add_loads(const MaxFlow& flow) {
    loads_.assign(weights_.size(), 0);
    std::vector<double> busy(k_, 0);
    double& passing = loads_.back();
    const auto inside = [&](size_t v) { return flow.on_source_side(v); };
    for (size_t v = 0; v < n_; ++v) {
      const uint32_t i = places_[2 * v + (inside(v) ? 0 : 1)].device;
      if (std::isfinite(r_.t(v, i))) busy[i] += r_.t(v, i);
      passing += params_[v] * gate_.load_us_per_byte[i];
    }
    for (size_t s = 0; s < r_.exclusive.size(); ++s) {
      for (const uint32_t i : r_.exclusive[s]) loads_[s] += busy[i];
    }
    for (size_t t = 0; t < flat_.num_tensors(); ++t) {
      const uint32_t u = flat_.producer(t);
      if (u == UINT32_MAX) continue;
      const bool made_inside = inside(u);
      if (made_inside ? !out_ : !in_) continue;
      for (const uint32_t w : flat_.readers(t)) {
        if (inside(w) == made_inside) continue;
        passing += gate_.us(flat_.bytes(t));
        break;
      }
    }
  }

  const FlatProblem& flat_;
  const Relaxation& r_;
  const Gate& gate_;
  const std::vector<double>& params_;
  const size_t n_, k_;
  bool out_ = false, in_ = false;
  std::vector<double> weights_, loads_;  // of the exclusive sets, and last of the gate
  std::vector<double> per_us_;
  std::vector<Place> places_;  // per op: inside, outside
};

}  // namespace

Bound cut_bound(const FlatProblem& flat, const Relaxation& relaxation, double known_us,
                const Deadline& deadline) {
  Bound best{0, "minimum cut"};
  const auto k = static_cast<double>(flat.num_devices());
  if (static_cast<double>(flat.num_ops()) * k + static_cast<double>(flat.num_reads()) > kMostSize ||
      flat.num_ops() == 0)
    return best;
  const std::vector<double> params = shared_param_bytes(flat);
  const std::vector<Gate> gates = find_gates(flat, relaxation);
  std::vector<GateCut> cuts;
  for (const Gate& gate : gates) {
    GateCut cut(flat, relaxation, gate, params);
    if (cut.useful()) cuts.push_back(std::move(cut));
  }
  if (cuts.empty()) return best;
  const int rounds = std::clamp(kRounds / static_cast<int>(cuts.size()), kLeastRounds, kMostRounds);
  for (GateCut& cut : cuts) {
    if (deadline.should_stop()) break;
    const double us = cut.best_us(rounds, deadline) * (1 - kCutSafety);
    if (us > known_us && us > best.us) best.us = us;
  }
  return best;
}

}  // namespace heddle
