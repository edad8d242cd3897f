#include "heddle/plan/flat_graph.h"

namespace heddle {

FlatGraph::FlatGraph(const Graph& graph) {
  const size_t n = graph.num_ops();
  input_begin_.reserve(n + 1);
  output_begin_.reserve(n + 1);
  param_begin_.reserve(n + 1);
  producer_.reserve(graph.num_tensors());
  bytes_.reserve(graph.num_tensors());
  for (const Tensor& t : graph.tensors()) {
    producer_.push_back(t.producer.value);
    bytes_.push_back(t.bytes);
  }
  std::vector<uint32_t> last_reader(graph.num_tensors(), UINT32_MAX);
  for (size_t v = 0; v < n; ++v) {
    input_begin_.push_back(static_cast<uint32_t>(inputs_.size()));
    output_begin_.push_back(static_cast<uint32_t>(outputs_.size()));
    param_begin_.push_back(static_cast<uint32_t>(params_.size()));
    const Op& op = graph.ops()[v];
    for (const TensorId t : op.inputs) {
      if (producer_[t.index()] < 0 || last_reader[t.index()] == v) continue;
      last_reader[t.index()] = static_cast<uint32_t>(v);
      inputs_.push_back(static_cast<uint32_t>(t.value));
    }
    for (const TensorId t : op.outputs) outputs_.push_back(static_cast<uint32_t>(t.value));
    for (const ParamId p : op.params) {
      if (graph.param(p).bytes > 0) params_.push_back(static_cast<uint32_t>(p.value));
    }
  }
  input_begin_.push_back(static_cast<uint32_t>(inputs_.size()));
  output_begin_.push_back(static_cast<uint32_t>(outputs_.size()));
  param_begin_.push_back(static_cast<uint32_t>(params_.size()));
}

}  // namespace heddle
