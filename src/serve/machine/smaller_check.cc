#include "smaller_check.h"

#include <algorithm>
#include <cmath>

#include "heddle/runtime/output_error.h"
#include "heddle/runtime/padding.h"
#include "split_check.h"

namespace heddle {
namespace {

const Tensor& tensor_named(const Graph& graph, std::span<const TensorId> ids, const std::string& name) {
  for (const auto id : ids)
    if (graph.tensor(id).name == name) return graph.tensor(id);
  return graph.tensor(ids.front());
}

// `part` of each open dimension, counted from `from` or from 0.
NamedShapes between(const NamedShapes& bucket, const NamedShapes* from, const NamedShapes& open,
                    double part) {
  NamedShapes shapes = bucket;
  for (const auto& [name, dims] : open)
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] >= 0) continue;
      auto& size = shapes.at(name)[d];
      const int64_t least = from == nullptr ? 0 : from->at(name)[d];
      size = std::max<int64_t>(1, least + static_cast<int64_t>(static_cast<double>(size - least) * part));
    }
  return shapes;
}

Result<TensorValue> cut_by_data(const TensorValue& output, const TensorValue& shape) {
  return front_corner(output.view(), shape_values(shape.view()));
}

bool has_nan(const std::vector<TensorValue>& values) {
  return std::ranges::any_of(values, [](const TensorValue& value) {
    const auto view = value.view();
    if (dtype_bits(view.dtype) < 8) return false;
    for (int64_t i = 0; i < view.bytes / (dtype_bits(view.dtype) / 8); ++i)
      if (std::isnan(element_as_double(view, i))) return true;
    return false;
  });
}

// Random integers are small and not negative, so this makes them 0 or 1.
void keep_lowest_bit(const TensorView& view) {
  switch (view.dtype) {
    case DType::kI8:
    case DType::kU8:
    case DType::kI16:
    case DType::kU16:
    case DType::kI32:
    case DType::kU32:
    case DType::kI64:
    case DType::kU64:
      for (int64_t i = 0; i < view.bytes; i += dtype_bits(view.dtype) / 8) view.data[i] &= std::byte{1};
      return;
    default:
      return;
  }
}

// `outputs` are larger than the probe's, or as large.
Result<SmallerError> difference(const SmallerProbe& probe, const std::vector<TensorValue>& outputs) {
  const auto& infos = probe.model->served.outputs;
  SmallerError error;
  std::vector<TensorValue> parts;
  std::vector<TensorView> views;
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (infos[o].true_shape >= 0) {
      const auto shape = static_cast<size_t>(infos[o].true_shape);
      HEDDLE_ASSIGN_OR_RETURN(const auto actual, cut_by_data(outputs[o], outputs[shape]));
      HEDDLE_ASSIGN_OR_RETURN(const auto expected, cut_by_data(probe.outputs[o], probe.outputs[shape]));
      const bool same = actual.shape == expected.shape;
      error.largest = std::max(error.largest,
                               same ? relative_difference(actual.view(), expected.view()).largest : INFINITY);
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(auto part, front_corner(outputs[o].view(), probe.outputs[o].shape));
    error.largest =
        std::max(error.largest, relative_difference(part.view(), probe.outputs[o].view()).largest);
    parts.push_back(std::move(part));
  }
  const auto& graph = *probe.model->sizes.at(1)->graph();
  if (parts.size() != graph.outputs().size()) return error;
  for (const auto& part : parts) views.push_back(part.view());
  const auto decided = output_error(graph, views, probe.outputs);
  error.agreement = decided.agreement();
  error.decisions = decided.decisions();
  return error;
}

}  // namespace

NamedShapes input_shapes(const LocalModel& local) {
  NamedShapes shapes;
  const auto& graph = *local.sizes.at(1)->graph();
  for (const auto id : graph.inputs()) shapes[graph.tensor(id).name] = graph.tensor(id).shape;
  return shapes;
}

std::vector<NamedShapes> smaller_shapes(const NamedShapes& bucket, const NamedShapes* below,
                                        const NamedShapes& open) {
  std::vector<NamedShapes> shapes;
  if (below != nullptr && covers(bucket, *below)) {
    shapes.push_back(between(bucket, below, open, .5));
    shapes.push_back(*below);
  }
  shapes.push_back(between(bucket, nullptr, open, .75));
  shapes.push_back(between(bucket, nullptr, open, .5));
  std::erase(shapes, bucket);
  return shapes;
}

void keep_worst(SmallerError& worst, const SmallerError& more) {
  worst.largest = std::max(worst.largest, more.largest);
  worst.agreement = std::min(worst.agreement, more.agreement);
  worst.decisions += more.decisions;
}

Result<std::optional<SmallerProbe>> probe_smaller(const ModelSource& source,
                                                  std::span<const NamedShapes> shapes, const Device& device) {
  for (const auto& at : shapes) {
    ModelSource own = source;
    own.settings.max_batch = 1;
    for (const auto& [name, shape] : at) own.settings.shapes[name] = shape;
    auto model = load_local_model(own);
    if (!model.ok()) continue;  // not every size fits every model: multiples of 32, say
    SmallerProbe probe;
    probe.model = *model;
    probe.shapes = at;
    HEDDLE_ASSIGN_OR_RETURN(const auto runner, PlanRunner::create(probe.model, device));
    HEDDLE_RETURN_IF_ERROR(run_whole(*runner, *probe.model, probe.inputs, probe.outputs));
    if (has_nan(probe.outputs)) {
      // A mask of 2 or 3 overflows (1 - mask) * -3.4e38. What is no number differs from nothing, so it shows nothing.
      for (const auto& value : probe.inputs) keep_lowest_bit(value.view());
      auto row = probe_row(probe.inputs, probe.outputs);
      LiveRequest* const batch[] = {&row};
      HEDDLE_RETURN_IF_ERROR(runner->run(batch));
      if (has_nan(probe.outputs)) continue;
    }
    return std::optional(std::move(probe));
  }
  return std::optional<SmallerProbe>();
}

Result<SmallerError> padding_error(const SmallerProbe& probe, PlanRunner& runner, const LocalModel& bucket,
                                   std::span<const double> pad) {
  const auto& graph = *bucket.sizes.at(1)->graph();
  const auto& served = probe.model->served;
  std::vector<TensorValue> inputs, outputs;
  for (size_t i = 0; i < served.inputs.size(); ++i) {
    const auto& shape = tensor_named(graph, graph.inputs(), served.inputs[i].name).shape;
    HEDDLE_ASSIGN_OR_RETURN(auto value, padded(probe.inputs[i].view(), shape, pad[i]));
    inputs.push_back(std::move(value));
  }
  for (const auto& info : served.outputs) {
    const auto& tensor = tensor_named(graph, graph.outputs(), info.name);
    HEDDLE_ASSIGN_OR_RETURN(auto value, make_tensor(tensor.dtype, tensor.shape));
    outputs.push_back(std::move(value));
  }
  auto row = probe_row(inputs, outputs);
  LiveRequest* const batch[] = {&row};
  HEDDLE_RETURN_IF_ERROR(runner.run(batch));
  return difference(probe, outputs);
}

Result<SmallerError> own_shape_error(const SmallerProbe& probe, OwnShapeRunner& runner) {
  std::vector<TensorValue> outputs;
  std::vector<Shape> input_rows, output_shapes;
  for (const auto& value : probe.inputs) input_rows.push_back(value.shape);
  for (const auto& value : probe.outputs) {
    HEDDLE_ASSIGN_OR_RETURN(auto own, make_tensor(value.dtype, value.shape));
    output_shapes.push_back(value.shape);
    outputs.push_back(std::move(own));
  }
  auto row = probe_row(probe.inputs, outputs);
  row.input_shapes = &input_rows;
  row.output_shapes = &output_shapes;
  LiveRequest* const batch[] = {&row};
  HEDDLE_RETURN_IF_ERROR(runner.run(batch));
  return difference(probe, outputs);
}

}  // namespace heddle
