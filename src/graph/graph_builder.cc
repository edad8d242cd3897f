#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>

#include "heddle/graph/graph.h"

namespace heddle {
namespace {

Error invalid(const std::string& graph, const std::string& message) {
  return Error(Code::kInvalidInput, "graph '" + graph + "': " + message);
}

template <class Item>
Result<std::vector<uint32_t>> index_names(const std::vector<Item>& items, const std::string& graph, const char* what) {
  std::vector<uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const int c = items[a].name.compare(items[b].name);
    return c != 0 ? c < 0 : a < b;
  });
  for (size_t i = 0; i < order.size(); ++i) {
    const auto& name = items[order[i]].name;
    if (name.empty()) return invalid(graph, std::string(what) + " " + std::to_string(order[i]) + " has no name");
    if (i > 0 && items[order[i - 1]].name == name) return invalid(graph, std::string("two ") + what + "s are named '" + name + "'");
  }
  return order;
}

bool bad_amount(double v) { return !std::isfinite(v) || v < 0; }

Status check_op(const Op& op, size_t num_tensors, size_t num_params, const std::string& graph) {
  const auto fail = [&](const std::string& what) { return invalid(graph, "op '" + op.name + "': " + what); };
  for (const auto t : op.inputs) {
    if (!t.valid() || t.index() >= num_tensors) return fail("reads tensor " + std::to_string(t.value) + ", which does not exist");
  }
  std::vector<ParamId> params = op.params;
  std::sort(params.begin(), params.end());
  for (size_t i = 0; i < params.size(); ++i) {
    if (!params[i].valid() || params[i].index() >= num_params) return fail("uses parameter " + std::to_string(params[i].value) + ", which does not exist");
    if (i > 0 && params[i] == params[i - 1]) return fail("lists parameter " + std::to_string(params[i].value) + " twice");
  }
  if (bad_amount(op.flops)) return fail("flops must be a finite number of at least 0");
  if (op.bytes_accessed < 0) return fail("bytes_accessed must be at least 0");
  if (!(op.utilization > 0 && op.utilization <= 1)) return fail("utilization must be above 0 and at most 1");
  for (const auto& g : op.given_times) {
    if (bad_amount(g.us)) return fail("the time on '" + g.device_class + "' must be a finite number of at least 0");
  }
  return {};
}

// The ops of one cycle, for the message: walk backwards among those that the topological sort left over.
std::string describe_cycle(const std::vector<Op>& ops, const std::vector<uint32_t>& begin, const std::vector<OpId>& preds,
                           const std::vector<int>& indegree) {
  std::vector<int> seen(ops.size(), -1);
  std::vector<size_t> walk;
  size_t v = 0;
  while (indegree[v] == 0) ++v;
  while (seen[v] < 0) {
    seen[v] = static_cast<int>(walk.size());
    walk.push_back(v);
    for (uint32_t i = begin[v]; i < begin[v + 1]; ++i) {
      if (indegree[preds[i].index()] > 0) {
        v = preds[i].index();
        break;
      }
    }
  }
  std::vector<size_t> cycle(walk.begin() + seen[v], walk.end());
  std::reverse(cycle.begin(), cycle.end());
  constexpr size_t kShown = 6;
  std::string text;
  for (size_t i = 0; i < cycle.size() && i < kShown; ++i) text += "'" + ops[cycle[i]].name + "' -> ";
  if (cycle.size() > kShown) text += "... -> ";
  return text + "'" + ops[cycle.front()].name + "'";
}

void sort_unique(std::vector<OpId>& v) {
  std::sort(v.begin(), v.end());
  v.erase(std::unique(v.begin(), v.end()), v.end());
}

}  // namespace

ParamId GraphBuilder::add_param(Param param) {
  graph_.params_.push_back(std::move(param));
  return ParamId(graph_.params_.size() - 1);
}

TensorId GraphBuilder::add_input(std::string name, DType dtype, Shape shape) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.dtype = dtype;
  tensor.bytes = tensor_bytes(dtype, shape).value_or(-1);
  tensor.shape = std::move(shape);
  graph_.tensors_.push_back(std::move(tensor));
  const TensorId id(graph_.tensors_.size() - 1);
  graph_.inputs_.push_back(id);
  return id;
}

OpId GraphBuilder::add_op(Op op, std::vector<Tensor> outputs) {
  const OpId id(graph_.ops_.size());
  op.outputs.clear();
  for (auto& tensor : outputs) {
    tensor.producer = id;
    tensor.consumers.clear();
    if (tensor.bytes == 0) tensor.bytes = tensor_bytes(tensor.dtype, tensor.shape).value_or(-1);
    op.outputs.emplace_back(graph_.tensors_.size());
    graph_.tensors_.push_back(std::move(tensor));
  }
  graph_.ops_.push_back(std::move(op));
  return id;
}

void GraphBuilder::set_inputs(OpId op, std::vector<TensorId> inputs) { graph_.ops_[op.index()].inputs = std::move(inputs); }

Result<std::shared_ptr<const Graph>> GraphBuilder::build() {
  Graph g = std::move(graph_);
  graph_ = Graph();
  for (const auto& t : g.tensors_) {
    if (t.bytes < 0) return invalid(g.name_, "tensor '" + t.name + "' of shape " + shape_text(t.shape) + " has a negative or too large size");
  }
  for (const auto& p : g.params_) {
    if (p.bytes < 0) return invalid(g.name_, "parameter '" + p.name + "' has a negative size");
  }
  for (const auto& op : g.ops_) HEDDLE_RETURN_IF_ERROR(check_op(op, g.tensors_.size(), g.params_.size(), g.name_));
  for (const auto t : g.outputs_) {
    if (!t.valid() || t.index() >= g.tensors_.size()) return invalid(g.name_, "an output names tensor " + std::to_string(t.value) + ", which does not exist");
  }
  HEDDLE_ASSIGN_OR_RETURN(g.ops_by_name_, index_names(g.ops_, g.name_, "op"));
  HEDDLE_ASSIGN_OR_RETURN(g.tensors_by_name_, index_names(g.tensors_, g.name_, "tensor"));
  if (auto unique = index_names(g.params_, g.name_, "parameter"); !unique.ok()) return std::move(unique).error();

  const size_t n = g.ops_.size();
  for (auto& t : g.tensors_) t.consumers.clear();
  for (size_t v = 0; v < n; ++v) {
    for (const auto t : g.ops_[v].inputs) g.tensors_[t.index()].consumers.emplace_back(v);
  }
  g.succ_begin_.assign(n + 1, 0);
  g.pred_begin_.assign(n + 1, 0);
  for (auto& t : g.tensors_) sort_unique(t.consumers);
  std::vector<Edge> out;
  for (size_t v = 0; v < n; ++v) {
    out.clear();
    for (const auto t : g.ops_[v].outputs) {
      for (const auto c : g.tensors_[t.index()].consumers) out.push_back({OpId(v), c, g.tensors_[t.index()].bytes});
    }
    std::stable_sort(out.begin(), out.end(), [](const Edge& a, const Edge& b) { return a.dst < b.dst; });
    for (const auto& e : out) {
      if (g.edges_.size() > g.succ_begin_[v] && g.edges_.back().dst == e.dst) {
        g.edges_.back().bytes += e.bytes;
      } else {
        g.edges_.push_back(e);
        g.succ_ops_.push_back(e.dst);
        ++g.pred_begin_[e.dst.index() + 1];
      }
    }
    g.succ_begin_[v + 1] = static_cast<uint32_t>(g.edges_.size());
  }
  for (size_t v = 0; v < n; ++v) g.pred_begin_[v + 1] += g.pred_begin_[v];
  g.pred_ops_.resize(g.edges_.size());
  auto at = g.pred_begin_;
  for (const auto& e : g.edges_) g.pred_ops_[at[e.dst.index()]++] = e.src;

  std::vector<int> indegree(n);
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
  for (size_t v = 0; v < n; ++v) {
    indegree[v] = static_cast<int>(g.pred_begin_[v + 1] - g.pred_begin_[v]);
    if (indegree[v] == 0) ready.push(static_cast<int32_t>(v));
  }
  g.topo_position_.assign(n, -1);
  while (!ready.empty()) {
    const OpId v(ready.top());
    ready.pop();
    g.topo_position_[v.index()] = static_cast<int>(g.topo_.size());
    g.topo_.push_back(v);
    for (const auto s : g.successors(v)) {
      if (--indegree[s.index()] == 0) ready.push(s.value);
    }
  }
  if (g.topo_.size() < n) return invalid(g.name_, "has a cycle: " + describe_cycle(g.ops_, g.pred_begin_, g.pred_ops_, indegree));
  return std::shared_ptr<const Graph>(new Graph(std::move(g)));
}

}  // namespace heddle
