#include "heddle/runtime/blocking_device.h"

#include <utility>

namespace heddle {

Result<std::unique_ptr<BlockingSegment>> BlockingSegment::make(RuntimeDevice& device,
                                                               std::unique_ptr<CompiledSegment> segment,
                                                               int slots, bool host_access) {
  std::unique_ptr<BlockingSegment> made(new BlockingSegment(device, std::move(segment), slots));
  HEDDLE_RETURN_IF_ERROR(made->prepare(host_access));
  return made;
}

Status BlockingSegment::prepare(bool host_access) {
  HEDDLE_ASSIGN_OR_RETURN(start_, runtime_.make_event());
  HEDDLE_ASSIGN_OR_RETURN(end_, runtime_.make_event());
  const auto host = segment_->host_parameters();
  if (host.empty()) return {};
  if (host_access) {
    HEDDLE_ASSIGN_OR_RETURN(std::byte* const mapped, runtime_.mapped_address(host.data()));
    return segment_->place_parameters(mapped);
  }
  const auto bytes = static_cast<int64_t>(host.size());
  HEDDLE_ASSIGN_OR_RETURN(parameters_, runtime_.allocate(bytes));
  HEDDLE_RETURN_IF_ERROR(stream_.copy(CopyKind::kHostToDevice, parameters_.get(), host.data(), bytes));
  HEDDLE_RETURN_IF_ERROR(stream_.synchronize());
  segment_->drop_host_parameters();
  return segment_->place_parameters(parameters_.get());
}

Status BlockingSegment::bind(int slot, std::span<const TensorView> inputs,
                             std::span<const TensorView> outputs) {
  SlotMemory& s = slots_[static_cast<size_t>(slot)];
  int64_t total = 0;
  for (const auto& list : {inputs, outputs}) {
    for (const TensorView& view : list) total += device_aligned(view.bytes);
  }
  HEDDLE_RETURN_IF_ERROR(stream_.synchronize());
  s.memory.reset();
  HEDDLE_ASSIGN_OR_RETURN(s.memory, runtime_.allocate(total));
  std::byte* next = s.memory.get();
  const auto place = [&](std::span<const TensorView> views, std::vector<BoundTensor>& tensors) {
    std::vector<TensorView> there;
    tensors.clear();
    for (const TensorView& view : views) {
      tensors.push_back({view, next});
      there.push_back({view.dtype, view.shape, next, view.bytes});
      next += device_aligned(view.bytes);
    }
    return there;
  };
  const auto device_inputs = place(inputs, s.inputs), device_outputs = place(outputs, s.outputs);
  return segment_->bind(slot, device_inputs, device_outputs);
}

Status BlockingSegment::copy_inputs(int slot) {
  for (const BoundTensor& tensor : slots_[static_cast<size_t>(slot)].inputs) {
    HEDDLE_RETURN_IF_ERROR(
        stream_.copy(CopyKind::kHostToDevice, tensor.device, tensor.host.data, tensor.host.bytes));
  }
  return {};
}

Status BlockingSegment::compute(int slot) {
  HEDDLE_RETURN_IF_ERROR(stream_.record(*start_));
  HEDDLE_RETURN_IF_ERROR(segment_->run(slot));
  HEDDLE_RETURN_IF_ERROR(stream_.record(*end_));
  Status done = end_->synchronize();
  if (!done.ok()) {
    static_cast<void>(runtime_.drain().ok());  // clear the error for the next run
    return done;
  }
  HEDDLE_ASSIGN_OR_RETURN(compute_us_, runtime_.elapsed_us(*start_, *end_));
  return {};
}

Status BlockingSegment::run(int slot) {
  HEDDLE_RETURN_IF_ERROR(copy_inputs(slot));
  HEDDLE_RETURN_IF_ERROR(compute(slot));
  for (const BoundTensor& tensor : slots_[static_cast<size_t>(slot)].outputs) {
    HEDDLE_RETURN_IF_ERROR(
        stream_.copy(CopyKind::kDeviceToHost, tensor.host.data, tensor.device, tensor.host.bytes));
  }
  return stream_.synchronize();
}

}  // namespace heddle
