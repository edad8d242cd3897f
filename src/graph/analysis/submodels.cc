#include "heddle/graph/submodels.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

#include "heddle/graph/analysis.h"
#include "heddle/graph/gcof.h"

namespace heddle {
namespace {

// Every path from a source to a sink passes through each partition op. So every op is before or after each of
// them, and its position in any topological order tells which. `cuts` are partition ops.
Submodels submodels_between(const Graph& graph, const std::vector<OpId>& cuts, int cuts_each) {
  const auto per = static_cast<size_t>(std::max(cuts_each, 1));
  std::vector<int> places;
  for (const OpId op : cuts) places.push_back(graph.topological_position(op));
  Submodels result;
  for (size_t v = 0; v < graph.num_ops(); ++v) {
    const int place = graph.topological_position(OpId(v));
    const auto before = std::lower_bound(places.begin(), places.end(), place) - places.begin();
    result.of_op.push_back(static_cast<int>(static_cast<size_t>(before) / per));
    result.count = std::max(result.count, result.of_op.back() + 1);
  }
  result.output.assign(static_cast<size_t>(result.count), OpId());
  for (const OpId op : cuts) result.output[static_cast<size_t>(result.of_op[op.index()])] = op;
  // Ops after the last partition op: they end in several sinks, so there is no single output.
  if (!cuts.empty() && result.count > 0) {
    const bool ends = graph.successors(cuts.back()).empty();
    if (!ends && result.of_op[cuts.back().index()] == result.count - 1) result.output.back() = OpId();
  }
  return result;
}

}  // namespace

// An op is on every path if no edge passes over it, no op after it is a source, and no op before it is a
// sink.
std::vector<OpId> partition_ops(const Graph& graph, const std::vector<uint8_t>& prologue) {
  const auto outside = [&](OpId v) { return prologue.empty() || prologue[v.index()] == 0; };
  std::vector<OpId> rest, ops;
  std::ranges::copy_if(graph.topological_order(), std::back_inserter(rest), outside);
  int farthest = -1, last_source = -1, first_sink = INT32_MAX;
  for (const OpId v : rest) {
    if (std::ranges::none_of(graph.predecessors(v), outside)) last_source = graph.topological_position(v);
    if (graph.successors(v).empty()) first_sink = std::min(first_sink, graph.topological_position(v));
  }
  for (const OpId v : rest) {
    const int place = graph.topological_position(v);
    if (farthest <= place && last_source <= place && first_sink >= place) ops.push_back(v);
    for (const OpId w : graph.successors(v)) farthest = std::max(farthest, graph.topological_position(w));
  }
  return ops;
}

std::vector<CutPoint> cut_points(const Graph& graph) {
  const double total = std::max(1.0, graph.total_flops());
  const auto ops = partition_ops(graph);
  std::vector<CutPoint> points;
  double flops = 0;
  auto next = ops.begin();
  for (const OpId v : graph.topological_order()) {
    flops += graph.op(v).flops;
    if (next == ops.end() || *next != v) continue;
    ++next;
    if (graph.successors(v).empty()) continue;
    int64_t bytes = 0;
    for (const auto t : graph.op(v).outputs)
      if (!graph.tensor(t).consumers.empty()) bytes += graph.tensor(t).bytes;
    points.push_back({v, bytes, flops / total});
  }
  return points;
}

std::vector<uint8_t> light_prologue(const Graph& graph) {
  constexpr double kShare = 0.01;
  std::vector<uint8_t> light(graph.num_ops(), 0);
  double all_bytes = 0;
  for (const Op& op : graph.ops()) all_bytes += static_cast<double>(op.bytes_accessed);
  double flops = kShare * graph.total_flops(), bytes = kShare * all_bytes;
  double params = kShare * static_cast<double>(graph.total_param_bytes());
  if (!(flops > 0) || !(bytes > 0)) return light;
  for (const OpId v : graph.topological_order()) {
    const auto before = graph.predecessors(v);
    if (!std::all_of(before.begin(), before.end(), [&](OpId u) { return light[u.index()] != 0; })) continue;
    const Op& op = graph.op(v);
    double own = 0;
    for (const ParamId p : op.params) own += static_cast<double>(graph.param(p).bytes);
    const auto accessed = static_cast<double>(op.bytes_accessed);
    if (op.flops > flops || accessed > bytes || own > params || graph.successors(v).empty()) continue;
    light[v.index()] = 1;
    flops -= op.flops;
    bytes -= accessed;
    params -= own;
  }
  return light;
}

Submodels dominator_submodels(const Graph& graph, const std::vector<uint8_t>& prologue, int dominators) {
  Submodels result = submodels_between(graph, partition_ops(graph, prologue), dominators);
  for (size_t v = 0; v < prologue.size(); ++v) {
    if (prologue[v]) result.of_op[v] = 0;
  }
  return result;
}

Submodels dominator_submodels(const Graph& graph, int dominators) {
  return dominator_submodels(graph, {}, dominators);
}

Submodels articulation_submodels(const Graph& graph, int points) {
  const std::vector<OpId> joints = articulation_points(graph);
  std::vector<OpId> cuts = partition_ops(graph);
  std::erase_if(cuts, [&](OpId op) {
    return !graph.successors(op).empty() && !std::binary_search(joints.begin(), joints.end(), op);
  });
  return submodels_between(graph, cuts, points);
}

Submodels fused_submodels(const Graph& graph, int groups) {
  const std::vector<int> group = fuse_ops(graph, default_fusion_rules());
  std::map<int, int> last;  // position of each group's last op
  for (size_t v = 0; v < graph.num_ops(); ++v) {
    int& place = last.insert({group[v], -1}).first->second;
    place = std::max(place, graph.topological_position(OpId(v)));
  }
  std::vector<OpId> cuts = partition_ops(graph);
  std::erase_if(cuts, [&](OpId op) {
    return !graph.successors(op).empty() && last[group[op.index()]] != graph.topological_position(op);
  });
  return submodels_between(graph, cuts, groups);
}

int dominators_for_size(const Graph& graph, size_t max_ops) {
  const Submodels finest = dominator_submodels(graph, 1);
  std::vector<size_t> before(static_cast<size_t>(finest.count) + 1, 0);  // number of ops in earlier pieces
  for (const int piece : finest.of_op) ++before[static_cast<size_t>(piece) + 1];
  for (size_t i = 1; i < before.size(); ++i) before[i] += before[i - 1];
  const auto pieces = static_cast<size_t>(finest.count);
  int best = 1;
  for (size_t per = 2; per <= pieces; ++per) {
    bool fits = true;
    for (size_t i = 0; fits && i < pieces; i += per)
      fits = before[std::min(i + per, pieces)] - before[i] <= max_ops;
    if (fits) best = static_cast<int>(per);
  }
  return best;
}

}  // namespace heddle
