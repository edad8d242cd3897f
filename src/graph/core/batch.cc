#include "heddle/graph/batch.h"

#include <algorithm>
#include <set>

namespace heddle {
namespace {

// Bytes of parameters that the op reads whole. A lookup that reads some rows of its table reads them for each request.
int64_t bytes_read_once(const Graph& graph, const Op& op) {
  int64_t tensors = 0, params = 0;
  for (const TensorId t : std::set<TensorId>(op.inputs.begin(), op.inputs.end()))
    tensors += graph.tensor(t).bytes;
  for (const TensorId t : op.outputs) tensors += graph.tensor(t).bytes;
  for (const ParamId p : op.params) params += graph.param(p).bytes;
  return op.bytes_accessed - tensors >= params ? params : 0;
}

Tensor of_batch(Tensor tensor, int64_t batch) {
  if (!tensor.shape.empty()) tensor.shape[0] *= batch;
  tensor.bytes *= batch;
  return tensor;
}

}  // namespace

Result<std::shared_ptr<const Graph>> with_batch(const Graph& graph, int64_t batch) {
  if (batch < 1 || batch > 65536)
    return Error(Code::kInvalidInput,
                 "a batch of " + std::to_string(batch) + " requests; expected 1 to 65536");
  GraphBuilder builder(graph.name());
  for (const Param& p : graph.params()) builder.add_param(p);
  std::vector<TensorId> ids(graph.num_tensors());
  for (const TensorId t : graph.inputs())
    ids[t.index()] = builder.add_input(of_batch(graph.tensor(t), batch));
  for (const Op& from : graph.ops()) {
    Op op = from;
    const int64_t once = bytes_read_once(graph, from);
    op.flops *= static_cast<double>(batch);
    op.bytes_accessed = once + (from.bytes_accessed - once) * batch;
    for (GivenTime& time : op.given_times) time.us *= static_cast<double>(batch);
    std::vector<Tensor> outputs;
    for (const TensorId t : from.outputs) outputs.push_back(of_batch(graph.tensor(t), batch));
    const auto made = builder.outputs_of(builder.add_op(std::move(op), std::move(outputs)));
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
