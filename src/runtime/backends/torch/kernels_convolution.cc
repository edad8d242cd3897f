// Convolutions with and without groups, and their transposes.
#include <functional>

#include "windows.h"

namespace heddle::torch_backend {
namespace {

using Convolve = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& weights)>;

// Integers are convolved as doubles, which are exact for sums of products of at most 16 bits each.
at::Tensor of_short(const Convolve& convolve, const at::Tensor& x, const at::Tensor& weights) {
  return convolve(x.to(at::kDouble), weights.to(at::kDouble)).to(at::kLong);
}

// Longer integers are split as 65536 a + b with signed 16-bit b. The product of two a's does not affect a
// 32-bit result.
at::Tensor of_long(const Convolve& convolve, const at::Tensor& x, const at::Tensor& weights) {
  const auto low = [](const at::Tensor& t) {
    return t.to(at::kLong).bitwise_and(0xFFFF).bitwise_xor(0x8000) - 0x8000;
  };
  const auto high = [&](const at::Tensor& t) { return (t.to(at::kLong) - low(t)).bitwise_right_shift(16); };
  return of_short(convolve, low(x), low(weights)) +
         65536 * (of_short(convolve, high(x), low(weights)) + of_short(convolve, low(x), high(weights)));
}

Result<Kernel> of_any_type(const OpSite& site, const Convolve& convolve) {
  if (site.floating(0) && site.floating(1))
    return one([convolve](Operands in) { return convolve(in[0], in[1]); });
  if (site.floating(0) || site.floating(1)) return site.refuse("floating point with integers");
  const auto bits = [&](size_t i) { return dtype_bits(site.node.inputs[i].dtype); };
  if (bits(0) <= 16 && bits(1) <= 16)
    return one([convolve](Operands in) { return of_short(convolve, in[0], in[1]); });
  if (bits(0) > 32 || bits(1) > 32 || dtype_bits(site.node.outputs[0].dtype) > 32)
    return site.refuse("integers of more than 32 bits");
  return one([convolve](Operands in) { return of_long(convolve, in[0], in[1]); });
}

// Weights [out, in / groups, kernel...]; with groups first [groups, out / groups, in / groups, kernel...].
struct Weights {
  Shape shape;  // with the groups merged into the first axis
  int64_t groups = 1;
};

Result<Weights> weights_of(const OpSite& site, bool grouped) {
  Weights weights{.shape = site.in(1)};
  if (weights.shape.size() < (grouped ? 4U : 3U)) return site.refuse("the rank of its weights");
  if (grouped) {
    weights.groups = weights.shape[0];
    weights.shape[1] *= weights.groups;
    weights.shape.erase(weights.shape.begin());
  }
  return weights;
}

Result<Kernel> convolution(const OpSite& site, bool grouped) {
  HEDDLE_ASSIGN_OR_RETURN(const Weights weights, weights_of(site, grouped));
  HEDDLE_ASSIGN_OR_RETURN(const Windows w,
                          windows_of(site, spatial(weights.shape), spatial(site.in(0)), spatial(site.out())));
  const std::vector<int64_t> pads = w.pads();
  // Equal pads on both sides are the convolution's own; other pads are added before it.
  bool even = true;
  for (size_t i = 0; i < w.rank(); ++i) even = even && w.pads_begin[i] >= 0 && pads[2 * i] == pads[2 * i + 1];
  const std::vector<int64_t> none(w.rank(), 0);
  return of_any_type(site, [=](const at::Tensor& x, const at::Tensor& given) {
    const at::Tensor padded = even ? x : at::constant_pad_nd(x, pads, 0);
    return at::convolution(padded, given.reshape(weights.shape), {}, w.strides, even ? w.pads_begin : none,
                           w.dilations, false, none, weights.groups);
  });
}

// Computes the whole transposed convolution, then cuts off pads and adds output padding (zeros).
Result<Kernel> transposed_convolution(const OpSite& site, bool grouped) {
  HEDDLE_ASSIGN_OR_RETURN(const Weights weights, weights_of(site, grouped));
  // In terms of the output, the input's elements are the windows' positions.
  HEDDLE_ASSIGN_OR_RETURN(const Windows w,
                          windows_of(site, spatial(weights.shape), spatial(site.out()), spatial(site.in(0))));
  std::vector<int64_t> cut;  // constant_pad_nd's list
  for (size_t i = w.rank(); i-- > 0;) {
    cut.push_back(-w.pads_begin[i]);
    cut.push_back(w.input[i] - (w.span(i) - w.pads_begin[i]));
  }
  const std::vector<int64_t> none(w.rank(), 0);
  return of_any_type(site, [=](const at::Tensor& x, const at::Tensor& given) {
    const at::Tensor whole = at::convolution(x, given.reshape(weights.shape), {}, w.strides, none,
                                             w.dilations, true, none, weights.groups);
    return at::constant_pad_nd(whole, cut, 0);
  });
}

template <bool Grouped>
Result<Kernel> make_convolution(const OpSite& site) {
  return convolution(site, Grouped);
}
template <bool Grouped>
Result<Kernel> make_transposed(const OpSite& site) {
  return transposed_convolution(site, Grouped);
}

constexpr KernelEntry kConvolutionKernels[] = {
    {"Convolution", 1, 1, make_convolution<false>},
    {"ConvolutionBackpropData", 1, 1, make_transposed<false>},
    {"GroupConvolution", 1, 1, make_convolution<true>},
    {"GroupConvolutionBackpropData", 1, 1, make_transposed<true>},
};

}  // namespace

std::span<const KernelEntry> convolution_kernels() { return kConvolutionKernels; }

}  // namespace heddle::torch_backend
