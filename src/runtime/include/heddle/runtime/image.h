// Images as model inputs.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "heddle/base/status.h"
#include "heddle/runtime/tensor.h"

namespace heddle {

struct ImageOptions {
  // value = (pixel / 255 - mean) / stddev, per channel in the file's order (red, green, blue).
  std::array<float, 3> mean = {0.485F, 0.456F, 0.406F};
  std::array<float, 3> stddev = {0.229F, 0.224F, 0.225F};
  bool bgr = false;  // gives the model the channels blue, green, red
  int64_t max_pixels = int64_t{1} << 28;
};

// Parses a binary PPM (P6, 8 bits) and resizes it bilinearly (pixel centres aligned) to `shape`: f32, N x 3 x
// H x W. Every image of the batch is the same.
Result<TensorValue> parse_image_ppm(std::string_view content, const Shape& shape,
                                    const ImageOptions& options = {});
Result<TensorValue> read_image_ppm(const std::string& path, const Shape& shape,
                                   const ImageOptions& options = {});

}  // namespace heddle
