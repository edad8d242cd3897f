#include "torch_program.h"

#include <algorithm>

#include "heddle/runtime/stream_runtime.h"
#include "narrow_types.h"
#include "unsigned64.h"

namespace heddle::torch_backend {
namespace {

bool rounds(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

// Reduces a value in a wider carrier to its type's range.
at::Tensor settle(const at::Tensor& tensor, const ValueType& type, bool on_cpu) {
  if (!on_cpu) return tensor.to(scalar_type(type.dtype));
  if (is_narrow(type.dtype)) return settle_narrow(tensor, type.dtype, type.code);
  switch (type.dtype) {
    case DType::kF16:
    case DType::kBF16:
      return tensor.to(scalar_type(type.dtype)).to(at::kFloat);
    case DType::kU16:
      return tensor.to(at::kInt).bitwise_and(0xFFFF);
    case DType::kU32:
      return tensor.to(at::kLong).bitwise_and(int64_t{0xFFFFFFFF});
    default:
      return tensor.to(carrier(type.dtype));
  }
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

at::Tensor to_carrier(const TensorView& view, FloatCode code, const at::Device& from,
                      const at::Device& device) {
  if (is_narrow(view.dtype)) return widen(view, code);
  at::Tensor tensor = over_memory(view.data, view.shape, stored_type(view.dtype), from);
  if (!device.is_cpu()) return tensor.to(device, scalar_type(view.dtype));
  if (view.dtype == DType::kU16) return tensor.to(at::kInt).bitwise_and(0xFFFF);
  if (view.dtype == DType::kU32) return tensor.to(at::kLong).bitwise_and(int64_t{0xFFFFFFFF});
  return rounds(view.dtype) ? tensor.to(at::kFloat) : tensor;
}

void from_carrier(const at::Tensor& tensor, FloatCode code, const TensorView& view,
                  const at::Device& device) {
  if (is_narrow(view.dtype)) return store_narrow(tensor, code, view);
  at::Tensor target = over_memory(view.data, view.shape, stored_type(view.dtype), device);
  target.copy_(tensor);
}

Result<std::unique_ptr<TorchProgram>> TorchProgram::make(SegmentOps ops, const at::Device& device,
                                                         Precision precision,
                                                         const std::vector<bool>& wide_inputs) {
  const c10::InferenceMode guard;
  std::unique_ptr<TorchProgram> program(new TorchProgram(device, precision));
  program->memory_ = std::move(ops.memory);
  program->input_values_ = ops.inputs;
  program->output_values_ = ops.outputs;
  program->input_types_ = ops.input_types;
  program->output_types_ = ops.output_types;
  program->constants_.resize(static_cast<size_t>(ops.num_values));
  program->is_narrow_.resize(static_cast<size_t>(ops.num_values), false);
  program->narrow_inputs_.resize(ops.inputs.size(), false);
  for (size_t i = 0; i < ops.inputs.size(); ++i) {
    const bool narrow = program->narrow_ != DType::kUndefined && ops.input_types[i].dtype == DType::kF32 &&
                        !(i < wide_inputs.size() && wide_inputs[i]);
    program->narrow_inputs_[i] = narrow;
    program->is_narrow_[static_cast<size_t>(ops.inputs[i])] = narrow;
  }
  for (const SegmentConstant& constant : ops.constants) {
    if (carrier(constant.view.dtype) == at::ScalarType::Undefined) continue;  // rejected by its reader
    program->constants_[static_cast<size_t>(constant.value)] =
        to_carrier(constant.view, constant.code, at::kCPU, device);
  }
  for (const SegmentNode& node : ops.nodes) HEDDLE_RETURN_IF_ERROR(program->add(node, program->constants_));
  // A value is released after its last reader, unless it leaves the segment.
  std::vector<bool> kept(program->constants_.size(), false);
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
  // Drops constants that only computed constants read.
  std::vector<bool> used(program->constants_.size(), false);
  for (const Step& step : program->steps_)
    for (const int v : step.reads) used[static_cast<size_t>(v)] = true;
  for (const int v : program->output_values_) used[static_cast<size_t>(v)] = true;
  for (size_t v = 0; v < used.size(); ++v)
    if (!used[v]) program->constants_[v] = at::Tensor();
  program->is_narrow_.clear();
  program->narrow_constant_.clear();
  return program;
}

Status TorchProgram::check_types(const OpSite& site) const {
  const auto holds = [&](DType dtype) {
    return (device_.is_cpu() ? carrier(dtype) : scalar_type(dtype)) != at::ScalarType::Undefined;
  };
  const auto refuse = [&](DType dtype) {
    return site.refuse(std::string("it has a tensor of ") + dtype_name(dtype) +
                       ", for which libtorch has no kernel");
  };
  const bool takes_u64 = takes_unsigned64(site.node);
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
  kernel = for_unsigned64(node.op, std::move(kernel));
  Step step{.kernel = std::move(kernel),
            .name = node.op.name,
            .reads = node.reads,
            .writes = node.writes,
            .types = node.op.outputs,
            .done = {},
            .casts = {}};
  if (!all_known) {
    if (narrow_ != DType::kUndefined) choose_floats(node, step);
    steps_.push_back(std::move(step));
    return {};
  }
  return execute(step, constants);
}

int TorchProgram::narrowed(int constant) {
  const auto [known, fresh] = narrow_constant_.emplace(constant, static_cast<int>(constants_.size()));
  if (fresh) {
    at::Tensor narrow = in_type(constants_[static_cast<size_t>(constant)], narrow_);
    constants_.push_back(std::move(narrow));
    is_narrow_.push_back(true);
  }
  return known->second;
}

void TorchProgram::choose_floats(const SegmentNode& node, Step& step) {
  std::vector<FloatInput> kinds(node.reads.size(), FloatInput::kNone);
  for (size_t i = 0; i < kinds.size(); ++i) {
    const auto v = static_cast<size_t>(node.reads[i]);
    if (node.op.inputs[i].dtype != DType::kF32) continue;
    kinds[i] = constants_[v].defined() ? FloatInput::kConstant
               : is_narrow_[v]         ? FloatInput::kNarrow
                                       : FloatInput::kWide;
  }
  bool need_range = node.reads.size() == 2 && is_square(node.op.type, node.reads[0], node.reads[1]);
  for (size_t i = 0; i < kinds.size() && !need_range; ++i)
    need_range =
        kinds[i] == FloatInput::kConstant && !fits(constants_[static_cast<size_t>(node.reads[i])], narrow_);
  const bool narrow = computes_narrow(node.op.type, kinds, need_range);
  if (narrow) step.floats = narrow_;
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i] == FloatInput::kConstant && narrow && !keeps_constants(node.op.type)) {
      step.reads[i] = narrowed(node.reads[i]);
      if (device_.is_cpu()) step.casts.push_back(i);  // to the carrier
    }
    if (kinds[i] == (narrow ? FloatInput::kWide : FloatInput::kNarrow)) step.casts.push_back(i);
  }
  for (size_t i = 0; i < step.types.size(); ++i) {
    if (step.types[i].dtype != DType::kF32) continue;
    step.types[i].dtype = step.floats;
    is_narrow_[static_cast<size_t>(node.writes[i])] = narrow;
  }
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
    for (const size_t i : step.casts) in[i] = as_floats(in[i], step.floats, device_.is_cpu());
    out = step.kernel(in);
  } catch (const c10::Error& e) {
    return unsupported("op '" + step.name + "': libtorch failed: " + e.what_without_backtrace());
  } catch (const std::exception& e) {
    return unsupported("op '" + step.name + "': libtorch failed: " + text_of(e));
  }
  for (size_t i = 0; i < step.writes.size() && i < out.size(); ++i) {
    if (!out[i].defined()) continue;
    if (out[i].sizes() != at::IntArrayRef(step.types[i].shape)) {
      return internal_error("op '" + step.name + "' made a tensor of another shape than the graph's " +
                            shape_text(step.types[i].shape));
    }
    values[static_cast<size_t>(step.writes[i])] = settle(out[i], step.types[i], device_.is_cpu());
  }
  return {};
}

Result<Tensors> TorchProgram::compute(Tensors inputs) const {
  Tensors values(constants_.size());
  for (size_t i = 0; i < input_values_.size(); ++i)
    values[static_cast<size_t>(input_values_[i])] = std::move(inputs[i]);
  for (const Step& step : steps_) {
    HEDDLE_RETURN_IF_ERROR(execute(step, values));
    for (const int v : step.done) values[static_cast<size_t>(v)] = at::Tensor();
  }
  Tensors made;
  for (const int value : output_values_) {
    const auto v = static_cast<size_t>(value);
    made.push_back(values[v].defined() ? values[v] : constants_[v]);
  }
  return made;
}

Status TorchProgram::run(std::span<const TensorView> inputs, std::span<const TensorView> outputs) const {
  const c10::InferenceMode guard;
  Tensors given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    given.push_back(to_carrier(inputs[i], input_types_[i].code, device_, device_));
    if (narrow_inputs_[i]) given.back() = as_floats(given.back(), narrow_, device_.is_cpu());
  }
  HEDDLE_ASSIGN_OR_RETURN(const Tensors made, compute(std::move(given)));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].data == nullptr) continue;
    if (!made[i].defined()) return internal_error("a segment did not make one of its outputs");
    from_carrier(made[i], output_types_[i].code, outputs[i], device_);
  }
  return {};
}

Status TorchProgram::pack_parameters(const Allocate& allocate) {
  const c10::InferenceMode guard;
  int64_t total = 0;
  for (size_t v = 0; v < constants_.size(); ++v) {
    const at::Tensor& constant = constants_[v];
    if (!constant.defined()) continue;
    parameters_.push_back({.value = static_cast<int>(v),
                           .offset = total,
                           .shape = Shape(constant.sizes().begin(), constant.sizes().end()),
                           .type = constant.scalar_type()});
    const auto bytes = static_cast<int64_t>(constant.numel() * constant.element_size());
    total += device_aligned(bytes);
  }
  if (total == 0) return {};
  HEDDLE_ASSIGN_OR_RETURN(packed_, allocate(total));
  packed_bytes_ = total;
  for (const Packed& p : parameters_) {
    at::Tensor& constant = constants_[static_cast<size_t>(p.value)];
    over_memory(packed_.get() + p.offset, p.shape, p.type, at::kCPU).copy_(constant);
    constant = at::Tensor();
  }
  memory_.reset();
  return {};
}

void TorchProgram::place_parameters(std::byte* address) {
  const c10::InferenceMode guard;
  for (const Packed& p : parameters_) {
    constants_[static_cast<size_t>(p.value)] = over_memory(address + p.offset, p.shape, p.type, device_);
  }
}

int64_t TorchProgram::workspace_bytes() const {
  std::vector<int64_t> bytes(constants_.size(), 0);
  int64_t alive = 0, most = 0;
  for (const Step& step : steps_) {
    for (size_t i = 0; i < step.writes.size(); ++i) {
      int64_t elements = 1;
      for (const int64_t d : step.types[i].shape) elements *= d;
      const int64_t size = elements * static_cast<int64_t>(at::elementSize(scalar_type(step.types[i].dtype)));
      bytes[static_cast<size_t>(step.writes[i])] = size;
      alive += size;
    }
    most = std::max(most, alive);
    for (const int v : step.done) alive -= bytes[static_cast<size_t>(v)];
  }
  return most;
}

}  // namespace heddle::torch_backend
