#include "heddle/graph/batch.h"

#include <set>

#include "rebuilt.h"

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
    return invalid_input("a batch of " + std::to_string(batch) + " requests; expected 1 to 65536");
  return rebuilt(
      graph, [](const Param& param) { return param; },
      [&](TensorId t) { return of_batch(graph.tensor(t), batch); },
      [&](Op op) {
        const int64_t once = bytes_read_once(graph, op);
        op.flops *= static_cast<double>(batch);
        op.bytes_accessed = once + (op.bytes_accessed - once) * batch;
        for (GivenTime& time : op.given_times) time.us *= static_cast<double>(batch);
        return op;
      });
}

}  // namespace heddle
