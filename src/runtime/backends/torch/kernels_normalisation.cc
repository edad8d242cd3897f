// Normalisations and softmax.
#include "kernel.h"

namespace heddle::torch_backend {
namespace {

Result<Kernel> make_softmax(const OpSite& site) {
  if (!site.floating()) return site.refuse("only floating-point tensors have a softmax");
  HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, site.axis_attribute("axis", 1, site.rank()));
  return one([axis](Operands in) { return at::softmax(in[0], axis); });
}

Result<Kernel> make_log_softmax(const OpSite& site) {
  if (!site.floating()) return site.refuse("only floating-point tensors have a softmax");
  HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, site.axis_attribute("axis", 1, site.rank()));
  return one([axis](Operands in) { return at::log_softmax(in[0], axis); });
}

// Inputs x, gamma, beta, mean, variance; in opset 1 x is the third input.
Result<Kernel> batch_norm(const OpSite& site, size_t x, size_t gamma, size_t beta) {
  if (!site.floating() || site.rank(x) < 2) return site.refuse("its type or rank");
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
    const at::Tensor centred = in[0] - at::mean(in[0], axes, true);
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
  if (size < 1) return site.refuse("a window of no element");
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
  if (!site.floating() || groups < 1) return site.refuse("its type or number of groups");
  return one([=](Operands in) { return at::group_norm(in[0], groups, in[1], in[2], epsilon, false); });
}

constexpr KernelEntry kNormalisationKernels[] = {
    {"BatchNormInference", 1, 1, make_old_batch_norm},
    {"BatchNormInference", 5, 5, make_batch_norm},
    {"GroupNormalization", 12, 12, make_group_norm},
    {"LRN", 1, 1, make_lrn},
    {"LogSoftmax", 5, 5, make_log_softmax},
    {"MVN", 6, 6, make_mvn},
    {"NormalizeL2", 1, 1, make_normalize_l2},
    {"Softmax", 1, 8, make_softmax},
};

}  // namespace

std::span<const KernelEntry> normalisation_kernels() { return kNormalisationKernels; }

}  // namespace heddle::torch_backend
