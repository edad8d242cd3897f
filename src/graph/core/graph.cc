#include "heddle/graph/graph.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace heddle {
namespace {

// Binary search in an index sorted by name; invalid when there is no such name.
template <class Item, class IdType>
IdType find_by_name(const std::vector<Item>& items, const std::vector<uint32_t>& by_name,
                    std::string_view name) {
  const auto it =
      std::lower_bound(by_name.begin(), by_name.end(), name,
                       [&](uint32_t i, std::string_view wanted) { return items[i].name < wanted; });
  if (it == by_name.end() || items[*it].name != name) return IdType();
  return IdType(static_cast<size_t>(*it));
}

// -1 marks a size that cannot be computed: build() reports it.
int64_t bytes_or_invalid(const Tensor& tensor) {
  return tensor_bytes(tensor.dtype, tensor.shape).value_or(-1);
}

}  // namespace

double Graph::total_flops() const {
  double sum = 0;
  for (const Op& op : ops_) sum += op.flops;
  return sum;
}

int64_t Graph::total_param_bytes() const {
  int64_t sum = 0;
  for (const Param& param : params_) sum += param.bytes;
  return sum;
}

int64_t Graph::param_bytes(std::span<const OpId> ops) const {
  std::set<ParamId> read;
  for (const OpId id : ops) read.insert(op(id).params.begin(), op(id).params.end());
  int64_t sum = 0;
  for (const ParamId id : read) sum += param(id).bytes;
  return sum;
}

OpId Graph::find_op(std::string_view name) const { return find_by_name<Op, OpId>(ops_, ops_by_name_, name); }

TensorId Graph::find_tensor(std::string_view name) const {
  return find_by_name<Tensor, TensorId>(tensors_, tensors_by_name_, name);
}

ParamId GraphBuilder::add_param(Param param) {
  graph_.params_.push_back(std::move(param));
  return ParamId(graph_.params_.size() - 1);
}

TensorId GraphBuilder::add_input(std::string name, DType dtype, Shape shape) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  return add_input(std::move(tensor));
}

TensorId GraphBuilder::add_input(Tensor tensor) {
  if (tensor.bytes == 0) tensor.bytes = bytes_or_invalid(tensor);
  tensor.producer = OpId();
  tensor.consumers.clear();
  const TensorId id(graph_.tensors_.size());
  graph_.tensors_.push_back(std::move(tensor));
  graph_.inputs_.push_back(id);
  return id;
}

OpId GraphBuilder::add_op(Op op, std::vector<Tensor> outputs) {
  const OpId id(graph_.ops_.size());
  op.outputs.clear();
  for (Tensor& tensor : outputs) {
    if (tensor.bytes == 0) tensor.bytes = bytes_or_invalid(tensor);
    tensor.producer = id;
    tensor.consumers.clear();
    op.outputs.push_back(TensorId(graph_.tensors_.size()));
    graph_.tensors_.push_back(std::move(tensor));
  }
  graph_.ops_.push_back(std::move(op));
  return id;
}

void GraphBuilder::set_inputs(OpId op, std::vector<TensorId> inputs) {
  graph_.ops_[op.index()].inputs = std::move(inputs);
}

}  // namespace heddle
