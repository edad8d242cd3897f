#include "backends/torch/torch_program.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace heddle::torch_backend {
namespace {

bool rounds(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

// What is carried in a wider type is brought back into its range.
at::Tensor settle(const at::Tensor& tensor, DType dtype, bool on_cpu) {
  if (!on_cpu) return tensor.to(scalar_type(dtype));
  switch (dtype) {
    case DType::kF16:
    case DType::kBF16:
      return tensor.to(scalar_type(dtype)).to(at::kFloat);
    case DType::kU16:
      return tensor.to(at::kInt).bitwise_and(0xFFFF);
    case DType::kU32:
      return tensor.to(at::kLong).bitwise_and(int64_t{0xFFFFFFFF});
    default:
      return tensor.to(carrier(dtype));
  }
}

// What has the same bits in memory.
at::ScalarType stored_as(DType dtype) {
  if (dtype == DType::kU16) return at::kShort;
  if (dtype == DType::kU32) return at::kInt;
  if (dtype == DType::kU64) return at::kLong;
  return scalar_type(dtype);
}

// Ops that give the right bits of unsigned numbers when they take them for signed ones.
bool ignores_sign(const std::string& type) {
  static constexpr const char* kTypes[] = {"Add",        "BitwiseAnd", "BitwiseNot", "BitwiseOr",
                                           "BitwiseXor", "Concat",     "Equal",      "Gather",
                                           "Multiply",   "NotEqual",   "Reshape",    "Slice",
                                           "Squeeze",    "Subtract",   "Transpose",  "Unsqueeze"};
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

// Ops that need the order of their operands alone: adding 2^63 to both makes the order of unsigned numbers
// that of signed ones.
bool compares(const std::string& type) {
  static constexpr const char* kTypes[] = {"Greater",   "GreaterEqual", "Less",
                                           "LessEqual", "Maximum",      "Minimum"};
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

at::Tensor plus_half_range(const at::Tensor& x) { return x.bitwise_xor(std::numeric_limits<int64_t>::min()); }

Kernel of_unsigned(Kernel kernel, bool result_too) {
  return [kernel = std::move(kernel), result_too](Operands in) {
    const Tensors moved = {plus_half_range(in[0]), plus_half_range(in[1])};
    Tensors out = kernel(moved);
    if (result_too) out[0] = plus_half_range(out[0]);
    return out;
  };
}

// A constant u64 without numbers beyond i64 is as good as one.
bool fits_signed(const at::Tensor& constant) {
  return constant.defined() && (constant.numel() == 0 || constant.min().item<int64_t>() >= 0);
}

std::string text_of(const std::exception& e) {
  std::string what = e.what();
  what = what.substr(0, what.find('\n'));
  return what;
}

}  // namespace

at::Tensor over_memory(void* data, const Shape& shape, at::ScalarType type, const at::Device& device) {
  return at::for_blob(data, shape)
      .options(at::TensorOptions().dtype(type).device(device))
      .target_device(device)
      .make_tensor();
}

at::Tensor to_carrier(const TensorView& view, const at::Device& from, const at::Device& device) {
  at::Tensor tensor = over_memory(view.data, view.shape, stored_as(view.dtype), from);
  if (!device.is_cpu()) return tensor.to(device, scalar_type(view.dtype));
  if (view.dtype == DType::kU16) return tensor.to(at::kInt).bitwise_and(0xFFFF);
  if (view.dtype == DType::kU32) return tensor.to(at::kLong).bitwise_and(int64_t{0xFFFFFFFF});
  return rounds(view.dtype) ? tensor.to(at::kFloat) : tensor;
}

void from_carrier(const at::Tensor& tensor, const TensorView& view, const at::Device& device) {
  at::Tensor target = over_memory(view.data, view.shape, stored_as(view.dtype), device);
  target.copy_(tensor);
}

Result<std::unique_ptr<TorchProgram>> TorchProgram::make(SegmentOps ops, const at::Device& device) {
  const c10::InferenceMode guard;
  std::unique_ptr<TorchProgram> program(new TorchProgram(device));
  program->memory_ = std::move(ops.memory);
  program->input_values_ = ops.inputs;
  program->output_values_ = ops.outputs;
  program->constants_.resize(static_cast<size_t>(ops.num_values));
  for (const SegmentConstant& constant : ops.constants) {
    if (carrier(constant.view.dtype) == at::ScalarType::Undefined) continue;  // its reader refuses it
    program->constants_[static_cast<size_t>(constant.value)] = to_carrier(constant.view, at::kCPU, device);
  }
  for (const SegmentNode& node : ops.nodes) HEDDLE_RETURN_IF_ERROR(program->add(node, program->constants_));
  // A value is done with after its last reader, unless it leaves the segment.
  std::vector<bool> kept(static_cast<size_t>(ops.num_values), false);
  for (const int v : program->output_values_) kept[static_cast<size_t>(v)] = true;
  for (size_t s = program->steps_.size(); s-- > 0;) {
    Step& step = program->steps_[s];
    for (const auto* list : {&step.reads, &step.writes}) {
      for (const int v : *list) {
        if (kept[static_cast<size_t>(v)]) continue;
        kept[static_cast<size_t>(v)] = true;
        step.done.push_back(v);
      }
    }
  }
  // Constants that only computed constants read are not needed any more.
  std::vector<bool> used(static_cast<size_t>(ops.num_values), false);
  for (const Step& step : program->steps_)
    for (const int v : step.reads) used[static_cast<size_t>(v)] = true;
  for (const int v : program->output_values_) used[static_cast<size_t>(v)] = true;
  for (size_t v = 0; v < used.size(); ++v)
    if (!used[v]) program->constants_[v] = at::Tensor();
  return program;
}

Status TorchProgram::check_types(const OpSite& site) const {
  const auto holds = [&](DType dtype) {
    return (device_.is_cpu() ? carrier(dtype) : scalar_type(dtype)) != at::ScalarType::Undefined;
  };
  const auto refuse = [&](DType dtype) {
    return site.refuse(std::string("libtorch has no kernel of it for ") + dtype_name(dtype));
  };
  const bool takes_u64 = ignores_sign(site.node.type) || compares(site.node.type);
  for (size_t i = 0; i < site.node.inputs.size(); ++i) {
    const DType dtype = site.node.inputs[i].dtype;
    if (!holds(dtype)) return refuse(dtype);
    if (dtype == DType::kU64 && !takes_u64 && !fits_signed(site.constants[i])) return refuse(dtype);
  }
  for (const ValueType& output : site.node.outputs) {
    if (!holds(output.dtype)) return refuse(output.dtype);
    if (output.dtype == DType::kU64 && !takes_u64) return refuse(output.dtype);
  }
  return {};
}

Status TorchProgram::add(const SegmentNode& node, Tensors& constants) {
  Tensors known;
  bool all_known = true;
  for (const int v : node.reads) {
    known.push_back(constants[static_cast<size_t>(v)]);
    all_known = all_known && known.back().defined();
  }
  const OpSite site{node.op, known, device_};
  HEDDLE_RETURN_IF_ERROR(check_types(site));
  const KernelEntry* entry = find_kernel(node.op.type, node.op.opset);
  if (entry == nullptr) return site.refuse("there is no kernel for opset " + std::to_string(node.op.opset));
  HEDDLE_ASSIGN_OR_RETURN(Kernel kernel, entry->make(site));
  if (compares(node.op.type) && node.op.inputs[0].dtype == DType::kU64)
    kernel = of_unsigned(std::move(kernel), node.op.outputs[0].dtype == DType::kU64);
  Step step{.kernel = std::move(kernel),
            .name = node.op.name,
            .reads = node.reads,
            .writes = node.writes,
            .types = node.op.outputs,
            .done = {}};
  if (!all_known) {
    steps_.push_back(std::move(step));
    return {};
  }
  return execute(step, constants);
}

Status TorchProgram::execute(const Step& step, Tensors& values) const {
  Tensors in;
  in.reserve(step.reads.size());
  for (const int v : step.reads) {
    const auto i = static_cast<size_t>(v);
    in.push_back(values[i].defined() ? values[i] : constants_[i]);
  }
  Tensors out;
  try {
    out = step.kernel(in);
  } catch (const c10::Error& e) {
    return Error(Code::kUnsupported,
                 "op '" + step.name + "': libtorch failed: " + e.what_without_backtrace());
  } catch (const std::exception& e) {
    return Error(Code::kUnsupported, "op '" + step.name + "': libtorch failed: " + text_of(e));
  }
  for (size_t i = 0; i < step.writes.size() && i < out.size(); ++i) {
    if (!out[i].defined()) continue;
    if (out[i].sizes() != at::IntArrayRef(step.types[i].shape)) {
      return Error(Code::kInternal, "op '" + step.name +
                                        "' made a tensor of another shape than the graph's " +
                                        shape_text(step.types[i].shape));
    }
    values[static_cast<size_t>(step.writes[i])] = settle(out[i], step.types[i].dtype, device_.is_cpu());
  }
  return {};
}

Status TorchProgram::run(std::span<const TensorView> inputs, std::span<const TensorView> outputs) const {
  const c10::InferenceMode guard;
  Tensors values(constants_.size());
  for (size_t i = 0; i < input_values_.size(); ++i)
    values[static_cast<size_t>(input_values_[i])] = to_carrier(inputs[i], device_, device_);
  for (const Step& step : steps_) {
    HEDDLE_RETURN_IF_ERROR(execute(step, values));
    for (const int v : step.done) values[static_cast<size_t>(v)] = at::Tensor();
  }
  for (size_t i = 0; i < output_values_.size(); ++i) {
    if (outputs[i].data == nullptr) continue;
    const auto v = static_cast<size_t>(output_values_[i]);
    const at::Tensor& made = values[v].defined() ? values[v] : constants_[v];
    if (!made.defined()) return Error(Code::kInternal, "a segment did not make one of its outputs");
    from_carrier(made, outputs[i], device_);
  }
  return {};
}

}  // namespace heddle::torch_backend
