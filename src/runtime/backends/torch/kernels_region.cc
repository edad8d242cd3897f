// Pools regions of images to one size.
#include <algorithm>
#include <cmath>
#include <optional>

#include "kernel.h"

namespace heddle::torch_backend {
namespace {

struct RegionPool {
  int64_t rows = 0, columns = 0;            // of the result
  int64_t samples = 0;                      // per bin and axis; 0: as many as the bin has pixels, rounded up
  double scale = 1, before = 0, after = 0;  // position in the image: (x + before) * scale + after
  bool maximum = false, at_least_one = false;
};

// One axis of one sample: two pixels and their weights.
struct Tap {
  int64_t low = 0, high = 0;
  double low_weight = 0, high_weight = 0;
};

// Nothing if the sample lies outside the image.
std::optional<Tap> tap_at(double x, int64_t size) {
  if (x < -1 || x > static_cast<double>(size)) return std::nullopt;
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
    TORCH_CHECK(number >= 0 && number < pictures.size(0), "a region names a picture that there is not");
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
  const auto mode = site.node.attribute<std::string>("mode", "avg");
  const auto aligned = site.node.attribute<std::string>("aligned_mode", "asymmetric");
  RegionPool pool{.rows = site.node.attribute<int64_t>("pooled_h", 1),
                  .columns = site.node.attribute<int64_t>("pooled_w", 1),
                  .samples = site.node.attribute<int64_t>("sampling_ratio", 0),
                  .scale = site.node.attribute<double>("spatial_scale", 1),
                  .maximum = mode == "max",
                  .at_least_one = aligned == "asymmetric"};
  if (!site.device.is_cpu()) return site.refuse("it is computed on the host alone");
  if (aligned == "half_pixel") pool.before = 0.5;
  if (aligned != "asymmetric") pool.after = -0.5;
  if ((mode != "avg" && mode != "max") ||
      (aligned != "asymmetric" && aligned != "half_pixel" && aligned != "half_pixel_for_nn"))
    return site.refuse("mode '" + mode + "', '" + aligned + "'");
  if (!site.floating() || site.rank() != 4 || site.in(0)[2] < 1 || site.in(0)[3] < 1 || pool.rows < 1 ||
      pool.columns < 1 || pool.samples < 0)
    return site.refuse("its type or shape");
  return one([pool](Operands in) { return pool_regions(pool, in); });
}

constexpr KernelEntry kRegionKernels[] = {
    {"ROIAlign", 3, 9, make_roi_align},
};

}  // namespace

std::span<const KernelEntry> region_kernels() { return kRegionKernels; }

}  // namespace heddle::torch_backend
