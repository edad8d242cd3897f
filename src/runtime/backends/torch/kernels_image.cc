// Resampling, and pooling of images' regions to one size. Interpolation handles one axis after the other: each
// result element is a weighted sum of a few source elements (taps), which are known when the segment is compiled.
#include <algorithm>
#include <cmath>
#include <optional>

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
  Resampling how;
  HEDDLE_ASSIGN_OR_RETURN(how.mode,
                          site.choice("mode", "nearest", {"nearest", "linear", "linear_onnx", "cubic"}));
  HEDDLE_ASSIGN_OR_RETURN(how.coordinates, site.choice("coordinate_transformation_mode", "half_pixel",
                                                       {"half_pixel", "pytorch_half_pixel", "asymmetric",
                                                        "tf_half_pixel_for_nn", "align_corners"}));
  HEDDLE_ASSIGN_OR_RETURN(
      how.nearest, site.choice("nearest_mode", "round_prefer_floor",
                               {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"}));
  how.cube = node.attribute<double>("cube_coeff", -0.75);
  if (node.attribute<bool>("antialias", false) && how.mode != "nearest")
    return site.refuse("it asks for antialiasing, which is not supported");
  for (const char* list : {"pads_begin", "pads_end"}) {
    for (const int64_t pad : node.attribute<std::vector<int64_t>>(list, {}))
      if (pad != 0) return site.refuse("it asks for padding, which is not supported");
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
      return site.refuse("its scales are computed or not one per axis; expected constants");
    const at::Tensor numbers = given.to(at::kCPU, at::kDouble).contiguous();
    scales.assign(numbers.data_ptr<double>(), numbers.data_ptr<double>() + numbers.numel());
  }
  if (how.mode != "nearest") HEDDLE_RETURN_IF_ERROR(site.expect_floating());
  const at::ScalarType type = site.floating() ? carrier(node.inputs[0].dtype) : at::kDouble;
  std::vector<AxisTaps> taps;
  for (size_t i = 0; i < axes.size(); ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, site.axis_of(axes[i], site.rank()));
    const int64_t in = site.in(0)[static_cast<size_t>(axis)], out = site.out()[static_cast<size_t>(axis)];
    if (in < 1 || out < 1) return site.refuse("it resizes an empty tensor");
    const double scale = by_scales ? scales[i] : static_cast<double>(out) / static_cast<double>(in);
    if (!(scale > 0)) return site.refuse("its scale " + std::to_string(scale) + " is not positive");
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
  HEDDLE_RETURN_IF_ERROR(site.expect_floating(4));
  if (mode < 0 || border < 0 || site.rank() > 4)
    return site.refuse("its mode, padding mode or rank is not supported; expected images of rank 4");
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
  if (begin != list("pads_end", 0))
    return site.refuse("its pads at begin and end differ; expected equal ones");
  for (const auto& values : {size, kernel, strides, dilations, begin})
    if (values.size() != 2) return site.refuse("expected two spatial axes");
  return one([=](Operands in) { return at::col2im(in[0], size, kernel, dilations, begin, strides); });
}

struct RegionPool {
  int64_t rows = 0, columns = 0;            // of the result
  int64_t samples = 0;                      // per bin and axis; 0: as many as the bin has pixels, rounded up
  double scale = 1, before = 0, after = 0;  // position in the image: (x + before) * scale + after
  bool maximum = false, at_least_one = false;
};

constexpr double kMostSamples = 1e6;  // of one bin along one axis

// One axis of one sample: two pixels and their weights.
struct Tap {
  int64_t low = 0, high = 0;
  double low_weight = 0, high_weight = 0;
};

// Nothing if the sample lies outside the image or is no number.
std::optional<Tap> tap_at(double x, int64_t size) {
  if (!(x >= -1 && x <= static_cast<double>(size))) return std::nullopt;
  x = std::max(x, 0.0);
  const auto low = std::min(static_cast<int64_t>(x), size - 1);
  const int64_t high = std::min(low + 1, size - 1);
  const double f = low == high ? 0 : x - static_cast<double>(low);
  return Tap{low, high, 1 - f, f};
}

// The samples of one axis of one region, by bin.
std::vector<std::vector<std::optional<Tap>>> taps_of(const RegionPool& pool, double first, double last,
                                                     int64_t bins, int64_t size) {
  const double begin = (first + pool.before) * pool.scale + pool.after;
  double length = (last + pool.before) * pool.scale + pool.after - begin;
  if (pool.at_least_one) length = std::max(length, 1.0);
  const double bin = length / static_cast<double>(bins);
  TORCH_CHECK(pool.samples > 0 || bin <= kMostSamples, "a region has a side of ", length,
              ", expected at most ", kMostSamples * static_cast<double>(bins));
  const int64_t samples =
      pool.samples > 0 ? pool.samples : std::max<int64_t>(1, std::llround(std::ceil(bin)));
  std::vector<std::vector<std::optional<Tap>>> taps(static_cast<size_t>(bins));
  for (int64_t b = 0; b < bins; ++b) {
    for (int64_t s = 0; s < samples; ++s) {
      const double inside = (static_cast<double>(s) + 0.5) / static_cast<double>(samples);
      taps[static_cast<size_t>(b)].push_back(tap_at(begin + bin * (static_cast<double>(b) + inside), size));
    }
  }
  return taps;
}

// One bin of one channel. A sample outside the image counts as 0. The maximum is over the samples and 0, as
// in OpenVINO; ONNX's reference takes the maximum of the weighted pixels before they are added.
double pooled(const RegionPool& pool, const float* picture, int64_t width,
              const std::vector<std::optional<Tap>>& down, const std::vector<std::optional<Tap>>& across) {
  double sum = 0, most = 0;
  for (const auto& y : down) {
    for (const auto& x : across) {
      if (!y || !x) continue;
      const float *low = picture + y->low * width, *high = picture + y->high * width;
      const double sample = y->low_weight * (x->low_weight * low[x->low] + x->high_weight * low[x->high]) +
                            y->high_weight * (x->low_weight * high[x->low] + x->high_weight * high[x->high]);
      sum += sample;
      most = std::max(most, sample);
    }
  }
  return pool.maximum ? most : sum / static_cast<double>(down.size() * across.size());
}

// Inputs: images [n, channels, height, width], regions [r, 4] as x1, y1, x2, y2, and each region's image.
// O(result * samples).
at::Tensor pool_regions(const RegionPool& pool, Operands in) {
  const at::Tensor pictures = in[0].to(at::kFloat).contiguous();
  const at::Tensor regions = in[1].to(at::kDouble).contiguous();
  const at::Tensor numbers = in[2].to(at::kLong).contiguous();
  const int64_t count = regions.size(0), channels = pictures.size(1);
  const int64_t height = pictures.size(2), width = pictures.size(3);
  at::Tensor result = at::empty({count, channels, pool.rows, pool.columns}, at::kFloat);
  auto* to = result.data_ptr<float>();
  for (int64_t r = 0; r < count; ++r) {
    const double* box = regions.data_ptr<double>() + 4 * r;
    const int64_t number = numbers.data_ptr<int64_t>()[r];
    TORCH_CHECK(number >= 0 && number < pictures.size(0), "a region names a picture that does not exist");
    const auto down = taps_of(pool, box[1], box[3], pool.rows, height);
    const auto across = taps_of(pool, box[0], box[2], pool.columns, width);
    for (int64_t c = 0; c < channels; ++c) {
      const float* picture = pictures.data_ptr<float>() + (number * channels + c) * height * width;
      for (const auto& y : down)
        for (const auto& x : across) *to++ = static_cast<float>(pooled(pool, picture, width, y, x));
    }
  }
  return result;
}

Result<Kernel> make_roi_align(const OpSite& site) {
  HEDDLE_ASSIGN_OR_RETURN(const auto mode, site.choice("mode", "avg", {"avg", "max"}));
  HEDDLE_ASSIGN_OR_RETURN(const auto aligned, site.choice("aligned_mode", "asymmetric",
                                                          {"asymmetric", "half_pixel", "half_pixel_for_nn"}));
  RegionPool pool{.rows = site.node.attribute<int64_t>("pooled_h", 1),
                  .columns = site.node.attribute<int64_t>("pooled_w", 1),
                  .samples = site.node.attribute<int64_t>("sampling_ratio", 0),
                  .scale = site.node.attribute<double>("spatial_scale", 1),
                  .maximum = mode == "max",
                  .at_least_one = aligned == "asymmetric"};
  if (!site.device.is_cpu()) return site.refuse("it runs on the host only, not on this device");
  if (aligned == "half_pixel") pool.before = 0.5;
  if (aligned != "asymmetric") pool.after = -0.5;
  if (!site.floating() || site.rank() != 4 || site.in(0)[2] < 1 || site.in(0)[3] < 1 || pool.rows < 1 ||
      pool.columns < 1 || pool.samples < 0)
    return site.refuse("its input is " + shape_text(site.in(0)) +
                       "; expected floating-point images of rank 4 and positive sizes");
  return one([pool](Operands in) { return pool_regions(pool, in); });
}

constexpr KernelEntry kImageKernels[] = {
    {"Col2Im", 15, 15, make_col2im},
    {"GridSample", 9, 9, make_grid_sample},
    {"Interpolate", 4, 11, make_interpolate},
    {"ROIAlign", 3, 9, make_roi_align},
};

}  // namespace

std::span<const KernelEntry> image_kernels() { return kImageKernels; }

}  // namespace heddle::torch_backend
