#include "heddle/graph/op_named.h"

#include <algorithm>

#include "heddle/base/spelling.h"

namespace heddle {

Result<OpId> op_named(const Graph& graph, const std::string& name) {
  if (const OpId op = graph.find_op(name); op.valid()) return op;
  std::vector<std::string> names;
  for (size_t i = 0; i < graph.num_ops(); ++i) {
    const Op& op = graph.op(OpId(i));
    if (std::find(op.onnx_names.begin(), op.onnx_names.end(), name) != op.onnx_names.end()) return OpId(i);
    names.push_back(op.name);
    names.insert(names.end(), op.onnx_names.begin(), op.onnx_names.end());
  }
  return not_found("the model has no op " + quote_text(name) + did_you_mean(name, names));
}

}  // namespace heddle
