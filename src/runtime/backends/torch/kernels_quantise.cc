// Quantisation that is computed in floating point.
#include "backends/torch/kernel.h"

namespace heddle::torch_backend {
namespace {

// Inputs x, low and high of x, low and high of the result. Halves are rounded to even.
Result<Kernel> make_fake_quantize(const OpSite& site) {
  const int64_t levels = site.node.attribute<int64_t>("levels", 2);
  if (levels < 2 || !site.floating()) return site.refuse("its type or number of levels");
  const auto steps = static_cast<double>(levels - 1);
  return one([steps](Operands in) {
    const at::Tensor low = at::minimum(in[1], in[2]), high = at::maximum(in[1], in[2]);
    const at::Tensor level = at::round((in[0] - in[1]) / (in[2] - in[1]) * steps);
    const at::Tensor inside = level / steps * (in[4] - in[3]) + in[3];
    return at::where(in[0] <= low, in[3], at::where(in[0] > high, in[4], inside));
  });
}

constexpr KernelEntry kQuantiseKernels[] = {
    {"FakeQuantize", 1, 1, make_fake_quantize},
};

}  // namespace

std::span<const KernelEntry> quantise_kernels() { return kQuantiseKernels; }

}  // namespace heddle::torch_backend
