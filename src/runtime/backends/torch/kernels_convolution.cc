// Convolutions with and without groups, and their transposes.
#include "backends/torch/windows.h"

namespace heddle::torch_backend {
namespace {

// Integers are convolved as doubles, in which their sums are exact; nothing to convert for floats.
at::Tensor convolvable(const at::Tensor& x) {
  return at::isFloatingType(x.scalar_type()) ? x : x.to(at::kDouble);
}

// Sums of products of at most 16 bits each stay exact in doubles.
Status check_convolvable(const OpSite& site) {
  for (const size_t i : {0, 1})
    if (!site.floating(i) && dtype_bits(site.node.inputs[i].dtype) > 16)
      return site.refuse("integers of more than 16 bits");
  return {};
}

// Weights [out, in / groups, kernel...]; with groups first [groups, out / groups, in / groups, kernel...].
Result<Kernel> convolution(const OpSite& site, bool grouped) {
  HEDDLE_RETURN_IF_ERROR(check_convolvable(site));
  Shape weights = site.in(1);
  if (weights.size() < (grouped ? 4U : 3U)) return site.refuse("the rank of its weights");
  const int64_t groups = grouped ? weights[0] : 1;
  if (grouped) {
    weights[1] *= groups;
    weights.erase(weights.begin());
  }
  HEDDLE_ASSIGN_OR_RETURN(const Windows w,
                          windows_of(site, spatial(weights), spatial(site.in(0)), spatial(site.out())));
  const std::vector<int64_t> pads = w.pads();
  // Equal borders on both sides are the convolution's own; others are added before it.
  bool even = true;
  for (size_t i = 0; i < w.rank(); ++i) even = even && w.pads_begin[i] >= 0 && pads[2 * i] == pads[2 * i + 1];
  const std::vector<int64_t> none(w.rank(), 0);
  return one([=](Operands in) {
    const at::Tensor x = even ? convolvable(in[0]) : at::constant_pad_nd(convolvable(in[0]), pads, 0);
    return at::convolution(x, convolvable(in[1]).reshape(weights), {}, w.strides, even ? w.pads_begin : none,
                           w.dilations, false, none, groups);
  });
}

// The whole transposed convolution, of which pads are cut off and to which output padding is added: zeros.
Result<Kernel> transposed_convolution(const OpSite& site, bool grouped) {
  HEDDLE_RETURN_IF_ERROR(check_convolvable(site));
  Shape weights = site.in(1);
  if (weights.size() < (grouped ? 4U : 3U)) return site.refuse("the rank of its weights");
  const int64_t groups = grouped ? weights[0] : 1;
  if (grouped) {
    weights[1] *= groups;
    weights.erase(weights.begin());
  }
  // Seen from the output, the input's elements are the windows' places.
  HEDDLE_ASSIGN_OR_RETURN(const Windows w,
                          windows_of(site, spatial(weights), spatial(site.out()), spatial(site.in(0))));
  std::vector<int64_t> cut;  // constant_pad_nd's list
  for (size_t i = w.rank(); i-- > 0;) {
    cut.push_back(-w.pads_begin[i]);
    cut.push_back(w.input[i] - (w.span(i) - w.pads_begin[i]));
  }
  const std::vector<int64_t> none(w.rank(), 0);
  return one([=](Operands in) {
    const at::Tensor whole = at::convolution(convolvable(in[0]), convolvable(in[1]).reshape(weights), {},
                                             w.strides, none, w.dilations, true, none, groups);
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
