// Discrete Fourier transforms as products with matrices of roots of unity, since not every libtorch has an
// FFT. O(n^2) for an axis of length n.
#include <numbers>

#include "kernel.h"

namespace heddle::torch_backend {
namespace {

constexpr int64_t kLongestAxis = 4096;  // each run builds a square matrix of this size

// [n, n] real and imaginary parts of exp(-+ 2 pi i jk / n).
struct Roots {
  at::Tensor real, imaginary;
};

Roots roots_of_unity(int64_t n, bool inverse, const at::Device& device) {
  const at::Tensor place = at::arange(n, at::TensorOptions().dtype(at::kLong).device(device));
  // jk modulo n keeps the angles small and exact.
  const at::Tensor turns = at::remainder(place.unsqueeze(1) * place, n).to(at::kDouble);
  const double step = (inverse ? 2 : -2) * std::numbers::pi / static_cast<double>(n);
  return {at::cos(turns * step), at::sin(turns * step)};
}

// The first n elements of an axis, padded with zeros.
at::Tensor fitted(const at::Tensor& x, int64_t axis, int64_t n) {
  std::vector<int64_t> pads(static_cast<size_t>(2 * (x.dim() - axis)), 0);
  pads.back() = n - x.size(axis);
  return at::constant_pad_nd(x, pads, 0);
}

Roots transform(const Roots& x, int64_t axis, int64_t n, bool inverse) {
  const Roots w = roots_of_unity(n, inverse, x.real.device());
  const at::Tensor a = fitted(x.real, axis, n).movedim(axis, -1);
  const at::Tensor b = fitted(x.imaginary, axis, n).movedim(axis, -1);
  const double scale = inverse ? 1 / static_cast<double>(n) : 1;
  const at::Tensor real = (at::matmul(a, w.real) - at::matmul(b, w.imaginary)) * scale;
  const at::Tensor imaginary = (at::matmul(a, w.imaginary) + at::matmul(b, w.real)) * scale;
  return {real.movedim(-1, axis), imaginary.movedim(-1, axis)};
}

struct FourierAxes {
  std::vector<int64_t> axes, lengths;
};

Status check_length(const OpSite& site, int64_t length) {
  if (length >= 1 && length <= kLongestAxis) return {};
  return site.refuse("an axis has " + std::to_string(length) + " elements; expected 1 to " +
                     std::to_string(kLongestAxis));
}

// The last axis holds real and imaginary parts.
Status check_complex(const OpSite& site) {
  HEDDLE_RETURN_IF_ERROR(site.expect_floating(2));
  if (site.in(0).back() == 2) return {};
  return site.refuse("its input is " + shape_text(site.in(0)) +
                     "; expected complex numbers, a last axis of 2");
}

// Input 1 has the axes, input 2 optionally the lengths (-1: unchanged). `rank` excludes the axis of length
// two for complex numbers.
Result<FourierAxes> fourier_axes(const OpSite& site, int64_t rank) {
  FourierAxes result;
  HEDDLE_ASSIGN_OR_RETURN(result.axes, site.integers(1));
  result.lengths.assign(result.axes.size(), -1);
  if (site.has_input(2)) {
    HEDDLE_ASSIGN_OR_RETURN(result.lengths, site.integers(2));
  }
  if (result.axes.empty() || result.lengths.size() != result.axes.size())
    return site.refuse("it has " + std::to_string(result.axes.size()) + " axes and " +
                       std::to_string(result.lengths.size()) + " lengths; expected one length per axis");
  for (size_t i = 0; i < result.axes.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(result.axes[i], site.axis_of(result.axes[i], rank));
    if (result.lengths[i] == -1) result.lengths[i] = site.in(0)[static_cast<size_t>(result.axes[i])];
    HEDDLE_RETURN_IF_ERROR(check_length(site, result.lengths[i]));
  }
  return result;
}

Result<Kernel> complex_transform(const OpSite& site, bool inverse) {
  HEDDLE_RETURN_IF_ERROR(check_complex(site));
  HEDDLE_ASSIGN_OR_RETURN(const FourierAxes plan, fourier_axes(site, site.rank() - 1));
  return one([=](Operands in) {
    const at::Tensor x = in[0].to(at::kDouble);
    Roots value{x.select(-1, 0), x.select(-1, 1)};
    for (size_t i = 0; i < plan.axes.size(); ++i)
      value = transform(value, plan.axes[i], plan.lengths[i], inverse);
    return at::stack({value.real, value.imaginary}, -1);
  });
}
Result<Kernel> make_dft(const OpSite& site) { return complex_transform(site, false); }
Result<Kernel> make_idft(const OpSite& site) { return complex_transform(site, true); }

// Real input; keeps the first half of the last axis of the result, including the middle.
Result<Kernel> make_rdft(const OpSite& site) {
  HEDDLE_RETURN_IF_ERROR(site.expect_floating(1));
  HEDDLE_ASSIGN_OR_RETURN(const FourierAxes plan, fourier_axes(site, site.rank()));
  return one([=](Operands in) {
    const at::Tensor x = in[0].to(at::kDouble);
    Roots value{x, at::zeros_like(x)};
    for (size_t i = 0; i < plan.axes.size(); ++i)
      value = transform(value, plan.axes[i], plan.lengths[i], false);
    const int64_t kept = plan.lengths.back() / 2 + 1;
    return at::stack(
        {value.real.narrow(plan.axes.back(), 0, kept), value.imaginary.narrow(plan.axes.back(), 0, kept)},
        -1);
  });
}

// The second half of a real signal's transform is the conjugated mirror image of the first.
Roots whole_of_half(const Roots& half, int64_t axis, int64_t n) {
  const Roots x{fitted(half.real, axis, n / 2 + 1), fitted(half.imaginary, axis, n / 2 + 1)};
  const int64_t mirrored = n - (n / 2 + 1);
  const auto back = [&](const at::Tensor& t) { return at::flip(t.narrow(axis, 1, mirrored), {axis}); };
  return {at::cat({x.real, back(x.real)}, axis), at::cat({x.imaginary, at::neg(back(x.imaginary))}, axis)};
}

// The inverse of RDFT: the last axis of the input holds the first half of a real signal's transform.
Result<Kernel> make_irdft(const OpSite& site) {
  HEDDLE_RETURN_IF_ERROR(check_complex(site));
  HEDDLE_ASSIGN_OR_RETURN(const FourierAxes plan, fourier_axes(site, site.rank() - 1));
  const auto last = static_cast<size_t>(plan.axes.back());
  const int64_t length = site.out()[last];
  HEDDLE_RETURN_IF_ERROR(check_length(site, length));
  return one([=](Operands in) {
    const at::Tensor x = in[0].to(at::kDouble);
    Roots value{x.select(-1, 0), x.select(-1, 1)};
    for (size_t i = 0; i + 1 < plan.axes.size(); ++i)
      value = transform(value, plan.axes[i], plan.lengths[i], true);
    return transform(whole_of_half(value, plan.axes.back(), length), plan.axes.back(), length, true).real;
  });
}

constexpr KernelEntry kFourierKernels[] = {
    {"DFT", 7, 7, make_dft},
    {"IDFT", 7, 7, make_idft},
    {"IRDFT", 9, 9, make_irdft},
    {"RDFT", 9, 9, make_rdft},
};

}  // namespace

std::span<const KernelEntry> fourier_kernels() { return kFourierKernels; }

}  // namespace heddle::torch_backend
