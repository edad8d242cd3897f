// Pooling over windows. The output's shape determines the number of windows, so no rounding rule is needed.
#include <limits>

#include "windows.h"

namespace heddle::torch_backend {
namespace {

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
  if (site.node.inputs[0].dtype == DType::kI64) return site.refuse("doubles do not hold all 64-bit integers");
  HEDDLE_ASSIGN_OR_RETURN(const Windows w, pool_windows(site));
  const PoolLists lists(w);
  PlaceMap map{.padded = {}, .input = w.input, .begin = w.pads_begin, .shape = site.in(0), .first = 0};
  for (size_t i = 0; i < w.rank(); ++i) map.padded.push_back(w.span(i));
  const bool with_places = site.node.outputs.size() > 1 && site.node.wanted[1];
  if (with_places) {
    HEDDLE_ASSIGN_OR_RETURN(map.first, site.axis_attribute("axis", 0, site.rank()));
    if (map.first > 2) return site.refuse("its indices count from axis " + std::to_string(map.first));
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
  if (!site.floating()) return site.refuse("only floating-point tensors are averaged");
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
  if (!site.floating() || size.empty() || size.size() > 3) return site.refuse("its type or rank");
  return one([size](Operands in) {
    if (size.size() == 1) return at::adaptive_avg_pool1d(in[0], size);
    return size.size() == 2 ? at::adaptive_avg_pool2d(in[0], size) : at::adaptive_avg_pool3d(in[0], size);
  });
}

constexpr KernelEntry kPoolingKernels[] = {
    {"AdaptiveAvgPool", 8, 8, make_adaptive_average_pool},
    {"AvgPool", 1, 16, make_average_pool},
    {"MaxPool", 1, 14, make_max_pool},
};

}  // namespace

std::span<const KernelEntry> pooling_kernels() { return kPoolingKernels; }

}  // namespace heddle::torch_backend
