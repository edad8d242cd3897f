// Elementwise ops of two or three tensors, with numpy's broadcasting.
#include "kernel.h"

namespace heddle::torch_backend {
namespace {

using BinaryFunction = at::Tensor (*)(const at::Tensor&, const at::Tensor&);

Status check_broadcast(const OpSite& site) {
  const auto rule = site.node.attribute<std::string>("auto_broadcast", "numpy");
  if (rule == "numpy" || rule == "none") return {};
  return site.refuse("broadcasting by the rule '" + rule + "'");
}

template <BinaryFunction F>
Result<Kernel> plain_binary(const OpSite& site) {
  HEDDLE_RETURN_IF_ERROR(check_broadcast(site));
  return one([](Operands in) { return F(in[0], in[1]); });
}

at::Tensor add(const at::Tensor& a, const at::Tensor& b) { return at::add(a, b); }
at::Tensor subtract(const at::Tensor& a, const at::Tensor& b) { return at::sub(a, b); }
at::Tensor squared_difference(const at::Tensor& a, const at::Tensor& b) { return at::square(at::sub(a, b)); }

// Integer division by 0, and of the least integer by -1, traps on a CPU. With divisor 1 instead, remainders
// are 0: correct for -1, while ONNX leaves division by zero undefined.
at::Tensor safe_divisor(const at::Tensor& b) {
  return at::where(at::logical_or(b == 0, b == -1), at::ones({}, b.options()), b);
}

// Integers: rounded towards zero, as in ONNX and on OpenVINO's devices. (The importer leaves the attribute
// m_pythondiv, which says otherwise, at its default.) A quotient by zero is 0, so that a masked element does
// not make the segment fail.
Result<Kernel> make_divide(const OpSite& site) {
  HEDDLE_RETURN_IF_ERROR(check_broadcast(site));
  if (site.floating()) return one([](Operands in) { return at::div(in[0], in[1]); });
  return one([](Operands in) {
    const at::Tensor quotient = at::div(in[0], safe_divisor(in[1]), "trunc");
    const at::Tensor of_negatives = at::where(in[1] == -1, at::neg(in[0]), quotient);
    return at::where(in[1] == 0, at::zeros({}, quotient.options()), of_negatives);
  });
}

template <BinaryFunction F>
Result<Kernel> remainder_kernel(const OpSite& site) {
  HEDDLE_RETURN_IF_ERROR(check_broadcast(site));
  if (site.floating()) return one([](Operands in) { return F(in[0], in[1]); });
  return one([](Operands in) { return F(in[0], safe_divisor(in[1])); });
}

Result<Kernel> make_select(const OpSite& site) {
  HEDDLE_RETURN_IF_ERROR(check_broadcast(site));
  return one([](Operands in) { return at::where(in[0].to(at::kBool), in[1], in[2]); });
}

constexpr KernelEntry kBinaryKernels[] = {
    {"Add", 1, 1, plain_binary<add>},
    {"BitwiseAnd", 13, 13, plain_binary<at::bitwise_and>},
    {"BitwiseLeftShift", 15, 15, plain_binary<at::bitwise_left_shift>},
    {"BitwiseOr", 13, 13, plain_binary<at::bitwise_or>},
    {"BitwiseRightShift", 15, 15, plain_binary<at::bitwise_right_shift>},
    {"BitwiseXor", 13, 13, plain_binary<at::bitwise_xor>},
    {"Divide", 1, 1, make_divide},
    {"Equal", 1, 1, plain_binary<at::eq>},
    {"FloorMod", 1, 1, remainder_kernel<at::remainder>},
    {"Greater", 1, 1, plain_binary<at::gt>},
    {"GreaterEqual", 1, 1, plain_binary<at::ge>},
    {"Less", 1, 1, plain_binary<at::lt>},
    {"LessEqual", 1, 1, plain_binary<at::le>},
    {"LogicalAnd", 1, 1, plain_binary<at::logical_and>},
    {"LogicalOr", 1, 1, plain_binary<at::logical_or>},
    {"LogicalXor", 1, 2, plain_binary<at::logical_xor>},
    {"Maximum", 1, 1, plain_binary<at::maximum>},
    {"Minimum", 1, 1, plain_binary<at::minimum>},
    {"Mod", 1, 1, remainder_kernel<at::fmod>},
    {"Multiply", 1, 1, plain_binary<at::mul>},
    {"NotEqual", 1, 1, plain_binary<at::ne>},
    {"Power", 1, 1, plain_binary<at::pow>},
    {"Select", 1, 1, make_select},
    {"SquaredDifference", 1, 1, plain_binary<squared_difference>},
    {"Subtract", 1, 1, plain_binary<subtract>},
    {"Xor", 1, 1, plain_binary<at::logical_xor>},
};

}  // namespace

std::span<const KernelEntry> binary_kernels() { return kBinaryKernels; }

}  // namespace heddle::torch_backend
