// A compiled segment for libtorch: its kernels in order, its constants, and when each value is done with.
//
// Carriers. A CPU's ATen lacks many f16 and all u16 and u32 kernels. There f16 and bf16 are computed in f32
// and rounded to their type after each op, as the ONNX reference does; u16 lives in i32 and u32 in i64,
// reduced to their range after each op. A u64 is held in an i64 of the same bits; ops for which that makes a
// difference have kernels of their own (unsigned64.h) or refuse it.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "kernel.h"
#include "op_node.h"

namespace heddle::torch_backend {

// Immutable once made (and, on an accelerator, placed); run() may be called from any thread, one run at a
// time per caller's tensors.
class TorchProgram {
 public:
  // Looks up and makes all kernels, and computes what depends on constants alone. Fails (unsupported), naming
  // the op, where something is not covered. O(ops + bytes of computed constants).
  static Result<std::unique_ptr<TorchProgram>> make(SegmentOps ops, const at::Device& device);

  // Inputs and outputs in the segment's order; an output without data is not wanted. The views have the types
  // of the segment's tensors.
  Status run(std::span<const TensorView> inputs, std::span<const TensorView> outputs) const;
  // The same in carriers: what a body of a branch or loop is run with. An output that no op makes is
  // undefined.
  Result<Tensors> compute(Tensors inputs) const;

  // Accelerators: moves what run() reads besides its inputs into one block of `allocate`, which pins host
  // memory; the program cannot run until place_parameters() says where the device has that block.
  using Allocate = std::function<Result<std::shared_ptr<std::byte[]>>(int64_t bytes)>;
  Status pack_parameters(const Allocate& allocate);
  std::span<std::byte> packed() const { return {packed_.get(), static_cast<size_t>(packed_bytes_)}; }
  void place_parameters(std::byte* address);
  void drop_packed() { packed_.reset(), packed_bytes_ = 0; }
  // The most bytes of values between ops that are alive at once, by their shapes; what ops need for
  // themselves is not in it. O(ops).
  int64_t workspace_bytes() const;

 private:
  struct Packed {
    int value = 0;
    int64_t offset = 0;
    Shape shape;
    at::ScalarType type = at::kFloat;
  };
  struct Step {
    Kernel kernel;
    std::string name;
    std::vector<int> reads, writes;
    std::vector<ValueType> types;  // of the writes
    std::vector<int> done;         // values that nobody reads after it
  };
  explicit TorchProgram(const at::Device& device) : device_(device) {}
  Status check_types(const OpSite& site) const;
  Status add(const SegmentNode& node, Tensors& constants);
  Status execute(const Step& step, Tensors& values) const;

  at::Device device_;
  std::vector<Step> steps_;
  Tensors constants_;  // by value; undefined where it is none
  std::vector<int> input_values_, output_values_;
  std::vector<ValueType> input_types_, output_types_;
  std::shared_ptr<const void> memory_;
  std::vector<Packed> parameters_;
  std::shared_ptr<std::byte[]> packed_;
  int64_t packed_bytes_ = 0;
};

// A tensor that owns nothing.
at::Tensor over_memory(void* data, const Shape& shape, at::ScalarType type, const at::Device& device);
// The view's elements, which lie in memory of `from`, in the type that kernels on `device` get; may share the
// view's memory.
at::Tensor to_carrier(const TensorView& view, FloatCode code, const at::Device& from,
                      const at::Device& device);
// Writes the tensor into the view, whose type and shape are the op's.
void from_carrier(const at::Tensor& tensor, FloatCode code, const TensorView& view, const at::Device& device);

}  // namespace heddle::torch_backend
