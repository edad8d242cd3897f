// Quantisation computed in floating point.
#include "kernel.h"
#include "narrow_types.h"

namespace heddle::torch_backend {
namespace {

// Inputs x, low and high of x, low and high of the result. Ties are rounded to even.
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

// Rounds x so that x * scale - shift is an 8-bit float; inputs x, scale, shift.
Result<Kernel> make_fake_convert(const OpSite& site) {
  const auto type = site.node.attribute<std::string>("destination_type", "");
  const FloatCode code = type == "f8e4m3" ? FloatCode::kE4M3 : FloatCode::kE5M2;
  if ((type != "f8e4m3" && type != "f8e5m2") || !site.floating()) return site.refuse("type '" + type + "'");
  if (!site.device.is_cpu()) return site.refuse("it is computed on the host alone");
  const bool shifted = site.has_input(2);
  return one([=](Operands in) {
    const at::Tensor scaled = shifted ? in[0] * in[1] - in[2] : in[0] * in[1];
    const at::Tensor held = settle_narrow(scaled, DType::kF8, code);
    return (shifted ? held + in[2] : held) / in[1];
  });
}

constexpr KernelEntry kQuantiseKernels[] = {
    {"FakeConvert", 13, 13, make_fake_convert},
    {"FakeQuantize", 1, 1, make_fake_quantize},
};

}  // namespace

std::span<const KernelEntry> quantise_kernels() { return kQuantiseKernels; }

}  // namespace heddle::torch_backend
