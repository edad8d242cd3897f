// An accelerator's segment for callers who hand over host memory and wait for the result: measurements of one
// segment. The executor does without.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "heddle/runtime/backend.h"
#include "heddle/runtime/stream_runtime.h"

namespace heddle {

// Where a segment's parameters are: copied to the device once, or read in place from mapped host memory.
enum class ParameterPlace : uint8_t { kDevice, kHost };

// A segment of an accelerator with memory there for each slot. `device` outlives it.
class BlockingSegment final : public CompiledSegment {
 public:
  static Result<std::unique_ptr<BlockingSegment>> make(RuntimeDevice& device,
                                                       std::unique_ptr<CompiledSegment> segment, int slots,
                                                       ParameterPlace place = ParameterPlace::kDevice);
  Status bind(int slot, std::span<const TensorView> inputs, std::span<const TensorView> outputs) override;
  // Copies the inputs there, computes, and copies the outputs back.
  Status run(int slot) override;
  SegmentOrigin origin() const override { return segment_->origin(); }

  // Without the copies; copy_inputs() must have come before.
  Status compute(int slot);
  Status copy_inputs(int slot);
  // What the last compute() took on the device, by its events.
  double compute_us() const { return compute_us_; }

 private:
  struct Port {
    TensorView host;
    std::byte* device = nullptr;
  };
  struct Slot {
    std::vector<Port> inputs, outputs;
    std::shared_ptr<std::byte[]> memory;
  };
  BlockingSegment(RuntimeDevice& device, std::unique_ptr<CompiledSegment> segment, int slots)
      : runtime_(*device.stream_runtime()),
        stream_(*device.execution_stream()),
        segment_(std::move(segment)),
        slots_(static_cast<size_t>(slots)) {}
  Status prepare(ParameterPlace place);

  StreamRuntime& runtime_;
  DeviceStream& stream_;
  std::shared_ptr<std::byte[]> parameters_;  // outlives the segment that reads them
  std::unique_ptr<CompiledSegment> segment_;
  std::unique_ptr<DeviceEvent> start_, end_;
  std::vector<Slot> slots_;
  double compute_us_ = 0;
};

}  // namespace heddle
