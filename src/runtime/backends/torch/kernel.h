// Kernels: each computes one op with ATen and is made once, when its segment is compiled.
//
// A kernel is looked up by the op's type and opset, and made for its attributes, shapes and constant inputs.
// Unsupported cases are rejected at this point, never during a run. Kernels compute in carriers (see
// torch_program.h): on a CPU f32 for f16 and bf16, i32 for u16, i64 for u32 and u64, and narrower types as in
// narrow_types.h. A kernel's results are converted to the types of the op's outputs.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/status.h"
#include "op_node.h"

namespace heddle::torch_backend {

using Tensors = std::vector<at::Tensor>;
// One tensor per output of the op, in its order; undefined for outputs that the kernel does not compute.
// Outputs may share memory with the inputs, which are never written.
using Operands = std::span<const at::Tensor>;
using Kernel = std::function<Tensors(Operands)>;

// An op with everything that is known before it runs.
struct OpSite {
  const OpNode& node;
  std::span<const at::Tensor> constants;  // by input; undefined if the input is not constant
  at::Device device = at::kCPU;           // where it runs, and where the kernel creates tensors

  bool has_input(size_t i) const { return i < node.inputs.size(); }
  const Shape& in(size_t i) const { return node.inputs[i].shape; }
  const Shape& out(size_t i = 0) const { return node.outputs[i].shape; }
  int64_t rank(size_t i = 0) const { return static_cast<int64_t>(node.inputs[i].shape.size()); }
  // The elements of a constant integer input; an error (unsupported) if the input is not constant.
  Result<std::vector<int64_t>> integers(size_t i) const;
  // One constant number of any type.
  Result<double> number(size_t i) const;
  // 0 <= axis < rank, of one that may count from the end.
  Result<int64_t> axis_of(int64_t given, int64_t rank) const;
  // One constant axis of a tensor of this rank, 0 <= axis < rank.
  Result<int64_t> axis(size_t i, int64_t rank) const;
  // Constant axes, ascending and distinct.
  Result<std::vector<int64_t>> axes(size_t i, int64_t rank) const;
  // An axis given as an attribute.
  Result<int64_t> axis_attribute(const std::string& name, int64_t otherwise, int64_t rank) const;
  // A text attribute; an error for any value besides these.
  Result<std::string> choice(const std::string& name, const std::string& otherwise,
                             std::initializer_list<std::string_view> supported) const;
  bool floating(size_t i = 0) const;  // input i
  // Fails unless input i has floating-point numbers and at least this rank.
  Status expect_floating(int64_t least_rank = 0, size_t i = 0) const;
  Error refuse(const std::string& why) const;
};

using KernelMaker = Result<Kernel> (*)(const OpSite& site);

// Covers the ops of this type with opset numbers in the range.
struct KernelEntry {
  const char* type;
  int first_opset, last_opset;
  KernelMaker make;
};

// One list per family, each in its own file.
std::span<const KernelEntry> elementwise_kernels();
std::span<const KernelEntry> reduce_kernels();
std::span<const KernelEntry> shape_kernels();
std::span<const KernelEntry> slice_kernels();
std::span<const KernelEntry> indexing_kernels();
std::span<const KernelEntry> window_kernels();
std::span<const KernelEntry> layer_kernels();
std::span<const KernelEntry> recurrent_kernels();
std::span<const KernelEntry> image_kernels();
std::span<const KernelEntry> fourier_kernels();
std::span<const KernelEntry> control_kernels();

// nullptr if no family covers it.
const KernelEntry* find_kernel(const std::string& type, int opset);

// Converts an axis that may count from the end to 0 <= axis < rank; -1 if it is out of range.
int64_t normal_axis(int64_t axis, int64_t rank);
at::ScalarType scalar_type(DType dtype);  // storage type on a device that has the dtype; Undefined: none
at::ScalarType stored_type(DType dtype);  // the one with the same bits in memory; Undefined: none
at::ScalarType carrier(DType dtype);      // type for kernels on a CPU; Undefined: none

// A kernel with one output.
template <class F>
Kernel one(F f) {
  return [f = std::move(f)](Operands in) { return Tensors{f(in)}; };
}

}  // namespace heddle::torch_backend
