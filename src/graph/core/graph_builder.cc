// GraphBuilder::build(): validates, then derives the rest of a Graph (consumers, adjacency, order, name
// indices).
#include <algorithm>
#include <functional>
#include <limits>
#include <queue>

#include "heddle/graph/graph.h"
#include "validate.h"

namespace heddle {
namespace {

constexpr size_t kMaxCount = std::numeric_limits<int32_t>::max();  // ids are 32 bit
constexpr size_t kCycleNames = 12;  // names of a cycle's ops shown in a message

template <class Item>
Result<std::vector<uint32_t>> index_items(const std::vector<Item>& items, const char* what) {
  std::vector<std::string_view> names;
  names.reserve(items.size());
  for (const Item& item : items) names.push_back(item.name);
  return internal::index_names(names, what);
}

// Ops are visited in order of id, so consumers come out distinct and ascending.
void fill_consumers(const std::vector<Op>& ops, std::vector<Tensor>& tensors) {
  for (size_t i = 0; i < ops.size(); ++i) {
    const OpId op(i);
    for (const TensorId input : ops[i].inputs) {
      auto& consumers = tensors[input.index()].consumers;
      if (consumers.empty() || consumers.back() != op) consumers.push_back(op);
    }
  }
}

// All edges sorted by (src, dst). Sums cannot overflow: check_parts() bounds the sum over all tensors.
std::vector<Edge> make_edges(const std::vector<Op>& ops, const std::vector<Tensor>& tensors) {
  std::vector<Edge> edges;
  for (size_t i = 0; i < ops.size(); ++i) {
    const size_t first = edges.size();
    for (const TensorId output : ops[i].outputs) {
      const Tensor& tensor = tensors[output.index()];
      for (const OpId consumer : tensor.consumers) edges.push_back({OpId(i), consumer, tensor.bytes});
    }
    if (ops[i].outputs.size() < 2) continue;  // one tensor's consumers are sorted and distinct already
    std::sort(edges.begin() + first, edges.end(), [](const Edge& a, const Edge& b) { return a.dst < b.dst; });
    size_t last = first;
    for (size_t e = first; e < edges.size(); ++e) {
      if (last > first && edges[last - 1].dst == edges[e].dst)
        edges[last - 1].bytes += edges[e].bytes;
      else
        edges[last++] = edges[e];
    }
    edges.resize(last);
  }
  return edges;
}

struct Adjacency {
  std::vector<uint32_t> begin;
  std::vector<OpId> ops;
};

// CSR rows: for each op `key(edge)`, the ops `other(edge)`. Edges are sorted by (src, dst), so every row
// ascends.
template <class Key, class Other>
Adjacency make_adjacency(size_t num_ops, const std::vector<Edge>& edges, Key key, Other other) {
  Adjacency result;
  result.begin.assign(num_ops + 1, 0);
  for (const Edge& edge : edges) ++result.begin[key(edge).index() + 1];
  for (size_t i = 0; i < num_ops; ++i) result.begin[i + 1] += result.begin[i];
  std::vector<uint32_t> next(result.begin.begin(), result.begin.end() - 1);
  result.ops.resize(edges.size());
  for (const Edge& edge : edges) result.ops[next[key(edge).index()]++] = other(edge);
  return result;
}

// Topological order, smallest id first among ready ops; shorter than num_ops if there is a cycle.
std::vector<OpId> order_ops(size_t num_ops, const Adjacency& preds, const Adjacency& succs) {
  std::vector<uint32_t> waiting(num_ops);
  std::priority_queue<OpId, std::vector<OpId>, std::greater<>> ready;
  for (size_t i = 0; i < num_ops; ++i) {
    waiting[i] = preds.begin[i + 1] - preds.begin[i];
    if (waiting[i] == 0) ready.push(OpId(i));
  }
  std::vector<OpId> order;
  order.reserve(num_ops);
  while (!ready.empty()) {
    const OpId op = ready.top();
    ready.pop();
    order.push_back(op);
    for (uint32_t e = succs.begin[op.index()]; e < succs.begin[op.index() + 1]; ++e)
      if (--waiting[succs.ops[e].index()] == 0) ready.push(succs.ops[e]);
  }
  return order;
}

// Walks backwards through ops that never became ready (each has such a predecessor) until one repeats.
Error cycle_error(const std::vector<Op>& ops, const Adjacency& preds, const std::vector<OpId>& order) {
  std::vector<bool> ordered(ops.size(), false);
  for (const OpId op : order) ordered[op.index()] = true;
  size_t at = std::find(ordered.begin(), ordered.end(), false) - ordered.begin();
  std::vector<size_t> walk;
  std::vector<bool> seen(ops.size(), false);
  while (!seen[at]) {
    seen[at] = true;
    walk.push_back(at);
    for (uint32_t e = preds.begin[at]; e < preds.begin[at + 1]; ++e) {
      if (ordered[preds.ops[e].index()]) continue;
      at = preds.ops[e].index();
      break;
    }
  }
  // The cycle is the end of the walk, from `at` on, in reverse.
  const auto start = std::find(walk.begin(), walk.end(), at);
  std::vector<size_t> cycle(start, walk.end());
  std::reverse(cycle.begin() + 1, cycle.end());
  std::string text;
  for (size_t i = 0; i < std::min(cycle.size(), kCycleNames); ++i) text += "'" + ops[cycle[i]].name + "' -> ";
  if (cycle.size() > kCycleNames) text += "(" + std::to_string(cycle.size() - kCycleNames) + " more) -> ";
  return invalid_input("the graph has a cycle: " + text + "'" + ops[cycle[0]].name + "'");
}

}  // namespace

Result<std::shared_ptr<const Graph>> GraphBuilder::build() {
  const std::string place = "graph '" + graph_.name_ + "'";
  auto built = build_parts();
  if (!built.ok()) return std::move(built).error().with_context(place);
  return built;
}

Result<std::shared_ptr<const Graph>> GraphBuilder::build_parts() {
  Graph g = std::move(graph_);
  graph_ = Graph();
  if (g.ops_.size() > kMaxCount || g.tensors_.size() > kMaxCount || g.params_.size() > kMaxCount)
    return invalid_input("a graph holds at most 2^31 - 1 ops, tensors and parameters each");
  HEDDLE_ASSIGN_OR_RETURN(g.ops_by_name_, index_items(g.ops_, "op"));
  HEDDLE_ASSIGN_OR_RETURN(g.tensors_by_name_, index_items(g.tensors_, "tensor"));
  const auto params_by_name = index_items(g.params_, "parameter");
  if (!params_by_name) return params_by_name.error();
  HEDDLE_RETURN_IF_ERROR(internal::check_parts(g.ops_, g.tensors_, g.params_, g.outputs_));

  fill_consumers(g.ops_, g.tensors_);
  g.edges_ = make_edges(g.ops_, g.tensors_);
  if (g.edges_.size() > kMaxCount) return invalid_input("a graph holds at most 2^31 - 1 edges");
  const size_t n = g.ops_.size();
  const auto src = [](const Edge& e) { return e.src; };
  const auto dst = [](const Edge& e) { return e.dst; };
  Adjacency preds = make_adjacency(n, g.edges_, dst, src);
  Adjacency succs = make_adjacency(n, g.edges_, src, dst);
  g.topo_ = order_ops(n, preds, succs);
  if (g.topo_.size() < n) return cycle_error(g.ops_, preds, g.topo_);
  g.topo_position_.resize(n);
  for (size_t i = 0; i < n; ++i) g.topo_position_[g.topo_[i].index()] = static_cast<int>(i);
  g.pred_begin_ = std::move(preds.begin);
  g.pred_ops_ = std::move(preds.ops);
  g.succ_begin_ = std::move(succs.begin);
  g.succ_ops_ = std::move(succs.ops);
  return std::shared_ptr<const Graph>(std::make_shared<Graph>(std::move(g)));
}

}  // namespace heddle
