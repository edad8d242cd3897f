// Communication-aware longest paths: L and R of docs/bounds.md, section 2.
#include <algorithm>

#include "bound_blocks.h"
#include "bound_tables.h"
#include "heddle/base/units.h"

namespace heddle {
namespace {

// Up to this many (tensor read, device, device) triples, every pair of devices is examined. Beyond, two cases
// remain: the tensor stays, or it moves over the best route into or out of the device.
constexpr double kMostPairs = 3e7;

class Paths {
 public:
  Paths(const BoundTables& tables, std::span<const Block> blocks)
      : b_(tables),
        k_(tables.devices.size()),
        blocks_(blocks),
        ends_at_(tables.problem.graph->num_ops()),
        starts_at_(ends_at_.size()) {
    for (uint32_t i = 0; i < blocks.size(); ++i) {
      ends_at_[blocks[i].join].push_back(i);
      starts_at_[blocks[i].fork].push_back(i);
    }
    size_t reads = 0;
    for (size_t v = 0; v < b_.problem.graph->num_ops(); ++v) reads += b_.flat.inputs(v).size();
    all_pairs_ = static_cast<double>(reads) * static_cast<double>(k_ * k_) <= kMostPairs;
    if (!all_pairs_) find_best_rates();
  }

  PathBounds compute() {
    const Graph& graph = *b_.problem.graph;
    const size_t n = graph.num_ops();
    PathBounds r;
    r.finish.assign(n * k_, 0);
    r.rest.assign(n * k_, 0);
    r.start.assign(n * k_, 0);
    for (const OpId op : graph.topological_order()) forward(op.index(), r);
    const auto order = graph.topological_order();
    for (size_t i = n; i-- > 0;) backward(order[i].index(), r);
    for (size_t v = 0; v < n; ++v) {
      double through = kInfinity;
      for (size_t i = 0; i < k_; ++i) {
        if (b_.path_t(v, i) < kInfinity)
          through = std::min(through, r.finish[v * k_ + i] + r.rest[v * k_ + i] - b_.path_t(v, i));
      }
      r.best = std::max(r.best, through);
    }
    // In a stage an op's virtual interval is shorter than the stage; times before and after do not change.
    for (size_t i = 0; i < n * k_; ++i) {
      if (!(b_.path_time[i] < kInfinity)) continue;
      const double less = b_.path_time[i] - b_.time[i];
      r.finish[i] -= less;
      r.rest[i] -= less;
    }
    return r;
  }

 private:
  void find_best_rates() {
    in_.assign(k_, {kInfinity, kInfinity});
    out_ = in_;
    for (size_t i = 0; i < k_; ++i) {
      for (size_t j = 0; j < k_; ++j) {
        if (i == j) continue;
        const TransferRate& w = b_.rate(i, j);
        improve(in_[j], w);
        improve(out_[i], w);
      }
    }
  }
  static void improve(TransferRate& best, const TransferRate& w) {
    best.latency_us = std::min(best.latency_us, w.latency_us);
    if (w.latency_us < kInfinity) best.us_per_byte = std::min(best.us_per_byte, w.us_per_byte);
  }

  // floor_[i] = max(floor_[i], min over j of values[j] + transfer time).
  void raise(const double* values, double bytes, bool is_forward) {
    if (all_pairs_) {
      for (size_t i = 0; i < k_; ++i) {
        double least = kInfinity;
        for (size_t j = 0; j < k_; ++j) {
          const TransferRate& w = is_forward ? b_.rate(j, i) : b_.rate(i, j);
          least = std::min(least, values[j] + w.us(bytes));
        }
        floor_[i] = std::max(floor_[i], least);
      }
      return;
    }
    const double any = *std::min_element(values, values + k_);
    for (size_t i = 0; i < k_; ++i) {
      const TransferRate& w = is_forward ? in_[i] : out_[i];
      const double moved = w.latency_us < kInfinity ? any + w.us(bytes) : kInfinity;
      floor_[i] = std::max(floor_[i], std::min(values[i], moved));
    }
  }

  void jump(const Block& block, const double* values, bool is_forward) {
    for (size_t i = 0; i < k_; ++i) {
      double least = kInfinity;
      for (size_t j = 0; j < k_; ++j)
        least = std::min(least, values[j] + (is_forward ? block.span[j * k_ + i] : block.span[i * k_ + j]));
      floor_[i] = std::max(floor_[i], least);
    }
  }

  double load_us(size_t v, size_t i) const {
    const size_t at = v * k_ + i;
    if (!b_.cold || b_.all_bytes[at] == 0 || !needs_load(*b_.problem.cluster, b_.devices[i])) return 0;
    // Loads that share a resource are serial; otherwise only bytes of one step count.
    const bool serial = !b_.load_resources[i].empty();
    return b_.loads[i].us(serial ? b_.all_bytes[at] : std::max(b_.own_bytes[at], b_.largest_param[at]));
  }

  void forward(size_t v, PathBounds& r) {
    floor_.assign(k_, 0);
    for (const uint32_t t : b_.flat.inputs(v)) {
      const auto u = static_cast<size_t>(b_.flat.producer(t));
      raise(&r.finish[u * k_], static_cast<double>(b_.flat.bytes(t)), /*is_forward=*/true);
    }
    for (const uint32_t n : ends_at_[v]) jump(blocks_[n], &r.finish[blocks_[n].fork * k_], true);
    for (size_t i = 0; i < k_; ++i) {
      const size_t at = v * k_ + i;
      const double usual = b_.has_host_access() ? b_.loaded_path_time[at] : b_.path_time[at];
      r.start[at] = std::max(floor_[i], load_us(v, i));
      r.finish[at] = usual + r.start[at];
      if (!b_.has_host_access() || !(b_.host_time[at] < kInfinity)) continue;
      r.finish[at] = std::min(r.finish[at], b_.host_time[at] + floor_[i]);
      r.start[at] = floor_[i];
    }
  }

  void backward(size_t v, PathBounds& r) {
    floor_.assign(k_, 0);
    for (const uint32_t t : b_.flat.outputs(v)) {
      for (const OpId w : b_.problem.graph->tensors()[t].consumers) {
        raise(&r.rest[w.index() * k_], static_cast<double>(b_.flat.bytes(t)), /*is_forward=*/false);
      }
    }
    for (const uint32_t n : starts_at_[v]) jump(blocks_[n], &r.rest[blocks_[n].join * k_], false);
    for (size_t i = 0; i < k_; ++i) r.rest[v * k_ + i] = b_.path_t(v, i) + floor_[i];
  }

  const BoundTables& b_;
  const size_t k_;
  const std::span<const Block> blocks_;
  std::vector<std::vector<uint32_t>> ends_at_, starts_at_;  // blocks by join, and by fork
  bool all_pairs_ = true;
  std::vector<TransferRate> in_, out_;  // per device: the best route from, or to, any other
  std::vector<double> floor_;
};

}  // namespace

PathBounds path_bounds(const BoundTables& tables, std::span<const Block> blocks) {
  return Paths(tables, blocks).compute();
}

}  // namespace heddle
