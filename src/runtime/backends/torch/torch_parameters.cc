// Packs a program's parameters into one block, which is copied to an accelerator at once, and computes the
// peak memory of its values.
#include <algorithm>

#include "heddle/runtime/stream_runtime.h"
#include "torch_program.h"

namespace heddle::torch_backend {

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
    total += (bytes + kDeviceAlignment - 1) / kDeviceAlignment * kDeviceAlignment;
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
