// An accelerator's segment for callers who hand over host memory and wait for the result: measurements of one
// segment. The executor does without.
#pragma once

#include <memory>
#include <vector>

#include "heddle/runtime/backend.h"
#include "heddle/runtime/stream_runtime.h"

namespace heddle {

// An accelerator's segment with device memory for each slot. `device` must outlive it. The parameters are copied
// to the device once or, with `host_access`, read in place from mapped host memory.
class BlockingSegment final : public CompiledSegment {
 public:
  static Result<std::unique_ptr<BlockingSegment>> make(RuntimeDevice& device,
                                                       std::unique_ptr<CompiledSegment> segment, int slots,
                                                       bool host_access = false);
  // Copies read and write memory until then.
  ~BlockingSegment() override { static_cast<void>(stream_.synchronize().ok()); }
  Status bind(int slot, std::span<const TensorView> inputs, std::span<const TensorView> outputs) override;
  // Copies the inputs to the device, computes, and copies the outputs back.
  Status run(int slot) override;
  SegmentOrigin origin() const override { return segment_->origin(); }

  // Computes without copies; copy_inputs() must have been called before.
  Status compute(int slot);
  Status copy_inputs(int slot);
  // Time of the last compute() on the device, by its events.
  double compute_us() const { return compute_us_; }

 private:
  struct BoundTensor {
    TensorView host;
    std::byte* device = nullptr;
  };
  struct SlotMemory {
    std::vector<BoundTensor> inputs, outputs;
    std::shared_ptr<std::byte[]> memory;
  };
  BlockingSegment(RuntimeDevice& device, std::unique_ptr<CompiledSegment> segment, int slots)
      : runtime_(*device.stream_runtime()),
        stream_(*device.execution_stream()),
        segment_(std::move(segment)),
        slots_(static_cast<size_t>(slots)) {}
  Status prepare(bool host_access);

  StreamRuntime& runtime_;
  DeviceStream& stream_;
  std::shared_ptr<std::byte[]> parameters_;  // must outlive the segment, which reads them
  std::unique_ptr<CompiledSegment> segment_;
  std::unique_ptr<DeviceEvent> start_, end_;
  std::vector<SlotMemory> slots_;
  double compute_us_ = 0;
};

}  // namespace heddle
