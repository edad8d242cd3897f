// Ops that slide windows over the spatial axes of [batch, channels, axes...]: convolutions with and without
// groups, their transposes, and pooling. The output's shape determines the number of windows, so no rounding
// rule is needed.
#include <algorithm>
#include <functional>
#include <limits>

#include "kernel.h"

namespace heddle::torch_backend {
namespace {

struct Windows {
  std::vector<int64_t> kernel, strides, dilations, pads_begin;
  std::vector<int64_t> input, output;  // spatial sizes

  size_t rank() const { return kernel.size(); }
  // Length covered by all windows; differs from the padded input's if the last ones do not fit exactly.
  int64_t span(size_t i) const { return (output[i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1; }
  // constant_pad_nd's list (last axis first) that extends or cuts the input to the span.
  std::vector<int64_t> pads() const;
};

// The sizes after batch and channels.
std::vector<int64_t> spatial(const Shape& shape) {
  return shape.size() < 2 ? std::vector<int64_t>() : std::vector<int64_t>(shape.begin() + 2, shape.end());
}

std::vector<int64_t> Windows::pads() const {
  std::vector<int64_t> list;
  for (size_t i = rank(); i-- > 0;) {
    list.push_back(pads_begin[i]);
    list.push_back(span(i) - input[i] - pads_begin[i]);
  }
  return list;
}

// Windows of an op with the attributes strides, dilations, pads_begin and auto_pad, for the given spatial
// sizes of input and output. The end pads follow from the sizes. Fails if the lists differ in length.
Result<Windows> windows_of(const OpSite& site, std::vector<int64_t> kernel, std::vector<int64_t> input,
                           std::vector<int64_t> output) {
  const size_t rank = kernel.size();
  Windows w{.kernel = std::move(kernel),
            .strides = site.node.attribute<std::vector<int64_t>>("strides", {}),
            .dilations = site.node.attribute<std::vector<int64_t>>("dilations", {}),
            .pads_begin = site.node.attribute<std::vector<int64_t>>("pads_begin", {}),
            .input = std::move(input),
            .output = std::move(output)};
  if (w.strides.empty()) w.strides.assign(rank, 1);
  if (w.dilations.empty()) w.dilations.assign(rank, 1);
  if (w.pads_begin.empty()) w.pads_begin.assign(rank, 0);
  if (rank < 1 || rank > 3)
    return site.refuse("it has " + std::to_string(rank) + " spatial axes; expected one to three");
  for (const auto* list : {&w.strides, &w.dilations, &w.pads_begin, &w.input, &w.output})
    if (list->size() != rank) return site.refuse("its strides, dilations or pads are not one per axis");
  const auto least = [](const std::vector<int64_t>& list) {
    return *std::min_element(list.begin(), list.end());
  };
  if (least(w.kernel) < 1 || least(w.strides) < 1 || least(w.dilations) < 1)
    return site.refuse("expected positive kernel sizes, strides and dilations");
  if (least(w.input) < 1 || least(w.output) < 1) return site.refuse("its input or output is empty");
  const auto rule = site.node.attribute<std::string>("auto_pad", "explicit");
  if (rule == "valid") w.pads_begin.assign(rank, 0);
  if (rule == "same_upper" || rule == "same_lower") {
    for (size_t i = 0; i < rank; ++i) {
      const int64_t total = std::max<int64_t>(w.span(i) - w.input[i], 0);
      w.pads_begin[i] = rule == "same_upper" ? total / 2 : total - total / 2;
    }
  }
  return w;
}

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
  if (site.floating(0) || site.floating(1))
    return site.refuse("its input and weights mix floating-point numbers and integers");
  const auto bits = [&](size_t i) { return dtype_bits(site.node.inputs[i].dtype); };
  if (bits(0) <= 16 && bits(1) <= 16)
    return one([convolve](Operands in) { return of_short(convolve, in[0], in[1]); });
  if (bits(0) > 32 || bits(1) > 32 || dtype_bits(site.node.outputs[0].dtype) > 32)
    return site.refuse("it has integers of more than 32 bits");
  return one([convolve](Operands in) { return of_long(convolve, in[0], in[1]); });
}

// Weights [out, in / groups, kernel...]; with groups first [groups, out / groups, in / groups, kernel...].
struct Weights {
  Shape shape;  // with the groups merged into the first axis
  int64_t groups = 1;
};

Result<Weights> weights_of(const OpSite& site, bool grouped) {
  Weights weights{.shape = site.in(1)};
  if (weights.shape.size() < (grouped ? 4U : 3U))
    return site.refuse("its weights are " + shape_text(weights.shape) + ", which have no spatial axis");
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

Result<Windows> pool_windows(const OpSite& site) {
  auto kernel = site.node.attribute<std::vector<int64_t>>("kernel", {});
  return windows_of(site, std::move(kernel), spatial(site.in(0)), spatial(site.out()));
}

// One spatial axis is extended to two, for which ATen has all needed kernels.
struct PoolLists {
  explicit PoolLists(const Windows& w)
      : kernel(w.kernel), strides(w.strides), dilations(w.dilations), one_axis(w.rank() == 1) {
    if (!one_axis) return;
    for (auto* list : {&kernel, &strides, &dilations}) list->insert(list->begin(), 1);
  }
  std::vector<int64_t> kernel, strides, dilations;
  bool one_axis;
};

double least_of(at::ScalarType type) {
  if (at::isFloatingType(type)) return -std::numeric_limits<double>::infinity();
  return std::numeric_limits<double>::lowest();
}

// Converts flat indices of the padded input to indices of the unpadded one, from axis `first` on.
struct PlaceMap {
  std::vector<int64_t> padded, input, begin;  // spatial
  Shape shape;                                // of the input
  int64_t first = 0;

  at::Tensor operator()(const at::Tensor& padded_places) const {
    at::Tensor rest = padded_places, result = at::zeros_like(padded_places);
    int64_t scale = 1;
    for (size_t i = padded.size(); i-- > 0;) {
      const at::Tensor place = at::remainder(rest, padded[i]) - begin[i];
      rest = at::div(rest, padded[i], "floor");
      result = result + place * scale;
      scale *= input[i];
    }
    const auto dims = result.dim();
    for (int64_t d = 1; d >= first && d >= 0; --d) {
      Shape lane(static_cast<size_t>(dims), 1);
      lane[static_cast<size_t>(d)] = result.size(d);
      result = result + at::arange(result.size(d), result.options()).reshape(lane) * scale;
      scale *= shape[static_cast<size_t>(d)];
    }
    return result;
  }
};

Result<Kernel> make_max_pool(const OpSite& site) {
  // Integers are pooled as doubles.
  if (site.node.inputs[0].dtype == DType::kI64)
    return site.refuse("it pools 64-bit integers, which doubles do not hold exactly");
  HEDDLE_ASSIGN_OR_RETURN(const Windows w, pool_windows(site));
  const PoolLists lists(w);
  PlaceMap map{.padded = {}, .input = w.input, .begin = w.pads_begin, .shape = site.in(0), .first = 0};
  for (size_t i = 0; i < w.rank(); ++i) map.padded.push_back(w.span(i));
  const bool with_places = site.node.outputs.size() > 1 && site.node.wanted[1];
  if (with_places) {
    HEDDLE_ASSIGN_OR_RETURN(map.first, site.axis_attribute("axis", 0, site.rank()));
    if (map.first > 2)
      return site.refuse("its indices count from axis " + std::to_string(map.first) + "; expected 0, 1 or 2");
  }
  const std::vector<int64_t> pads = w.pads(), none(lists.kernel.size(), 0);
  return Kernel([=](Operands in) {
    const bool floating = at::isFloatingType(in[0].scalar_type());
    const at::Tensor whole = floating ? in[0] : in[0].to(at::kDouble);
    at::Tensor x = at::constant_pad_nd(whole, pads, least_of(whole.scalar_type()));
    if (lists.one_axis) x = x.unsqueeze(2);
    const auto& [values, places] =
        lists.kernel.size() == 3
            ? at::max_pool3d_with_indices(x, lists.kernel, lists.strides, none, lists.dilations)
            : at::max_pool2d_with_indices(x, lists.kernel, lists.strides, none, lists.dilations);
    const at::Tensor result = lists.one_axis ? values.squeeze(2) : values;
    if (!with_places) return Tensors{result};
    return Tensors{result, map(lists.one_axis ? places.squeeze(2) : places)};
  });
}

// The sum over each window. ATen's pools lack dilation, so dilated windows are convolutions with ones.
at::Tensor window_sums(const at::Tensor& padded, const PoolLists& lists) {
  at::Tensor x = lists.one_axis ? padded.unsqueeze(2) : padded;
  const std::vector<int64_t> none(lists.kernel.size(), 0);
  bool dilated = false;
  for (const int64_t d : lists.dilations) dilated = dilated || d != 1;
  if (dilated) {
    Shape shape = {x.size(1), 1};
    shape.insert(shape.end(), lists.kernel.begin(), lists.kernel.end());
    x = at::convolution(x, at::ones(shape, x.options()), {}, lists.strides, none, lists.dilations, false,
                        none, x.size(1));
  } else if (lists.kernel.size() == 3) {
    x = at::avg_pool3d(x, lists.kernel, lists.strides, none, false, true, 1);
  } else {
    x = at::avg_pool2d(x, lists.kernel, lists.strides, none, false, true, 1);
  }
  return lists.one_axis ? x.squeeze(2) : x;
}

// The divisor counts the window's elements inside the input or, if pads count, inside the padded input. It
// never counts elements that rounding up adds.
Result<Kernel> make_average_pool(const OpSite& site) {
  HEDDLE_RETURN_IF_ERROR(site.expect_floating());
  HEDDLE_ASSIGN_OR_RETURN(const Windows w, pool_windows(site));
  const bool exclude = site.node.attribute<bool>("exclude-pad", true);
  const auto ends = site.node.attribute<std::vector<int64_t>>("pads_end", {});
  const PoolLists lists(w);
  Shape counted = {1, 1};
  std::vector<int64_t> borders;  // constant_pad_nd's list that extends it to the span
  for (size_t i = 0; i < w.rank(); ++i) {
    const int64_t end = exclude ? 0 : i < ends.size() ? ends[i] : 0;
    counted.push_back(w.input[i] + (exclude ? 0 : w.pads_begin[i]) + end);
  }
  for (size_t i = w.rank(); i-- > 0;) {
    const int64_t begin = exclude ? w.pads_begin[i] : 0;
    borders.push_back(begin);
    borders.push_back(w.span(i) - counted[i + 2] - begin);
  }
  const at::Tensor ones =
      at::constant_pad_nd(at::ones(counted, carrier(site.node.inputs[0].dtype)), borders, 0);
  const at::Tensor divisor = at::clamp_min(window_sums(ones, lists), 1).to(site.device);
  return one([=, pads = w.pads()](Operands in) {
    return window_sums(at::constant_pad_nd(in[0], pads, 0), lists) / divisor;
  });
}

Result<Kernel> make_adaptive_average_pool(const OpSite& site) {
  const std::vector<int64_t> size = spatial(site.out());
  HEDDLE_RETURN_IF_ERROR(site.expect_floating(3));
  if (size.size() > 3) return site.refuse("its input has more than three spatial axes");
  return one([size](Operands in) {
    if (size.size() == 1) return at::adaptive_avg_pool1d(in[0], size);
    return size.size() == 2 ? at::adaptive_avg_pool2d(in[0], size) : at::adaptive_avg_pool3d(in[0], size);
  });
}

constexpr KernelEntry kWindowKernels[] = {
    {"AdaptiveAvgPool", 8, 8, make_adaptive_average_pool},
    {"AvgPool", 1, 16, make_average_pool},
    {"Convolution", 1, 1, make_convolution<false>},
    {"ConvolutionBackpropData", 1, 1, make_transposed<false>},
    {"GroupConvolution", 1, 1, make_convolution<true>},
    {"GroupConvolutionBackpropData", 1, 1, make_transposed<true>},
    {"MaxPool", 1, 14, make_max_pool},
};

}  // namespace

std::span<const KernelEntry> window_kernels() { return kWindowKernels; }

}  // namespace heddle::torch_backend
