#include "torch/support.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "backends/openvino/openvino_session.h"
#include "corpus/corpus.h"

namespace heddle {
namespace {

// Distinct, ascending: the order in which the executor hands tensors over.
std::vector<TensorId> ascending(std::span<const TensorId> ids) {
  std::vector<TensorId> list(ids.begin(), ids.end());
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

std::vector<SegmentTensor> described(const Graph& graph, const std::vector<TensorId>& ids) {
  std::vector<SegmentTensor> list;
  for (const TensorId id : ids) {
    const Tensor& t = graph.tensor(id);
    list.push_back({t.name, t.dtype, t.shape, t.bytes});
  }
  return list;
}

// What ops read, and what they make of the model's outputs: a model's input may be its output, or read by
// nobody.
std::vector<TensorId> fed(const Graph& graph) {
  std::vector<TensorId> list;
  for (const TensorId id : ascending(graph.inputs()))
    if (!graph.tensor(id).consumers.empty()) list.push_back(id);
  return list;
}
std::vector<TensorId> made(const Graph& graph) {
  std::vector<TensorId> list;
  for (const TensorId id : ascending(graph.outputs()))
    if (graph.tensor(id).producer.valid()) list.push_back(id);
  return list;
}

}  // namespace

Device torch_cpu() {
  Device device;
  device.name = "torch";
  device.kind = DeviceKind::kCpu;
  device.backend = "torch";
  return device;
}

Result<std::unique_ptr<CompiledSegment>> compile_whole(RuntimeDevice& device,
                                                       const std::shared_ptr<const Model>& model) {
  const Graph& graph = *model->graph();
  SegmentSpec spec{.name = "whole", .model = model};
  for (size_t i = 0; i < graph.num_ops(); ++i) spec.finest_ops.push_back(OpId(i));
  spec.inputs = described(graph, fed(graph));
  spec.outputs = described(graph, made(graph));
  return device.compile(spec, 1);
}

Result<std::vector<TensorValue>> run_whole(CompiledSegment& segment, const Model& model,
                                           const std::vector<TensorValue>& inputs) {
  const Graph& graph = *model.graph();
  const auto value_of = [&](TensorId id) {
    const auto ids = graph.inputs();
    return inputs[static_cast<size_t>(std::find(ids.begin(), ids.end(), id) - ids.begin())];
  };
  std::vector<TensorView> in, out;
  for (const TensorId id : fed(graph)) in.push_back(value_of(id).view());
  std::vector<TensorValue> results;
  for (const TensorId id : made(graph)) {
    const Tensor& t = graph.tensor(id);
    HEDDLE_ASSIGN_OR_RETURN(TensorValue value, make_tensor(t.dtype, t.shape));
    results.push_back(value);
    out.push_back(results.back().view());
  }
  HEDDLE_RETURN_IF_ERROR(segment.bind(0, in, out));
  HEDDLE_RETURN_IF_ERROR(segment.run(0));
  std::vector<TensorValue> outputs;
  const auto ids = made(graph);
  for (const TensorId id : graph.outputs()) {
    if (!graph.tensor(id).producer.valid()) {
      outputs.push_back(value_of(id));
      continue;
    }
    outputs.push_back(results[static_cast<size_t>(std::find(ids.begin(), ids.end(), id) - ids.begin())]);
  }
  return outputs;
}

std::optional<DType> dtype_of(const ov::element::Type& type) {
  using Type = ov::element::Type_t;
  for (const auto f8 : {Type::f8e4m3, Type::f8e5m2, Type::f8e8m0})
    if (type == f8) return DType::kF8;
  return type == Type::f4e2m1 ? DType::kF4 : openvino::dtype_of(type);
}

std::optional<TensorValue> read_value(const std::string& path) {
  const ov::Tensor tensor = read_tensor(path);
  if (!tensor) return std::nullopt;
  const auto dtype = dtype_of(tensor.get_element_type());
  if (!dtype) return std::nullopt;
  const ov::Shape shape = tensor.get_shape();
  auto value = make_tensor(*dtype, Shape(shape.begin(), shape.end()));
  if (!value.ok()) return std::nullopt;
  std::memcpy(value->data.get(), tensor.data(), tensor.get_byte_size());
  return *value;
}

std::optional<ov::Tensor> as_openvino(const TensorValue& value, const ov::element::Type& type) {
  if (dtype_of(type) != value.dtype) return std::nullopt;
  return ov::Tensor(type, ov::Shape(value.shape.begin(), value.shape.end()), value.data.get());
}

}  // namespace heddle
