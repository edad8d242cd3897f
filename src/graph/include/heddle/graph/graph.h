// The model: a DAG of ops. Immutable once built; share it by std::shared_ptr<const Graph>.
//
// Two levels use the same class: a model's graph (one op per imported node) and a coarsened graph, in which
// each op stands for a convex set of the model's ops (its `members`). Planners see only the graph passed to
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/ids.h"
#include "heddle/base/status.h"
#include "heddle/graph/types.h"

namespace heddle {

struct Tensor {
  std::string name;  // unique in the graph; the ONNX value name if there is one
  DType dtype = DType::kF32;
  Shape shape;
  int64_t bytes = 0;
  OpId producer;                // invalid for a graph input
  std::vector<OpId> consumers;  // distinct, ascending; filled by the builder
};

// A weight. A shared weight is one Param listed by several ops; it counts once.
struct Param {
  std::string name;  // unique in the graph
  int64_t bytes = 0;
  DType dtype = DType::kF32;
};

// A time that comes with the graph (generators, public data sets) instead of from a cost model.
struct GivenTime {
  std::string device_class;  // matches Device::device_class, or "*" for all
  double us = 0;
};

struct Op {
  std::string name;  // unique in the graph
  std::string type;  // "Convolution", ...; a coarsened op: the types of its members, joined by "+"
  std::vector<TensorId> inputs;  // in the op's argument order, without parameters; may repeat
  std::vector<TensorId> outputs;
  std::vector<ParamId> params;  // distinct
  double flops = 0;             // floating-point operations of one execution
  int64_t bytes_accessed = 0;   // bytes read (inputs and parameters) and written
  double utilization = 1;       // share of a device that the op keeps busy when alone, (0, 1] (HIOS's u)
  std::vector<GivenTime> given_times;
  std::vector<std::string> onnx_names;  // ONNX nodes that this op stands for
  std::vector<OpId> members;  // coarsened graphs: ops of the finer graph, ascending; empty otherwise
};

// A data dependency between two ops: all tensors that `src` produces and `dst` reads.
struct Edge {
  OpId src, dst;
  int64_t bytes = 0;  // sum over those tensors, each counted once
};

// Limits of a valid graph, beyond any machine. kMaxGraphBytes bounds the sum of all tensors and parameters,
// and the sum of all bytes_accessed; kMaxGraphFlops the sum of all flops; kMaxGivenUs one given time.
inline constexpr int64_t kMaxGraphBytes = int64_t{1} << 60;
inline constexpr double kMaxGraphFlops = 1e30;
inline constexpr double kMaxGivenUs = 1e15;

class Graph {
 public:
  const std::string& name() const { return name_; }
  size_t num_ops() const { return ops_.size(); }
  size_t num_tensors() const { return tensors_.size(); }
  size_t num_params() const { return params_.size(); }
  size_t num_edges() const { return edges_.size(); }

  const Op& op(OpId id) const { return ops_[id.index()]; }
  const Tensor& tensor(TensorId id) const { return tensors_[id.index()]; }
  const Param& param(ParamId id) const { return params_[id.index()]; }
  std::span<const Op> ops() const { return ops_; }
  std::span<const Tensor> tensors() const { return tensors_; }
  std::span<const Param> params() const { return params_; }

  // Model inputs (no producer) and outputs, in the model's order.
  std::span<const TensorId> inputs() const { return inputs_; }
  std::span<const TensorId> outputs() const { return outputs_; }

  // Distinct neighbours, ascending. O(1).
  std::span<const OpId> predecessors(OpId id) const { return slice(pred_ops_, pred_begin_, id); }
  std::span<const OpId> successors(OpId id) const { return slice(succ_ops_, succ_begin_, id); }
  // Edges sorted by (src, dst). out_edges(id) are those that leave `id`; the i-th goes to successors(id)[i].
  std::span<const Edge> edges() const { return edges_; }
  std::span<const Edge> out_edges(OpId id) const {
    const uint32_t begin = succ_begin_[id.index()];
    return std::span<const Edge>(edges_).subspan(begin, succ_begin_[id.index() + 1] - begin);
  }
  // One fixed topological order (smallest id first among the ready ops) and its inverse.
  std::span<const OpId> topological_order() const { return topo_; }
  int topological_position(OpId id) const { return topo_position_[id.index()]; }

  double total_flops() const;
  int64_t total_param_bytes() const;                     // each parameter once
  int64_t param_bytes(std::span<const OpId> ops) const;  // of these ops, each parameter once

  // The id of that name, invalid when there is none. O(log n).
  OpId find_op(std::string_view name) const;
  TensorId find_tensor(std::string_view name) const;

 private:
  friend class GraphBuilder;
  Graph() = default;
  static std::span<const OpId> slice(const std::vector<OpId>& v, const std::vector<uint32_t>& begin,
                                     OpId id) {
    return std::span<const OpId>(v).subspan(begin[id.index()], begin[id.index() + 1] - begin[id.index()]);
  }

  std::string name_;
  std::vector<Op> ops_;
  std::vector<Tensor> tensors_;
  std::vector<Param> params_;
  std::vector<TensorId> inputs_, outputs_;
  std::vector<Edge> edges_;
  std::vector<uint32_t> pred_begin_, succ_begin_;
  std::vector<OpId> pred_ops_, succ_ops_;
  std::vector<OpId> topo_;
  std::vector<int> topo_position_;
  std::vector<uint32_t> ops_by_name_, tensors_by_name_;
};

// Builds and validates a Graph. Ids are assigned in the order of addition.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string name) { graph_.name_ = std::move(name); }

  ParamId add_param(Param param);
  // Adds a model input. The second form uses the tensor's name, dtype, shape and bytes (computed when 0).
  TensorId add_input(std::string name, DType dtype, Shape shape);
  TensorId add_input(Tensor tensor);
  // Adds an op and its outputs (each Tensor's name, dtype and shape are used; bytes are computed when 0).
  // `op.inputs` may name tensors that are added later; build() checks them. `op.outputs` is overwritten.
  OpId add_op(Op op, std::vector<Tensor> outputs);
  // Sets an op's inputs later, for graphs whose ops do not arrive in topological order.
  void set_inputs(OpId op, std::vector<TensorId> inputs);
  // The outputs of `op`, needed to wire its consumers.
  std::span<const TensorId> outputs_of(OpId op) const { return graph_.ops_[op.index()].outputs; }
  // Adds a model output. A tensor may be listed several times; a model input may be an output too.
  void add_output(TensorId tensor) { graph_.outputs_.push_back(tensor); }

  // Validates: unique non-empty names, ids in range, no cycle (the message names the ops of one), no negative
  // size or time, finite numbers, utilization in (0, 1], sums within kMaxGraphBytes, kMaxGraphFlops and
  // kMaxGivenUs, so that no later sum overflows. O((V + E) log V). Leaves the builder empty.
  Result<std::shared_ptr<const Graph>> build();

 private:
  Result<std::shared_ptr<const Graph>> build_parts();
  Graph graph_;
};

}  // namespace heddle
