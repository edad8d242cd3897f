// HIOS's simulated models (HIOS, section V-A): ops in layers; neighbouring layers matched in both directions,
// then random dependencies from a layer to any later one. docs/generators.md has the definition.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "heddle/base/random.h"
#include "heddle/graph/generators.h"
#include "option_ranges.h"

namespace heddle {
namespace {

constexpr int kMaxOps = 20'000'000;
constexpr int kMaxDeps = 200'000'000;
constexpr double kTimeGrid = 10;  // times are multiples of 1/10 us
constexpr double kUtilizationGrid = 10'000;
// Random draws (with repeats) per dependency wanted; after that, the pairs not yet used are listed and drawn
// from.
constexpr int64_t kTriesPerDep = 20;

Status check_options(const LayeredOptions& o) {
  if (o.ops < o.layers) {
    return invalid_input("ops is " + std::to_string(o.ops) + ", too few for " + std::to_string(o.layers) +
                         " layers; expected at least one op a layer");
  }
  HEDDLE_RETURN_IF_ERROR(check_ranges({{"layers", o.layers, 3, kMaxOps},
                                       {"ops", o.ops, 3, kMaxOps},
                                       {"deps", o.deps, 0, kMaxDeps},
                                       {"min_us", o.min_us, 0, 1e12},
                                       {"max_us", o.max_us, o.min_us, 1e12},
                                       {"min_utilization", o.min_utilization, 1 / kUtilizationGrid, 1},
                                       {"transfer_share", o.transfer_share, 0, 1e6},
                                       {"min_transfer_us", o.min_transfer_us, 0, 1e12},
                                       {"link_bytes_per_s", o.link_bytes_per_s, 1, 1e15},
                                       {"device_spread", o.device_spread, 0, 0.999}}));
  for (const auto& [name, factor] : o.device_class_factors) {
    if (name.empty()) return invalid_input("a device class has no name");
    HEDDLE_RETURN_IF_ERROR(check_ranges({{"factor of class '" + name + "'", factor, 1e-9, 1e9}}));
  }
  return {};
}

using Layers = std::vector<std::vector<int>>;

// Layer 0 holds op 0, the last layer op n-1. The others get ids in several passes over the layers, so that
// ids are not in topological order. A layer gets at least ceil(L/2) and at most 10 L ops; if that minimum
// does not fit (the paper's own L = 22 with 200 ops), the largest minimum that fits is used.
Result<Layers> deal_ops(const LayeredOptions& o, Random& random) {
  const int64_t between = o.layers - 2, last = o.ops - 1;
  const int64_t least = std::min((int64_t{o.layers} + 1) / 2, (last - 1) / between),
                most = int64_t{10} * o.layers;
  if (between * most < last - 1) {
    return invalid_input("ops is " + std::to_string(o.ops) + ", too many for " + std::to_string(o.layers) +
                         " layers of at most " + std::to_string(most) + "; give more layers");
  }
  Layers layers(static_cast<size_t>(o.layers));
  layers.front() = {0};
  layers.back() = {static_cast<int>(last)};
  for (int next = 1; next < last;) {
    for (size_t i = 1; i + 1 < layers.size() && next < last; ++i) {
      const auto size = static_cast<int64_t>(layers[i].size());
      const int64_t lo = std::max<int64_t>(least - size, 0), hi = std::max(lo, std::min(least, most - size));
      const int64_t count = std::min(random.between(lo, hi), last - next);
      for (int64_t k = 0; k < count; ++k) layers[i].push_back(next++);
    }
  }
  return layers;
}

class EdgeMaker {
 public:
  EdgeMaker(const Layers& layers, const LayeredOptions& o, Random& random)
      : layers_(layers),
        random_(random),
        preds_(static_cast<size_t>(o.ops)),
        deps_(o.deps > 0 ? o.deps : int64_t{2} * o.ops),
        at_most_(o.deps == 0) {
    seen_.reserve(static_cast<size_t>(deps_));
  }

  // The predecessors of each op, in drawing order.
  Result<std::vector<std::vector<int>>> make() {
    for (size_t a = 0; a + 1 < layers_.size(); ++a) {
      for (const int src : layers_[a]) add(src, pick(layers_[a + 1]));
      for (const int dst : layers_[a + 1]) add(pick(layers_[a]), dst);
    }
    if (count() > deps_) {
      return invalid_input("deps is " + std::to_string(deps_) + ", but neighbouring layers need " +
                           std::to_string(count()) +
                           "; give at least that many (twice the ops always suffices)");
    }
    const int64_t room = count_room();
    if (at_most_) deps_ = std::min(deps_, room);
    if (deps_ > room) {
      return invalid_input("deps is " + std::to_string(deps_) + ", but these layers allow only " +
                           std::to_string(room));
    }
    for (int64_t tries = kTriesPerDep * deps_; count() < deps_ && tries > 0; --tries) add_random();
    if (count() < deps_) add_from_rest();
    return std::move(preds_);
  }

 private:
  int64_t count() const { return static_cast<int64_t>(seen_.size()); }
  int pick(const std::vector<int>& layer) { return layer[random_.below(layer.size())]; }
  void add(int src, int dst) {
    const uint64_t key = (static_cast<uint64_t>(src) << 32) | static_cast<uint64_t>(dst);
    if (seen_.insert(key).second) preds_[static_cast<size_t>(dst)].push_back(src);
  }
  void add_random() {
    const size_t a = 1 + random_.below(layers_.size() - 2), b = a + 1 + random_.below(layers_.size() - a - 1);
    const int src = pick(layers_[a]);
    add(src, pick(layers_[b]));
  }
  // The largest possible number of dependencies: op 0 keeps its current ones; each other op may precede every
  // op of a later layer.
  int64_t count_room() const {
    int64_t room = 0, later = 0;
    for (size_t i = layers_.size() - 1; i > 0; --i) {
      room += static_cast<int64_t>(layers_[i].size()) * later;
      later += static_cast<int64_t>(layers_[i].size());
    }
    for (const auto& preds : preds_) room += std::count(preds.begin(), preds.end(), 0);
    return room;
  }
  // Nearly all pairs are used, so the list of unused pairs is small compared with the dependencies.
  void add_from_rest() {
    std::vector<std::pair<int, int>> rest;
    for (size_t a = 1; a + 1 < layers_.size(); ++a)
      for (size_t b = a + 1; b < layers_.size(); ++b)
        for (const int src : layers_[a])
          for (const int dst : layers_[b])
            if (!seen_.contains((static_cast<uint64_t>(src) << 32) | static_cast<uint64_t>(dst)))
              rest.emplace_back(src, dst);
    random_.shuffle(rest);
    for (size_t i = 0; count() < deps_; ++i) add(rest[i].first, rest[i].second);
  }

  const Layers& layers_;
  Random& random_;
  std::vector<std::vector<int>> preds_;
  std::unordered_set<uint64_t> seen_;
  int64_t deps_;
  bool at_most_;  // fewer where the layers do not allow as many
};

double draw_on_grid(Random& random, double lo, double hi, double grid) {
  return static_cast<double>(random.between(std::llround(lo * grid), std::llround(hi * grid))) / grid;
}

std::vector<GivenTime> times_of(const LayeredOptions& o, double base_us, Random& random) {
  if (o.device_class_factors.empty()) return {{"*", base_us}};
  std::vector<GivenTime> times;
  for (const auto& [name, factor] : o.device_class_factors) {
    times.push_back({name, base_us * factor * random.uniform(1 - o.device_spread, 1 + o.device_spread)});
  }
  return times;
}

Result<std::vector<int64_t>> tensor_sizes(const LayeredOptions& o, size_t deps,
                                          const std::vector<double>& base_us) {
  // A tensor counts once where it is produced and at most `deps` times where it is read.
  const double most =
      static_cast<double>(kMaxGraphBytes) / (static_cast<double>(o.ops) + static_cast<double>(deps));
  std::vector<int64_t> bytes(base_us.size());
  for (size_t i = 0; i < base_us.size(); ++i) {
    const double transfer_us = std::max(o.min_transfer_us, o.transfer_share * base_us[i]);
    const double size = transfer_us * 1e-6 * o.link_bytes_per_s;
    if (size > most) {
      return invalid_input(
          fmt::format("a transfer of {} us at {} bytes/s needs tensors that are too large together; lower "
                      "link_bytes_per_s or the times",
                      transfer_us, o.link_bytes_per_s));
    }
    bytes[i] = std::llround(size);
  }
  return bytes;
}

}  // namespace

Result<std::shared_ptr<const Graph>> generate_layered(const LayeredOptions& o) {
  HEDDLE_RETURN_IF_ERROR(check_options(o));
  Random random(o.seed);
  HEDDLE_ASSIGN_OR_RETURN(const Layers layers, deal_ops(o, random));
  std::vector<double> base_us(static_cast<size_t>(o.ops)), utilization(base_us.size());
  for (size_t i = 0; i < base_us.size(); ++i) {
    base_us[i] = draw_on_grid(random, o.min_us, o.max_us, kTimeGrid);
    utilization[i] = draw_on_grid(random, o.min_utilization, 1, kUtilizationGrid);
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto preds, EdgeMaker(layers, o, random).make());
  size_t deps = 0;
  for (const auto& of : preds) deps += of.size();

  GraphBuilder builder("layered-" + std::to_string(o.ops) + "-" + std::to_string(o.layers) + "-" +
                       std::to_string(deps) + "-" + std::to_string(o.seed));
  HEDDLE_ASSIGN_OR_RETURN(const auto bytes, tensor_sizes(o, deps, base_us));
  for (size_t i = 0; i < base_us.size(); ++i) {
    Op op;
    op.name = "op" + std::to_string(i);
    op.type = "Layered";
    op.utilization = utilization[i];
    op.given_times = times_of(o, base_us[i], random);
    for (const int src : preds[i]) op.inputs.push_back(TensorId(src));  // op i produces exactly tensor i
    std::sort(op.inputs.begin(), op.inputs.end());
    op.bytes_accessed = bytes[i];
    for (const int src : preds[i]) op.bytes_accessed += bytes[static_cast<size_t>(src)];
    Tensor out;
    out.name = "t" + std::to_string(i);
    out.dtype = DType::kU8;
    out.shape = {bytes[i]};
    builder.add_op(std::move(op), {std::move(out)});
  }
  builder.add_output(TensorId(o.ops - 1));
  return builder.build();
}

}  // namespace heddle
