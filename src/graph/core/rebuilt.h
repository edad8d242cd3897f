// A graph with the same ops and wires, and with other sizes.
#pragma once

#include <memory>
#include <vector>

#include "heddle/graph/graph.h"

namespace heddle {

// `param_of`, `tensor_of` and `op_of` return the new value of each; ids, names and wires stay. O(V + E).
template <typename ParamOf, typename TensorOf, typename OpOf>
Result<std::shared_ptr<const Graph>> rebuilt(const Graph& graph, ParamOf param_of, TensorOf tensor_of,
                                             OpOf op_of) {
  GraphBuilder builder(graph.name());
  for (const Param& p : graph.params()) builder.add_param(param_of(p));
  std::vector<TensorId> ids(graph.num_tensors());
  for (const TensorId t : graph.inputs()) ids[t.index()] = builder.add_input(tensor_of(t));
  for (const Op& from : graph.ops()) {
    std::vector<Tensor> outputs;
    for (const TensorId t : from.outputs) outputs.push_back(tensor_of(t));
    const auto made = builder.outputs_of(builder.add_op(op_of(from), std::move(outputs)));
    for (size_t i = 0; i < made.size(); ++i) ids[from.outputs[i].index()] = made[i];
  }
  for (size_t i = 0; i < graph.num_ops(); ++i) {
    std::vector<TensorId> inputs;
    for (const TensorId t : graph.op(OpId(i)).inputs) inputs.push_back(ids[t.index()]);
    builder.set_inputs(OpId(i), std::move(inputs));
  }
  for (const TensorId t : graph.outputs()) builder.add_output(ids[t.index()]);
  return builder.build();
}

}  // namespace heddle
