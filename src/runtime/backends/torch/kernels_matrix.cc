// Products of matrices and tensors, and attention.
#include <cmath>
#include <limits>

#include "kernel.h"

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
  if (site.has_input(5)) return site.refuse("attention sinks");
  if (site.rank(0) < 2) return site.refuse("the rank of its query");
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

constexpr KernelEntry kMatrixKernels[] = {
    {"Einsum", 7, 7, make_einsum},
    {"MatMul", 1, 1, make_matmul},
    {"ScaledDotProductAttention", 13, 13, make_attention},
};

}  // namespace

std::span<const KernelEntry> matrix_kernels() { return kMatrixKernels; }

}  // namespace heddle::torch_backend
