// Elementwise ops; those of two or three tensors with numpy's broadcasting.
#include <cmath>
#include <limits>

#include "kernel.h"

namespace heddle::torch_backend {
namespace {

template <at::Tensor (*F)(const at::Tensor&)>
Result<Kernel> plain_unary(const OpSite&) {
  return one([](Operands in) { return F(in[0]); });
}

// Integers have no fraction to remove.
template <at::Tensor (*F)(const at::Tensor&)>
Result<Kernel> of_fractions(const OpSite& site) {
  if (!site.floating()) return one([](Operands in) { return in[0]; });
  return plain_unary<F>(site);
}

at::Tensor softsign(const at::Tensor& x) { return x / (at::abs(x) + 1); }
at::Tensor softplus(const at::Tensor& x) { return at::softplus(x); }
at::Tensor is_finite(const at::Tensor& x) { return at::isfinite(x); }
at::Tensor half_away(const at::Tensor& x) {
  const at::Tensor down = at::trunc(x);
  return down + at::sign(x) * (at::abs(x - down) >= 0.5).to(x.scalar_type());
}

Result<Kernel> make_identity(const OpSite&) {
  return one([](Operands in) { return in[0]; });
}

// To integers: the fraction is cut off; out-of-range results are undefined in ONNX.
Result<Kernel> make_convert(const OpSite& site) {
  const DType to = site.node.outputs[0].dtype;
  const at::ScalarType type = carrier(to);
  if (to == DType::kU8 && site.floating()) {
    // By way of a signed integer, since converting a negative float to u8 is undefined in C++.
    return one([](Operands in) { return in[0].to(at::kLong).to(at::kByte); });
  }
  if ((to == DType::kU16 || to == DType::kI16 || to == DType::kI8) && site.floating())
    return one([type](Operands in) { return in[0].to(at::kLong).to(type); });
  return one([type](Operands in) { return in[0].to(type); });
}

Result<Kernel> make_round(const OpSite& site) {
  if (!site.floating()) return make_identity(site);
  HEDDLE_ASSIGN_OR_RETURN(const auto mode,
                          site.choice("mode", "half_to_even", {"half_to_even", "half_away_from_zero"}));
  return mode == "half_to_even" ? plain_unary<at::round>(site) : plain_unary<half_away>(site);
}

Result<Kernel> make_gelu(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const auto mode,
                          site.choice("approximation_mode", "ERF", {"ERF", "erf", "TANH", "tanh"}));
  const std::string approximate = mode == "ERF" || mode == "erf" ? "none" : "tanh";
  return one([approximate](Operands in) { return at::gelu(in[0], approximate); });
}

Result<Kernel> make_elu(const OpSite& site) {
  const double alpha = site.node.attribute<double>("alpha", 1.0);
  return one([alpha](Operands in) { return at::where(in[0] > 0, in[0], at::expm1(in[0]) * alpha); });
}

// lambda * (x > 0 ? x : alpha * (e^x - 1)); inputs x, alpha, lambda.
Result<Kernel> make_selu(const OpSite&) {
  return one([](Operands in) { return in[2] * at::where(in[0] > 0, in[0], in[1] * at::expm1(in[0])); });
}

Result<Kernel> make_hard_sigmoid(const OpSite&) {
  return one([](Operands in) { return at::clamp(in[0] * in[1] + in[2], 0, 1); });
}

at::Tensor hard_swish(const at::Tensor& x) { return x * at::clamp(x + 3, 0, 6) / 6; }
at::Tensor hard_sigmoid(const at::Tensor& x) { return at::clamp(x + 3, 0, 6) / 6; }
at::Tensor mish(const at::Tensor& x) { return x * at::tanh(at::softplus(x)); }

Result<Kernel> make_swish(const OpSite& site) {
  if (site.has_input(1)) return one([](Operands in) { return in[0] * at::sigmoid(in[0] * in[1]); });
  return one([](Operands in) { return in[0] * at::sigmoid(in[0]); });
}

// A one-dimensional slope belongs to the channels if it has their length.
Result<Kernel> make_prelu(const OpSite& site) {
  Shape slope = site.in(1);
  const Shape& x = site.in(0);
  if (slope.size() == 1 && x.size() > 1 && slope[0] == x[1] && slope[0] != 1) {
    slope.assign(x.size(), 1);
    slope[1] = x[1];
  }
  return one([slope](Operands in) { return at::where(in[0] < 0, in[0] * in[1].reshape(slope), in[0]); });
}

// Integer bounds are rounded inwards, as in OpenVINO.
Result<Kernel> make_clamp(const OpSite& site) {
  const double low = site.node.attribute<double>("min", 0), high = site.node.attribute<double>("max", 0);
  if (site.floating()) return one([=](Operands in) { return at::clamp(in[0], low, high); });
  constexpr double kLimit = 9.2e18;
  const auto least = static_cast<int64_t>(std::clamp(std::ceil(low), -kLimit, kLimit));
  const auto most = static_cast<int64_t>(std::clamp(std::floor(high), -kLimit, kLimit));
  return one([=](Operands in) { return at::clamp(in[0].to(at::kLong), least, most); });
}

Result<Kernel> make_is_inf(const OpSite& site) {
  const bool negative = site.node.attribute<bool>("detect_negative", true);
  const bool positive = site.node.attribute<bool>("detect_positive", true);
  return one([=](Operands in) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    at::Tensor found = at::zeros_like(in[0], at::kBool);
    if (positive) found = at::logical_or(found, at::eq(in[0], kInf));
    if (negative) found = at::logical_or(found, at::eq(in[0], -kInf));
    return found;
  });
}

using BinaryFunction = at::Tensor (*)(const at::Tensor&, const at::Tensor&);

template <BinaryFunction F>
Result<Kernel> plain_binary(const OpSite& site) {
  HEDDLE_RETURN_IF_ERROR(site.choice("auto_broadcast", "numpy", {"numpy", "none"}));
  return one([](Operands in) { return F(in[0], in[1]); });
}

at::Tensor add(const at::Tensor& a, const at::Tensor& b) { return at::add(a, b); }
at::Tensor subtract(const at::Tensor& a, const at::Tensor& b) { return at::sub(a, b); }
at::Tensor squared_difference(const at::Tensor& a, const at::Tensor& b) { return at::square(at::sub(a, b)); }

// Integer division by 0, and of the least integer by -1, traps on a CPU. With divisor 1 instead, remainders
// are 0: correct for -1, while ONNX leaves division by zero undefined. Compared with unsigned values, -1 would be 255.
bool has_negatives(const at::Tensor& b) { return at::isSignedType(b.scalar_type()); }

at::Tensor safe_divisor(const at::Tensor& b) {
  const at::Tensor unsafe = has_negatives(b) ? at::logical_or(b == 0, b == -1) : b == 0;
  return at::where(unsafe, at::ones({}, b.options()), b);
}

// Integers: rounded towards zero, as in ONNX and on OpenVINO's devices. (The importer leaves the attribute
// m_pythondiv, which says otherwise, at its default.) A quotient by zero is 0, so that a masked element does
// not make the segment fail.
Result<Kernel> make_divide(const OpSite& site) {
  HEDDLE_RETURN_IF_ERROR(site.choice("auto_broadcast", "numpy", {"numpy", "none"}));
  if (site.floating()) return one([](Operands in) { return at::div(in[0], in[1]); });
  return one([](Operands in) {
    const at::Tensor quotient = at::div(in[0], safe_divisor(in[1]), "trunc");
    const at::Tensor of_negatives =
        has_negatives(in[1]) ? at::where(in[1] == -1, at::neg(in[0]), quotient) : quotient;
    return at::where(in[1] == 0, at::zeros({}, quotient.options()), of_negatives);
  });
}

template <BinaryFunction F>
Result<Kernel> remainder_kernel(const OpSite& site) {
  HEDDLE_RETURN_IF_ERROR(site.choice("auto_broadcast", "numpy", {"numpy", "none"}));
  if (site.floating()) return one([](Operands in) { return F(in[0], in[1]); });
  return one([](Operands in) { return F(in[0], safe_divisor(in[1])); });
}

Result<Kernel> make_select(const OpSite& site) {
  HEDDLE_RETURN_IF_ERROR(site.choice("auto_broadcast", "numpy", {"numpy", "none"}));
  return one([](Operands in) { return at::where(in[0].to(at::kBool), in[1], in[2]); });
}

constexpr KernelEntry kElementwiseKernels[] = {
    {"Abs", 1, 1, plain_unary<at::abs>},
    {"Acos", 1, 1, plain_unary<at::acos>},
    {"Acosh", 4, 4, plain_unary<at::acosh>},
    {"Add", 1, 1, plain_binary<add>},
    {"Asin", 1, 1, plain_unary<at::asin>},
    {"Asinh", 4, 4, plain_unary<at::asinh>},
    {"Atan", 1, 1, plain_unary<at::atan>},
    {"Atanh", 4, 4, plain_unary<at::atanh>},
    {"BitwiseAnd", 13, 13, plain_binary<at::bitwise_and>},
    {"BitwiseLeftShift", 15, 15, plain_binary<at::bitwise_left_shift>},
    {"BitwiseNot", 13, 13, plain_unary<at::bitwise_not>},
    {"BitwiseOr", 13, 13, plain_binary<at::bitwise_or>},
    {"BitwiseRightShift", 15, 15, plain_binary<at::bitwise_right_shift>},
    {"BitwiseXor", 13, 13, plain_binary<at::bitwise_xor>},
    {"Ceiling", 1, 1, of_fractions<at::ceil>},
    {"Clamp", 1, 1, make_clamp},
    {"Convert", 1, 1, make_convert},
    {"ConvertLike", 1, 1, make_convert},
    {"Cos", 1, 1, plain_unary<at::cos>},
    {"Cosh", 1, 1, plain_unary<at::cosh>},
    {"Divide", 1, 1, make_divide},
    {"Elu", 1, 1, make_elu},
    {"Equal", 1, 1, plain_binary<at::eq>},
    {"Erf", 1, 1, plain_unary<at::erf>},
    {"Exp", 1, 1, plain_unary<at::exp>},
    {"Floor", 1, 1, of_fractions<at::floor>},
    {"FloorMod", 1, 1, remainder_kernel<at::remainder>},
    {"Gelu", 2, 7, make_gelu},
    {"Greater", 1, 1, plain_binary<at::gt>},
    {"GreaterEqual", 1, 1, plain_binary<at::ge>},
    {"HSigmoid", 5, 5, plain_unary<hard_sigmoid>},
    {"HSwish", 4, 4, plain_unary<hard_swish>},
    {"HardSigmoid", 1, 1, make_hard_sigmoid},
    {"Identity", 16, 16, make_identity},
    {"IsFinite", 10, 10, plain_unary<is_finite>},
    {"IsInf", 10, 10, make_is_inf},
    {"IsNaN", 10, 10, plain_unary<at::isnan>},
    {"Less", 1, 1, plain_binary<at::lt>},
    {"LessEqual", 1, 1, plain_binary<at::le>},
    {"Log", 1, 1, plain_unary<at::log>},
    {"LogicalAnd", 1, 1, plain_binary<at::logical_and>},
    {"LogicalNot", 1, 1, plain_unary<at::logical_not>},
    {"LogicalOr", 1, 1, plain_binary<at::logical_or>},
    {"LogicalXor", 1, 2, plain_binary<at::logical_xor>},
    {"Maximum", 1, 1, plain_binary<at::maximum>},
    {"Minimum", 1, 1, plain_binary<at::minimum>},
    {"Mish", 4, 4, plain_unary<mish>},
    {"Mod", 1, 1, remainder_kernel<at::fmod>},
    {"Multiply", 1, 1, plain_binary<at::mul>},
    {"Negative", 1, 1, plain_unary<at::neg>},
    {"NotEqual", 1, 1, plain_binary<at::ne>},
    {"PRelu", 1, 1, make_prelu},
    {"Power", 1, 1, plain_binary<at::pow>},
    {"Relu", 1, 1, plain_unary<at::relu>},
    {"Round", 5, 5, make_round},
    {"Select", 1, 1, make_select},
    {"Selu", 1, 1, make_selu},
    {"Sigmoid", 1, 1, plain_unary<at::sigmoid>},
    {"Sign", 1, 1, plain_unary<at::sign>},
    {"Sin", 1, 1, plain_unary<at::sin>},
    {"Sinh", 1, 1, plain_unary<at::sinh>},
    {"SoftPlus", 4, 4, plain_unary<softplus>},
    {"SoftSign", 9, 9, plain_unary<softsign>},
    {"Sqrt", 1, 1, plain_unary<at::sqrt>},
    {"SquaredDifference", 1, 1, plain_binary<squared_difference>},
    {"Subtract", 1, 1, plain_binary<subtract>},
    {"Swish", 4, 4, make_swish},
    {"Tan", 1, 1, plain_unary<at::tan>},
    {"Tanh", 1, 1, plain_unary<at::tanh>},
    {"Xor", 1, 1, plain_binary<at::logical_xor>},
};

}  // namespace

std::span<const KernelEntry> elementwise_kernels() { return kElementwiseKernels; }

}  // namespace heddle::torch_backend
