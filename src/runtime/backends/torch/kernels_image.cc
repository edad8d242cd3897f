// Resampling. Interpolation handles one axis after the other: each result element is a weighted sum of a few
// source elements (taps), which are known when the segment is compiled.
#include <algorithm>
#include <cmath>

#include "kernel.h"

namespace heddle::torch_backend {
namespace {

struct Resampling {
  std::string mode, coordinates, nearest;
  double cube = -0.75;

  // Position of element i of `out` among `in` elements that are stretched by `scale`.
  double source(int64_t i, int64_t in, int64_t out, double scale) const {
    const auto x = static_cast<double>(i);
    if (coordinates == "asymmetric") return x / scale;
    if (coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / scale;
    if (coordinates == "align_corners")
      return out == 1 ? 0 : x * static_cast<double>(in - 1) / static_cast<double>(out - 1);
    if (coordinates == "pytorch_half_pixel" && out <= 1) return 0;
    return (x + 0.5) / scale - 0.5;
  }

  double nearest_place(double x, double scale) const {
    if (nearest == "floor") return std::floor(x);
    if (nearest == "ceil") return std::ceil(x);
    if (nearest == "simple") return scale < 1 ? std::ceil(x) : std::trunc(x);
    if (nearest == "round_prefer_ceil") return std::floor(x + 0.5);
    return std::ceil(x - 0.5);
  }

  bool known() const {
    const auto among = [](const std::string& name, std::initializer_list<const char*> list) {
      return std::find(list.begin(), list.end(), name) != list.end();
    };
    return among(mode, {"nearest", "linear", "linear_onnx", "cubic"}) &&
           among(coordinates, {"half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn",
                               "align_corners"}) &&
           among(nearest, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"});
  }
};

// One axis: taps[k] and weights[k] by result element; a single tap without weights copies.
struct AxisTaps {
  int64_t axis = 0;
  std::vector<at::Tensor> taps, weights;
};

AxisTaps axis_taps(const Resampling& how, int64_t axis, int64_t in, int64_t out, double scale,
                   at::ScalarType type) {
  const size_t count = how.mode == "nearest" ? 1 : how.mode == "cubic" ? 4 : 2;
  std::vector<std::vector<int64_t>> taps(count);
  std::vector<std::vector<double>> weights(count);
  const auto put = [&](size_t k, double place, double weight) {
    taps[k].push_back(static_cast<int64_t>(std::clamp(place, 0.0, static_cast<double>(in - 1))));
    weights[k].push_back(weight);
  };
  for (int64_t i = 0; i < out; ++i) {
    const double x = how.source(i, in, out, scale);
    if (count == 1) {
      put(0, how.nearest_place(x, scale), 1);
    } else if (count == 2) {
      const double inside = std::clamp(x, 0.0, static_cast<double>(in - 1)), low = std::floor(inside);
      put(0, low, 1 - (inside - low));
      put(1, low + 1, inside - low);
    } else {
      const double low = std::floor(x), f = x - low, g = 1 - f, a = how.cube;
      put(0, low - 1, ((a * (f + 1) - 5 * a) * (f + 1) + 8 * a) * (f + 1) - 4 * a);
      put(1, low, ((a + 2) * f - (a + 3)) * f * f + 1);
      put(2, low + 1, ((a + 2) * g - (a + 3)) * g * g + 1);
      put(3, low + 2, ((a * (g + 1) - 5 * a) * (g + 1) + 8 * a) * (g + 1) - 4 * a);
    }
  }
  AxisTaps result{.axis = axis, .taps = {}, .weights = {}};
  for (size_t k = 0; k < count; ++k) {
    result.taps.push_back(at::tensor(taps[k], at::kLong));
    if (count > 1) result.weights.push_back(at::tensor(weights[k], at::kDouble).to(type));
  }
  return result;
}

at::Tensor resample(const at::Tensor& x, const AxisTaps& t) {
  if (t.weights.empty()) return at::index_select(x, t.axis, t.taps[0]);
  Shape lane(static_cast<size_t>(x.dim()), 1);
  lane[static_cast<size_t>(t.axis)] = -1;
  at::Tensor sum;
  for (size_t k = 0; k < t.taps.size(); ++k) {
    const at::Tensor part = at::index_select(x, t.axis, t.taps[k]) * t.weights[k].reshape(lane);
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

// Opset 4: sizes and scales in inputs 1 and 2, axes in 3. Opset 11: one of both in input 1, axes in 2.
Result<Kernel> make_interpolate(const OpSite& site) {
  const OpNode& node = site.node;
  const Resampling how{
      .mode = node.attribute<std::string>("mode", "nearest"),
      .coordinates = node.attribute<std::string>("coordinate_transformation_mode", "half_pixel"),
      .nearest = node.attribute<std::string>("nearest_mode", "round_prefer_floor"),
      .cube = node.attribute<double>("cube_coeff", -0.75)};
  if (!how.known())
    return site.refuse("mode '" + how.mode + "', '" + how.coordinates + "', '" + how.nearest + "'");
  if (node.attribute<bool>("antialias", false) && how.mode != "nearest") return site.refuse("antialiasing");
  for (const char* list : {"pads_begin", "pads_end"}) {
    for (const int64_t pad : node.attribute<std::vector<int64_t>>(list, {}))
      if (pad != 0) return site.refuse("padding");
  }
  const bool by_scales = node.attribute<std::string>("shape_calculation_mode", "sizes") == "scales";
  const size_t axes_input = node.opset >= 11 ? 2 : 3, scales_input = node.opset >= 11 ? 1 : 2;
  std::vector<int64_t> axes;
  if (site.has_input(axes_input)) {
    HEDDLE_ASSIGN_OR_RETURN(axes, site.integers(axes_input));
  } else {
    for (int64_t d = 0; d < site.rank(); ++d) axes.push_back(d);
  }
  std::vector<double> scales(axes.size(), 0);
  if (by_scales) {
    const at::Tensor given =
        scales_input < site.constants.size() ? site.constants[scales_input] : at::Tensor();
    if (!given.defined() || given.numel() != static_cast<int64_t>(axes.size()))
      return site.refuse("its scales are no constant of one per axis");
    const at::Tensor numbers = given.to(at::kCPU, at::kDouble).contiguous();
    scales.assign(numbers.data_ptr<double>(), numbers.data_ptr<double>() + numbers.numel());
  }
  if (!site.floating() && how.mode != "nearest") return site.refuse("integers between their places");
  const at::ScalarType type = site.floating() ? carrier(node.inputs[0].dtype) : at::kDouble;
  std::vector<AxisTaps> taps;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = normal_axis(axes[i], site.rank());
    if (axis < 0) return site.refuse("axis " + std::to_string(axes[i]) + " is none of its tensor");
    const int64_t in = site.in(0)[static_cast<size_t>(axis)], out = site.out()[static_cast<size_t>(axis)];
    if (in < 1 || out < 1) return site.refuse("an empty tensor");
    const double scale = by_scales ? scales[i] : static_cast<double>(out) / static_cast<double>(in);
    if (!(scale > 0)) return site.refuse("a scale that is not positive");
    if (in == out && scale == 1) continue;
    taps.push_back(axis_taps(how, axis, in, out, scale, type));
    for (auto* list : {&taps.back().taps, &taps.back().weights}) {
      for (at::Tensor& t : *list) t = t.to(site.device);
    }
  }
  return one([taps](Operands in) {
    at::Tensor x = in[0];
    for (const AxisTaps& t : taps) x = resample(x, t);
    return x;
  });
}

Result<Kernel> make_grid_sample(const OpSite& site) {
  const auto place = [&](const char* name, const char* otherwise, std::initializer_list<const char*> list) {
    const auto value = site.node.attribute<std::string>(name, otherwise);
    const auto it = std::find(list.begin(), list.end(), value);
    return it == list.end() ? int64_t{-1} : static_cast<int64_t>(it - list.begin());
  };
  const int64_t mode = place("mode", "bilinear", {"bilinear", "nearest", "bicubic"});
  const int64_t border = place("padding_mode", "zeros", {"zeros", "border", "reflection"});
  const bool align = site.node.attribute<bool>("align_corners", false);
  if (mode < 0 || border < 0 || site.rank() != 4 || !site.floating())
    return site.refuse("its mode, rank or type");
  return one([=](Operands in) {
    return at::grid_sampler_2d(in[0], in[1].to(in[0].scalar_type()), mode, border, align);
  });
}

// Supports only equal pads on both sides.
Result<Kernel> make_col2im(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const auto size, site.integers(1));
  HEDDLE_ASSIGN_OR_RETURN(const auto kernel, site.integers(2));
  const auto list = [&](const char* name, int64_t otherwise) {
    return site.node.attribute<std::vector<int64_t>>(name, {otherwise, otherwise});
  };
  const auto strides = list("strides", 1), dilations = list("dilations", 1), begin = list("pads_begin", 0);
  if (begin != list("pads_end", 0)) return site.refuse("unequal pads");
  for (const auto& values : {size, kernel, strides, dilations, begin})
    if (values.size() != 2) return site.refuse("expected two spatial axes");
  return one([=](Operands in) { return at::col2im(in[0], size, kernel, dilations, begin, strides); });
}

constexpr KernelEntry kImageKernels[] = {
    {"Col2Im", 15, 15, make_col2im},
    {"GridSample", 9, 9, make_grid_sample},
    {"Interpolate", 4, 11, make_interpolate},
};

}  // namespace

std::span<const KernelEntry> image_kernels() { return kImageKernels; }

}  // namespace heddle::torch_backend
