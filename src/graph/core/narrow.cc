#include "heddle/graph/narrow.h"

#include <cmath>
#include <set>

#include "rebuilt.h"

namespace heddle {
namespace {

int64_t touched_bytes(const Graph& graph, const Op& op) {
  std::set<TensorId> tensors(op.inputs.begin(), op.inputs.end());
  tensors.insert(op.outputs.begin(), op.outputs.end());
  int64_t bytes = 0;
  for (const TensorId t : tensors) bytes += graph.tensor(t).bytes;
  for (const ParamId p : op.params) bytes += graph.param(p).bytes;
  return bytes;
}

}  // namespace

Result<std::shared_ptr<const Graph>> narrowed(const Graph& graph, DType narrow) {
  const int64_t times = dtype_bits(DType::kF32) / dtype_bits(narrow);
  std::set<TensorId> borders(graph.inputs().begin(), graph.inputs().end());
  borders.insert(graph.outputs().begin(), graph.outputs().end());
  HEDDLE_ASSIGN_OR_RETURN(const auto result,
                          rebuilt(
                              graph,
                              [&](Param param) {
                                if (param.dtype == DType::kF32)
                                  param = {std::move(param.name), param.bytes / times, narrow};
                                return param;
                              },
                              [&](TensorId t) {
                                Tensor tensor = graph.tensor(t);
                                if (tensor.dtype != DType::kF32 || borders.contains(t)) return tensor;
                                tensor.dtype = narrow;
                                tensor.bytes /= times;
                                return tensor;
                              },
                              [](const Op& op) { return op; }));
  // An op may read a part of what it touches (a lookup) or all of it several times.
  return rebuilt(
      *result, [](const Param& param) { return param; }, [&](TensorId t) { return result->tensor(t); },
      [&](Op op) {
        const int64_t before = touched_bytes(graph, op);
        if (before > 0) {
          const double share = static_cast<double>(touched_bytes(*result, op)) / static_cast<double>(before);
          op.bytes_accessed = std::llround(static_cast<double>(op.bytes_accessed) * share);
        }
        return op;
      });
}

}  // namespace heddle
