// Layers: products of matrices and tensors, attention, normalisation, quantisation.
#include <cmath>
#include <limits>

#include "kernel.h"
#include "narrow_types.h"

namespace heddle::torch_backend {
namespace {

Result<Kernel> make_matmul(const OpSite& site) {
  // Vectors are not transposed.
  const bool a = site.node.attribute<bool>("transpose_a", false) && site.rank(0) > 1;
  const bool b = site.node.attribute<bool>("transpose_b", false) && site.rank(1) > 1;
  return one([a, b](Operands in) {
    return at::matmul(a ? in[0].transpose(-1, -2) : in[0], b ? in[1].transpose(-1, -2) : in[1]);
  });
}

Result<Kernel> make_einsum(const OpSite& site) {
  const auto equation = site.node.attribute<std::string>("equation", "");
  return one([equation](Operands in) { return at::einsum(equation, at::TensorList(in.data(), in.size())); });
}

// softmax(scale * q k^T + mask) v; inputs q, k, v, mask, scale. A bool mask is true for visible elements.
Result<Kernel> make_attention(const OpSite& site) {
  if (site.has_input(5)) return site.refuse("it has attention sinks, which are not supported");
  HEDDLE_RETURN_IF_ERROR(site.expect_floating(2));
  const bool causal = site.node.attribute<bool>("causal", false);
  const bool masked = site.has_input(3) && !causal, scaled = site.has_input(4);
  const double usual = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(site.in(0).back(), 1)));
  return one([=](Operands in) {
    constexpr double kHidden = -std::numeric_limits<double>::infinity();
    const at::Tensor products = at::matmul(in[0], in[1].transpose(-1, -2));
    at::Tensor scores = scaled ? products * in[4] : products * usual;
    if (causal) {
      const at::Tensor seen = at::ones({scores.size(-2), scores.size(-1)}, scores.options().dtype(at::kBool));
      scores = at::where(at::tril(seen), scores, at::full({}, kHidden, scores.options()));
    } else if (masked && in[3].scalar_type() == at::kBool) {
      scores = at::where(in[3], scores, at::full({}, kHidden, scores.options()));
    } else if (masked) {
      scores = scores + in[3];
    }
    return at::matmul(at::softmax(scores, -1), in[2]);
  });
}

template <bool Log>
Result<Kernel> make_softmax(const OpSite& site) {
  HEDDLE_RETURN_IF_ERROR(site.expect_floating());
  HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, site.axis_attribute("axis", 1, site.rank()));
  return one([axis](Operands in) { return Log ? at::log_softmax(in[0], axis) : at::softmax(in[0], axis); });
}

// Inputs x, gamma, beta, mean, variance; in opset 1 x is the third input.
Result<Kernel> batch_norm(const OpSite& site, size_t x, size_t gamma, size_t beta) {
  HEDDLE_RETURN_IF_ERROR(site.expect_floating(2, x));
  const double epsilon = site.node.attribute<double>("epsilon", 1e-5);
  return one([=](Operands in) {
    return at::batch_norm(in[x], in[gamma], in[beta], in[3], in[4], false, 0, epsilon, false);
  });
}
Result<Kernel> make_batch_norm(const OpSite& site) { return batch_norm(site, 0, 1, 2); }
Result<Kernel> make_old_batch_norm(const OpSite& site) { return batch_norm(site, 2, 0, 1); }

Result<Kernel> make_mvn(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const auto axes, site.axes(1, site.rank()));
  const bool by_variance = site.node.attribute<bool>("normalize_variance", true);
  const double eps = site.node.attribute<double>("eps", 0);
  const auto mode = site.node.attribute<std::string>("eps_mode", "INSIDE_SQRT");
  const bool inside = mode == "INSIDE_SQRT" || mode == "inside_sqrt";
  return one([=](Operands in) {
    // On a device that has the narrower types: their squares leave fp16's range, and a small eps is lost.
    const at::Tensor x = in[0].scalar_type() == at::kDouble ? in[0] : in[0].to(at::kFloat);
    const at::Tensor centred = x - at::mean(x, axes, true);
    if (!by_variance) return centred;
    const at::Tensor variance = at::mean(centred * centred, axes, true);
    return centred / (inside ? at::sqrt(variance + eps) : at::sqrt(variance) + eps);
  });
}

Result<Kernel> make_normalize_l2(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const auto axes, site.axes(1, site.rank()));
  const double eps = site.node.attribute<double>("eps", 0);
  const bool add = site.node.attribute<std::string>("eps_mode", "add") == "add";
  return one([=](Operands in) {
    const at::Tensor squares = axes.empty() ? in[0] * in[0] : at::sum(in[0] * in[0], axes, true);
    return in[0] / at::sqrt(add ? squares + eps : at::clamp_min(squares, eps));
  });
}

// x / (bias + alpha / n * sum of the squares of n neighbours)^beta; n is the number of elements in a window.
Result<Kernel> make_lrn(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const auto axes, site.axes(1, site.rank()));
  const int64_t size = site.node.attribute<int64_t>("size", 1);
  const double alpha = site.node.attribute<double>("alpha", 1), beta = site.node.attribute<double>("beta", 0);
  const double bias = site.node.attribute<double>("bias", 1);
  if (size < 1)
    return site.refuse("its window has " + std::to_string(size) + " elements; expected at least 1");
  double elements = 1;
  for (size_t i = 0; i < axes.size(); ++i) elements *= static_cast<double>(size);
  return one([=](Operands in) {
    at::Tensor squares = in[0] * in[0];
    for (const int64_t axis : axes) {
      std::vector<int64_t> pads(static_cast<size_t>(2 * (squares.dim() - axis)), 0);
      pads[pads.size() - 2] = (size - 1) / 2;
      pads[pads.size() - 1] = size - 1 - (size - 1) / 2;
      squares = at::constant_pad_nd(squares, pads, 0).unfold(axis, size, 1).sum(-1);
    }
    return in[0] / at::pow(bias + squares * (alpha / elements), beta);
  });
}

Result<Kernel> make_group_norm(const OpSite& site) {
  const int64_t groups = site.node.attribute<int64_t>("num_groups", 1);
  const double epsilon = site.node.attribute<double>("epsilon", 1e-5);
  HEDDLE_RETURN_IF_ERROR(site.expect_floating(2));
  if (groups < 1) return site.refuse("it has " + std::to_string(groups) + " groups; expected at least 1");
  return one([=](Operands in) { return at::group_norm(in[0], groups, in[1], in[2], epsilon, false); });
}

// Inputs x, low and high of x, low and high of the result. Ties are rounded to even.
Result<Kernel> make_fake_quantize(const OpSite& site) {
  const int64_t levels = site.node.attribute<int64_t>("levels", 2);
  HEDDLE_RETURN_IF_ERROR(site.expect_floating());
  if (levels < 2) return site.refuse("it has " + std::to_string(levels) + " levels; expected at least 2");
  const auto steps = static_cast<double>(levels - 1);
  return one([steps](Operands in) {
    const at::Tensor low = at::minimum(in[1], in[2]), high = at::maximum(in[1], in[2]);
    const at::Tensor level = at::round((in[0] - in[1]) / (in[2] - in[1]) * steps);
    const at::Tensor inside = level / steps * (in[4] - in[3]) + in[3];
    return at::where(in[0] <= low, in[3], at::where(in[0] > high, in[4], inside));
  });
}

// Rounds x so that x * scale - shift is an 8-bit float; inputs x, scale, shift.
Result<Kernel> make_fake_convert(const OpSite& site) {
  HEDDLE_RETURN_IF_ERROR(site.expect_floating());
  HEDDLE_ASSIGN_OR_RETURN(const auto type, site.choice("destination_type", "", {"f8e4m3", "f8e5m2"}));
  const FloatCode code = type == "f8e4m3" ? FloatCode::kE4M3 : FloatCode::kE5M2;
  if (!site.device.is_cpu()) return site.refuse("it runs on the host only, not on this device");
  const bool shifted = site.has_input(2);
  return one([=](Operands in) {
    const at::Tensor scaled = shifted ? in[0] * in[1] - in[2] : in[0] * in[1];
    const at::Tensor held = settle_narrow(scaled, DType::kF8, code);
    return (shifted ? held + in[2] : held) / in[1];
  });
}

constexpr KernelEntry kLayerKernels[] = {
    {"BatchNormInference", 1, 1, make_old_batch_norm},
    {"BatchNormInference", 5, 5, make_batch_norm},
    {"Einsum", 7, 7, make_einsum},
    {"FakeConvert", 13, 13, make_fake_convert},
    {"FakeQuantize", 1, 1, make_fake_quantize},
    {"GroupNormalization", 12, 12, make_group_norm},
    {"LRN", 1, 1, make_lrn},
    {"LogSoftmax", 5, 5, make_softmax<true>},
    {"MVN", 6, 6, make_mvn},
    {"MatMul", 1, 1, make_matmul},
    {"NormalizeL2", 1, 1, make_normalize_l2},
    {"ScaledDotProductAttention", 13, 13, make_attention},
    {"Softmax", 1, 8, make_softmax<false>},
};

}  // namespace

std::span<const KernelEntry> layer_kernels() { return kLayerKernels; }

}  // namespace heddle::torch_backend
