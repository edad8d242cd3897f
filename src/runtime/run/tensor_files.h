// Tensors from and to NumPy's .npy files (format versions 1 to 3), and from images.
#pragma once

#include <string>
#include <string_view>

#include "heddle/base/status.h"
#include "heddle/runtime/tensor.h"

namespace heddle {

constexpr int64_t kMaxNpyBytes = int64_t{4} << 30;  // of the data

// Strict: header, dtype, shape and length must agree. Reads little-endian numbers and bool; Fortran order is
// rejected with advice.
Result<TensorValue> parse_npy(std::string_view content, int64_t max_bytes = kMaxNpyBytes);
Result<TensorValue> read_npy(const std::string& path);
// The content of a .npy file (version 1) that parse_npy() reads. NumPy has no bf16, which becomes f32. Unsupported:
// packed types and strings. O(bytes).
Result<std::string> npy_content(const TensorView& tensor);
// Whether npy_content() takes the type.
bool has_npy_type(DType dtype);

// Parses a binary PPM (P6, 8 bits) and resizes it bilinearly (pixel centres aligned) to `shape`: f32, N x 3 x
// H x W. Every image of the batch is the same. Channels are red, green, blue; a value is
// (pixel / 255 - mean) / deviation, with ImageNet's mean and standard deviation of the channel.
Result<TensorValue> parse_image_ppm(std::string_view content, const Shape& shape);
Result<TensorValue> read_image_ppm(const std::string& path, const Shape& shape);

}  // namespace heddle
