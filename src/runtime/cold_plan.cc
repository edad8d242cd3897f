#include "heddle/runtime/cold_plan.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "heddle/plan/builder.h"
#include "heddle/runtime/profiler.h"

namespace heddle {
namespace {

constexpr double kBytesPerOp = 1 << 20;
// Where the number of segments is not given: the least weight of each, and the most segments.
constexpr double kLeastWeight = 100;
constexpr double kMostUsual = 4;
// How far from its place, in slices, a border may be for a better cut.
constexpr double kReach = 0.3;

DeviceId largest_device(const Problem& problem) {
  DeviceId best;
  for (const DeviceId d : problem.usable_devices()) {
    if (!best.valid() || problem.cluster->device(d).cores.size() > problem.cluster->device(best).cores.size())
      best = d;
  }
  return best;
}

struct Cut {
  int64_t tensors = 0, bytes = 0;
};

// What crosses after each place of the order.
std::vector<Cut> crossings(const Graph& graph, std::span<const OpId> order) {
  std::vector<size_t> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) place[order[i].index()] = i;
  std::vector<Cut> cuts(order.size() + 1);
  for (size_t t = 0; t < graph.num_tensors(); ++t) {
    const Tensor& tensor = graph.tensor(TensorId(t));
    if (!tensor.producer.valid() || tensor.consumers.empty()) continue;
    size_t last = 0;
    for (const OpId reader : tensor.consumers) last = std::max(last, place[reader.index()]);
    const size_t from = place[tensor.producer.index()];
    // Prefix sums below: from here on, until before its last reader.
    ++cuts[from].tensors;
    cuts[from].bytes += tensor.bytes;
    --cuts[last].tensors;
    cuts[last].bytes -= tensor.bytes;
  }
  for (size_t i = 1; i < cuts.size(); ++i) {
    cuts[i].tensors += cuts[i - 1].tensors;
    cuts[i].bytes += cuts[i - 1].bytes;
  }
  return cuts;
}

// The op's own share of compiling, counting a shared parameter at its first reader.
std::vector<double> prefix_weights(const Graph& graph, std::span<const OpId> order) {
  std::vector<double> prefix = {0};
  std::set<ParamId> seen;
  for (const OpId op : order) {
    double weight = static_cast<double>(std::max<size_t>(finest_ops(graph, std::span(&op, 1)).size(), 1));
    for (const ParamId p : graph.op(op).params) {
      if (seen.insert(p).second) weight += static_cast<double>(graph.param(p).bytes) / kBytesPerOp;
    }
    prefix.push_back(prefix.back() + weight);
  }
  return prefix;
}

// After which place of the order each segment but the last ends; ascending, distinct.
std::vector<size_t> choose_borders(const Graph& graph, std::span<const OpId> order, int segments) {
  const auto prefix = prefix_weights(graph, order);
  const auto cuts = crossings(graph, order);
  if (segments == 0) segments = static_cast<int>(std::clamp(prefix.back() / kLeastWeight, 1.0, kMostUsual));
  const double slice = prefix.back() / segments;
  std::vector<size_t> borders;
  for (int b = 1; b < segments; ++b) {
    const double ideal = slice * b;
    size_t best = order.size();
    std::tuple<int64_t, int64_t, double> best_cost;
    for (size_t i = borders.empty() ? 0 : borders.back() + 1; i + 1 < order.size(); ++i) {
      const double distance = std::fabs(prefix[i + 1] - ideal);
      if (distance > kReach * slice) continue;
      const auto cost = std::make_tuple(cuts[i].tensors, cuts[i].bytes, distance);
      if (best == order.size() || cost < best_cost) {
        best = i;
        best_cost = cost;
      }
    }
    // One op may be more than a slice: then there is no border to be had here.
    if (best < order.size()) borders.push_back(best);
  }
  return borders;
}

}  // namespace

Result<Plan> cold_plan(const Problem& problem, const ColdPlanOptions& options) {
  if (options.segments < 0)
    return Error(Code::kInvalidInput,
                 "a plan needs at least one segment, not " + std::to_string(options.segments));
  const DeviceId device = options.device.valid() ? options.device : largest_device(problem);
  if (!device.valid()) return Error(Code::kInvalidInput, "there is no usable device");
  const auto order = problem.graph->topological_order();
  Assignment a;
  a.order.assign(order.begin(), order.end());
  a.device.assign(order.size(), device);
  a.segment.resize(order.size());
  const auto borders = choose_borders(*problem.graph, order, options.segments);
  size_t segment = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    a.segment[order[i].index()] = static_cast<int>(segment);
    if (segment < borders.size() && borders[segment] == i) ++segment;
  }
  return build_plan(problem, a);
}

}  // namespace heddle
