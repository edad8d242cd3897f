// A compiled segment for libtorch: its kernels in order, its constants, and each value's last use.
//
// Carriers. ATen on a CPU lacks many f16 kernels and all u16 and u32 kernels. There f16 and bf16 are computed
// in f32 and rounded to their type after each op, as in the ONNX reference. u16 is held in i32 and u32 in
// i64, reduced to their range after each op. u64 is held in i64 with the same bits; ops whose result would
// differ have their own kernels (unsigned64.h) or reject it.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "kernel.h"
#include "op_node.h"
#include "step_types.h"

namespace heddle::torch_backend {

// Immutable once made (and, on an accelerator, placed). Any thread may call run(), with one run at a time per
// set of tensors.
class TorchProgram {
 public:
  // Makes all kernels and computes everything that depends on constants alone. Fails (unsupported), naming
  // the op, if something is not covered. With fp16 or bf16, float32 tensors between ops are of that type where
  // computes_narrow() says so, and inputs are rounded to it but for `wide_inputs` ([input]; may be empty).
  // O(ops + bytes of constants).
  static Result<std::unique_ptr<TorchProgram>> make(SegmentOps ops, const at::Device& device,
                                                    Precision precision = Precision::kF32,
                                                    const std::vector<bool>& wide_inputs = {});

  // Inputs and outputs in the segment's order; an output without data is skipped. The views' types must be
  // those of the segment's tensors.
  Status run(std::span<const TensorView> inputs, std::span<const TensorView> outputs) const;
  // The same in carriers, for bodies of branches and loops. An output that no op computes is undefined.
  Result<Tensors> compute(Tensors inputs) const;

  // Accelerators: moves everything that run() reads besides its inputs into one block of `allocate`, which
  // pins host memory. place_parameters() must set the device's address of that block before the first run.
  using Allocate = std::function<Result<std::shared_ptr<std::byte[]>>(int64_t bytes)>;
  Status pack_parameters(const Allocate& allocate);
  std::span<std::byte> packed() const { return {packed_.get(), static_cast<size_t>(packed_bytes_)}; }
  void place_parameters(std::byte* address);
  void drop_packed() { packed_.reset(), packed_bytes_ = 0; }
  // Peak bytes of live values between ops, by their shapes; excludes the ops' own temporary memory. O(ops).
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
    std::vector<ValueType> types;  // types of `writes`
    std::vector<int> done;         // values that no later step reads
    std::vector<size_t> casts;     // of `reads`, to `floats`
    DType floats = DType::kF32;    // in which it computes on float32 values
  };
  TorchProgram(const at::Device& device, Precision precision)
      : device_(device), narrow_(narrow_dtype(precision)) {}
  Status check_types(const OpSite& site) const;
  Status add(const SegmentNode& node, Tensors& constants);
  Status execute(const Step& step, Tensors& values) const;
  // For a narrow program: in which type the step computes, which inputs are cast before, and its constants.
  void choose_floats(const SegmentNode& node, Step& step);
  int narrowed(int constant);

  at::Device device_;
  DType narrow_;                        // kUndefined: float32 values stay what they are
  std::vector<bool> narrow_inputs_;     // [input] is rounded to narrow_
  std::vector<bool> is_narrow_;         // [value]; while it is made
  std::map<int, int> narrow_constant_;  // by the float32 constant; while it is made
  std::vector<Step> steps_;
  Tensors constants_;  // [value]; undefined if not constant
  std::vector<int> input_values_, output_values_;
  std::vector<ValueType> input_types_, output_types_;
  std::shared_ptr<const void> memory_;
  std::vector<Packed> parameters_;
  std::shared_ptr<std::byte[]> packed_;
  int64_t packed_bytes_ = 0;
};

// A tensor that does not own its memory.
at::Tensor over_memory(void* data, const Shape& shape, at::ScalarType type, const at::Device& device);
// The view's elements, in memory of `from`, as the type for kernels on `device`; may share the view's memory.
at::Tensor to_carrier(const TensorView& view, FloatCode code, const at::Device& from,
                      const at::Device& device);
// Writes the tensor to the view, whose type and shape are the op's.
void from_carrier(const at::Tensor& tensor, FloatCode code, const TensorView& view, const at::Device& device);

}  // namespace heddle::torch_backend
