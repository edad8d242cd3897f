#include "inputs.h"

#include <algorithm>
#include <cstring>

#include "heddle/base/errors.h"
#include "heddle/base/file.h"
#include "heddle/base/random.h"
#include "heddle/base/spelling.h"
#include "heddle/graph/onnx_tensor.h"
#include "heddle/runtime/executor.h"
#include "heddle/runtime/run.h"
#include "tensor_files.h"

namespace heddle {
namespace {

template <class T, class Draw>
void fill_as(const TensorView& tensor, Draw draw) {
  for (int64_t i = 0; i + static_cast<int64_t>(sizeof(T)) <= tensor.bytes;
       i += static_cast<int64_t>(sizeof(T))) {
    const T value = draw();
    std::memcpy(tensor.data + i, &value, sizeof(T));
  }
}

// Exact for the multiples of 1/256 in [-1, 1) that are drawn here, which have at most 8 significant bits.
uint16_t half_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (value == 0) return 0;
  const auto exponent = static_cast<int>((bits >> 23) & 255) - 127 + 15;
  return static_cast<uint16_t>(((bits >> 16) & 0x8000) | (static_cast<uint32_t>(exponent) << 10) |
                               ((bits >> 13) & 1023));
}

uint16_t bfloat_bits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<uint16_t>(bits >> 16);
}

Result<TensorValue> read_onnx_file(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, read_file(path));
  HEDDLE_ASSIGN_OR_RETURN(const OnnxTensorFile file, with_context(parse_onnx_tensor(bytes), path));
  HEDDLE_ASSIGN_OR_RETURN(TensorValue value, make_tensor(file.dtype, file.shape));
  std::memcpy(value.data.get(), file.data.data(), file.data.size());
  return value;
}

}  // namespace

Result<TensorValue> read_input(const std::string& path, const Tensor& tensor) {
  if (path.ends_with(".ppm")) {
    if (tensor.dtype != DType::kF32)
      return invalid_input(std::string("a picture feeds f32 inputs only, '") + tensor.name + "' is " +
                           dtype_name(tensor.dtype));
    return read_image_ppm(path, tensor.shape);
  }
  const bool is_onnx = path.ends_with(".pb");
  if (!is_onnx && !path.ends_with(".npy"))
    return invalid_input(path + ": inputs are read from files whose names end in .npy, .pb or .ppm");
  HEDDLE_ASSIGN_OR_RETURN(TensorValue value, is_onnx ? read_onnx_file(path) : read_npy(path));
  if (value.dtype != tensor.dtype || value.shape != tensor.shape) {
    return invalid_input(path + ": input '" + tensor.name + "' is " + dtype_name(tensor.dtype) + " " +
                         shape_text(tensor.shape) + ", the file holds " + dtype_name(value.dtype) + " " +
                         shape_text(value.shape));
  }
  return value;
}

void fill_random(const TensorView& tensor, uint64_t seed) {
  Random random(seed);
  const auto small = [&] { return random.below(4); };
  const auto grid = [&] { return static_cast<float>(random.between(-256, 255)) / 256; };
  switch (tensor.dtype) {
    case DType::kF32:
      return fill_as<float>(tensor, [&] { return static_cast<float>(random.uniform(-1, 1)); });
    case DType::kF64:
      return fill_as<double>(tensor, [&] { return random.uniform(-1, 1); });
    case DType::kF16:
      return fill_as<uint16_t>(tensor, [&] { return half_bits(grid()); });
    case DType::kBF16:
      return fill_as<uint16_t>(tensor, [&] { return bfloat_bits(grid()); });
    case DType::kBool:
      return fill_as<uint8_t>(tensor, [&] { return static_cast<uint8_t>(random.below(2)); });
    case DType::kI8:
    case DType::kU8:
      return fill_as<uint8_t>(tensor, [&] { return static_cast<uint8_t>(small()); });
    case DType::kI16:
    case DType::kU16:
      return fill_as<uint16_t>(tensor, [&] { return static_cast<uint16_t>(small()); });
    case DType::kI32:
    case DType::kU32:
      return fill_as<uint32_t>(tensor, [&] { return static_cast<uint32_t>(small()); });
    case DType::kI64:
    case DType::kU64:
      return fill_as<uint64_t>(tensor, small);
    default:
      return;
  }
}

Result<std::vector<TensorValue>> make_inputs(const Graph& graph, const InputOptions& options) {
  std::vector<std::string> names;
  for (TensorId t : graph.inputs()) names.push_back(graph.tensor(t).name);
  for (const auto& [name, path] : options.files) {
    const bool only = name.empty() && names.size() == 1;
    if (only || std::find(names.begin(), names.end(), name) != names.end()) continue;
    return invalid_input("there is no input '" + name + "'; the model has " + join_names(names) +
                         did_you_mean(name, names));
  }
  std::vector<TensorValue> values;
  for (size_t i = 0; i < names.size(); ++i) {
    const Tensor& tensor = graph.tensor(graph.inputs()[i]);
    auto file = options.files.find(tensor.name);
    if (file == options.files.end() && names.size() == 1) file = options.files.find("");
    if (file != options.files.end()) {
      HEDDLE_ASSIGN_OR_RETURN(TensorValue value, read_input(file->second, tensor));
      values.push_back(std::move(value));
      continue;
    }
    auto made = make_tensor(tensor.dtype, tensor.shape);
    if (!made.ok()) return std::move(made).error().with_context("input '" + tensor.name + "'");
    fill_random(made->view(), options.seed * 1000003 + i);
    values.push_back(std::move(made).value());
  }
  return values;
}

std::vector<TensorView> views_of(std::span<const TensorValue> values) {
  std::vector<TensorView> views;
  for (const TensorValue& value : values) views.push_back(value.view());
  return views;
}

void give_inputs(Executor& executor, std::span<const TensorValue> inputs) {
  for (int slot = 0; slot < executor.slots(); ++slot) {
    const auto targets = executor.inputs(slot);
    for (size_t i = 0; i < targets.size(); ++i)
      std::memcpy(targets[i].data, inputs[i].data.get(), static_cast<size_t>(targets[i].bytes));
  }
}

Status run_every_slot(Executor& executor, std::span<const TensorValue> inputs, const Deadline& deadline) {
  give_inputs(executor, inputs);
  if (executor.slots() == 1) {
    const auto ran = executor.run(deadline);
    return ran.ok() ? Status() : Status(ran.error());
  }
  StreamOptions stream;
  stream.requests = executor.slots();  // which go to the slots in turn
  stream.deadline = deadline;
  const auto ran = executor.run_stream(stream);
  return ran.ok() ? Status() : Status(ran.error());
}

Result<std::vector<TensorValue>> file_outputs(const Model& model, std::vector<TensorValue> outputs) {
  for (const SizedOutput& sized : model.sized_outputs()) {
    TensorValue& output = outputs[sized.output];
    HEDDLE_ASSIGN_OR_RETURN(output, front_corner(output.view(), shape_values(outputs[sized.shape].view())));
  }
  outputs.resize(outputs.size() - model.sized_outputs().size());
  return outputs;
}

Result<std::vector<TensorValue>> copied_outputs(const Executor& executor, const Model* model) {
  std::vector<TensorValue> outputs;
  for (const TensorView& output : executor.outputs(0)) {
    HEDDLE_ASSIGN_OR_RETURN(TensorValue copy, make_tensor(output.dtype, output.shape));
    std::memcpy(copy.data.get(), output.data, static_cast<size_t>(copy.bytes));
    outputs.push_back(std::move(copy));
  }
  if (model == nullptr || outputs.empty()) return outputs;
  return file_outputs(*model, std::move(outputs));
}

Status check_outputs(std::span<const TensorView> outputs, std::span<const TensorValue> expected, double rtol,
                     double atol, OutputCheck& check) {
  if (outputs.size() != expected.size())
    return internal_error("the plan's graph and the model differ in their outputs");
  if (!check.verified) check.verified = check.outputs_equal = true;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorDifference difference = compare_tensors(outputs[i], expected[i].view(), rtol, atol);
    check.outputs_equal &= difference.equal;
    check.max_abs_error = std::max(check.max_abs_error, difference.max_abs);
    check.max_rel_error = std::max(check.max_rel_error, difference.max_rel);
  }
  return {};
}

}  // namespace heddle
