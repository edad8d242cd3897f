#include "heddle/runtime/image.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "heddle/base/file.h"

namespace heddle {
namespace {

Error bad_picture(const std::string& what) {
  return Error(Code::kInvalidInput, "not a readable PPM picture: " + what);
}

struct Picture {
  int64_t width = 0, height = 0;
  std::string_view pixels;  // rows of red, green, blue
};

// Reads the next number of the header, after spaces and comment lines.
Result<int64_t> header_number(std::string_view content, size_t& at) {
  while (at < content.size()) {
    if (content[at] == '#') {
      while (at < content.size() && content[at] != '\n') ++at;
    } else if (content[at] == ' ' || (content[at] >= '\t' && content[at] <= '\r')) {
      ++at;
    } else {
      break;
    }
  }
  int64_t value = -1;
  for (; at < content.size() && content[at] >= '0' && content[at] <= '9'; ++at) {
    value = std::max<int64_t>(value, 0) * 10 + (content[at] - '0');
    if (value > 1'000'000'000) return bad_picture("a number in the header is too large");
  }
  if (value < 0) return bad_picture("expected a number at byte " + std::to_string(at));
  return value;
}

Result<Picture> parse_header(std::string_view content, int64_t max_pixels) {
  if (!content.starts_with("P6")) return bad_picture("it does not start with P6 (binary PPM)");
  size_t at = 2;
  Picture picture;
  HEDDLE_ASSIGN_OR_RETURN(picture.width, header_number(content, at));
  HEDDLE_ASSIGN_OR_RETURN(picture.height, header_number(content, at));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t maximum, header_number(content, at));
  if (maximum != 255)
    return bad_picture("its maximum value is " + std::to_string(maximum) +
                       "; only 255 (8 bits) is supported");
  if (picture.width < 1 || picture.height < 1 || picture.width * picture.height > max_pixels) {
    return bad_picture(std::to_string(picture.width) + " x " + std::to_string(picture.height) +
                       " pixels; 1 to " + std::to_string(max_pixels) + " are accepted");
  }
  const auto needed = static_cast<size_t>(picture.width * picture.height * 3);
  if (at >= content.size() || content.size() - at - 1 < needed)
    return bad_picture("it ends before its " + std::to_string(needed) + " bytes of pixels");
  picture.pixels = content.substr(at + 1, needed);
  return picture;
}

// Position of a target pixel's centre in the source, along one axis.
struct Sample {
  int64_t low = 0, high = 0;
  float share = 0;  // weight of `high`
};

std::vector<Sample> samples(int64_t from, int64_t to) {
  std::vector<Sample> result(static_cast<size_t>(to));
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  for (int64_t i = 0; i < to; ++i) {
    const double centre =
        std::clamp((static_cast<double>(i) + 0.5) * scale - 0.5, 0.0, static_cast<double>(from - 1));
    const auto low = static_cast<int64_t>(centre);
    result[static_cast<size_t>(i)] = {low, std::min(low + 1, from - 1),
                                      static_cast<float>(centre - static_cast<double>(low))};
  }
  return result;
}

}  // namespace

Result<TensorValue> parse_image_ppm(std::string_view content, const Shape& shape,
                                    const ImageOptions& options) {
  if (shape.size() != 4 || shape[1] != 3 || shape[0] < 1 || shape[2] < 1 || shape[3] < 1) {
    return Error(Code::kInvalidInput, "a picture feeds inputs of shape Nx3xHxW, not " + shape_text(shape));
  }
  HEDDLE_ASSIGN_OR_RETURN(const Picture picture, parse_header(content, options.max_pixels));
  HEDDLE_ASSIGN_OR_RETURN(TensorValue value, make_tensor(DType::kF32, shape));
  auto* out = reinterpret_cast<float*>(value.data.get());
  const auto rows = samples(picture.height, shape[2]);
  const auto columns = samples(picture.width, shape[3]);
  const auto pixel = [&](int64_t y, int64_t x, int64_t channel) {
    return static_cast<float>(static_cast<unsigned char>(
        picture.pixels[static_cast<size_t>((y * picture.width + x) * 3 + channel)]));
  };
  size_t at = 0;
  for (int64_t c = 0; c < 3; ++c) {
    const int64_t channel = options.bgr ? 2 - c : c;
    const float mean = options.mean[static_cast<size_t>(channel)];
    const float stddev = options.stddev[static_cast<size_t>(channel)];
    for (const Sample& y : rows) {
      for (const Sample& x : columns) {
        const float top = std::lerp(pixel(y.low, x.low, channel), pixel(y.low, x.high, channel), x.share);
        const float bottom =
            std::lerp(pixel(y.high, x.low, channel), pixel(y.high, x.high, channel), x.share);
        out[at++] = (std::lerp(top, bottom, y.share) / 255.0F - mean) / stddev;
      }
    }
  }
  for (int64_t n = 1; n < shape[0]; ++n)
    std::memcpy(out + static_cast<size_t>(n) * at, out, at * sizeof(float));
  return value;
}

Result<TensorValue> read_image_ppm(const std::string& path, const Shape& shape, const ImageOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const std::string content, read_file(path, options.max_pixels * 3 + 4096));
  auto value = parse_image_ppm(content, shape, options);
  if (!value.ok()) return std::move(value).error().with_context(path);
  return value;
}

}  // namespace heddle
