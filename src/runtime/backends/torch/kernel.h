// Kernels: what computes one op with ATen, made once when a segment is compiled.
//
// A kernel is looked up by the op's type and opset and made for its attributes, shapes and constant inputs;
// whatever it does not cover is refused then, so that a plan never meets it while it runs. Kernels compute in
// carriers (see torch_program.h): on a CPU f16 and bf16 come as f32, u16 as i32, u32 and u64 as i64, narrower
// types as narrow_types.h says; what a kernel returns is converted to the type of the op's output.
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "op_node.h"

namespace heddle::torch_backend {

using Tensors = std::vector<at::Tensor>;
// As many outputs as the op has, in its order; an undefined tensor where the kernel makes none. They may
// share memory with the inputs, which are never written to.
using Operands = std::span<const at::Tensor>;
using Kernel = std::function<Tensors(Operands)>;

// An op with what is known of it before it runs.
struct OpSite {
  const OpNode& node;
  std::span<const at::Tensor> constants;  // by input; undefined where it is no constant
  at::Device device = at::kCPU;           // where it will run: a kernel's own tensors belong there

  bool has_input(size_t i) const { return i < node.inputs.size(); }
  const Shape& in(size_t i) const { return node.inputs[i].shape; }
  const Shape& out(size_t i = 0) const { return node.outputs[i].shape; }
  int64_t rank(size_t i = 0) const { return static_cast<int64_t>(node.inputs[i].shape.size()); }
  // The elements of a constant input of integers; an error (unsupported) where it is computed.
  Result<std::vector<int64_t>> integers(size_t i) const;
  // One constant number of any type.
  Result<double> number(size_t i) const;
  // One constant axis of a tensor of this rank, 0 <= axis < rank.
  Result<int64_t> axis(size_t i, int64_t rank) const;
  // Constant axes, ascending and distinct.
  Result<std::vector<int64_t>> axes(size_t i, int64_t rank) const;
  // An axis given as an attribute.
  Result<int64_t> axis_attribute(const std::string& name, int64_t otherwise, int64_t rank) const;
  bool floating(size_t i = 0) const;  // input i
  Error refuse(const std::string& why) const;
};

using KernelMaker = Result<Kernel> (*)(const OpSite& site);

// The ops of this type whose opset number lies in the range.
struct KernelEntry {
  const char* type;
  int first_opset, last_opset;
  KernelMaker make;
};

// One list a family, each in its own file.
std::span<const KernelEntry> unary_kernels();
std::span<const KernelEntry> binary_kernels();
std::span<const KernelEntry> reduce_kernels();
std::span<const KernelEntry> shape_kernels();
std::span<const KernelEntry> slice_kernels();
std::span<const KernelEntry> indexing_kernels();
std::span<const KernelEntry> convolution_kernels();
std::span<const KernelEntry> pooling_kernels();
std::span<const KernelEntry> matrix_kernels();
std::span<const KernelEntry> normalisation_kernels();
std::span<const KernelEntry> quantise_kernels();
std::span<const KernelEntry> recurrent_kernels();
std::span<const KernelEntry> image_kernels();
std::span<const KernelEntry> fourier_kernels();
std::span<const KernelEntry> region_kernels();
std::span<const KernelEntry> control_kernels();

// nullptr when no family covers it.
const KernelEntry* find_kernel(const std::string& type, int opset);

// 0 <= axis < rank, or -1 when it is neither that nor counted from the end.
int64_t normal_axis(int64_t axis, int64_t rank);
at::ScalarType scalar_type(DType dtype);  // of what holds it on a device that has it; Undefined: none
at::ScalarType carrier(DType dtype);      // what a kernel on a CPU gets for it; Undefined: none

// A kernel of one output.
template <class F>
Kernel one(F f) {
  return [f = std::move(f)](Operands in) { return Tensors{f(in)}; };
}

}  // namespace heddle::torch_backend
