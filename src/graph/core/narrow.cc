#include "heddle/graph/narrow.h"

#include <cmath>
#include <set>

#include "rebuilt.h"

namespace heddle {
namespace {

class Narrowing {
 public:
  Narrowing(const Graph& graph, DType to, Narrowed what, const std::set<std::string>& wide)
      : graph_(graph), to_(to), what_(what), wide_(wide), times_(dtype_bits(DType::kF32) / dtype_bits(to)) {
    borders_.insert(graph.inputs().begin(), graph.inputs().end());
    borders_.insert(graph.outputs().begin(), graph.outputs().end());
  }

  Param param(Param p) const {
    if (what_ == Narrowed::kAll && p.dtype == DType::kF32 && !wide_.contains(p.name))
      p = {std::move(p.name), p.bytes / times_, to_};
    return p;
  }

  Tensor tensor(TensorId t) const {
    Tensor tensor = graph_.tensor(t);
    if (tensor.dtype != DType::kF32 || borders_.contains(t) || wide_.contains(tensor.name)) return tensor;
    tensor.dtype = to_;
    tensor.bytes /= times_;
    return tensor;
  }

  // An op may read a part of what it touches (a lookup) or all of it several times.
  Op op(Op op) const {
    std::set<TensorId> tensors(op.inputs.begin(), op.inputs.end());
    tensors.insert(op.outputs.begin(), op.outputs.end());
    int64_t before = 0, after = 0;
    for (const TensorId t : tensors) {
      before += graph_.tensor(t).bytes;
      after += tensor(t).bytes;
    }
    for (const ParamId p : op.params) {
      before += graph_.param(p).bytes;
      after += param(graph_.param(p)).bytes;
    }
    if (before > 0) {
      const double share = static_cast<double>(after) / static_cast<double>(before);
      op.bytes_accessed = std::llround(static_cast<double>(op.bytes_accessed) * share);
    }
    return op;
  }

 private:
  const Graph& graph_;
  DType to_;
  Narrowed what_;
  const std::set<std::string>& wide_;
  int64_t times_;
  std::set<TensorId> borders_;
};

}  // namespace

Result<std::shared_ptr<const Graph>> narrowed(const Graph& graph, DType narrow, Narrowed what,
                                              const std::set<std::string>& wide) {
  const Narrowing to(graph, narrow, what, wide);
  return rebuilt(
      graph, [&](const Param& p) { return to.param(p); }, [&](TensorId t) { return to.tensor(t); },
      [&](const Op& op) { return to.op(op); });
}

Result<std::shared_ptr<const Graph>> with_tensor_types(const Graph& graph, std::span<const DType> types) {
  const auto tensor_of = [&](TensorId t) {
    Tensor tensor = graph.tensor(t);
    const DType type = types[t.index()];
    if (type != tensor.dtype) tensor.bytes = tensor.bytes * dtype_bits(type) / dtype_bits(tensor.dtype);
    tensor.dtype = type;
    return tensor;
  };
  return rebuilt(
      graph, [](const Param& p) { return p; }, tensor_of, [](const Op& op) { return op; });
}

}  // namespace heddle
