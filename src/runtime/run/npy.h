// Reads and writes tensors as NumPy's .npy files (format versions 1 to 3).
#pragma once

#include <string>
#include <string_view>

#include "heddle/base/status.h"
#include "heddle/runtime/tensor.h"

namespace heddle {

struct NpyLimits {
  int64_t max_bytes = int64_t{4} << 30;  // of the data
  int max_dimensions = 32;
};

// Strict: header, dtype, shape and length must agree. Reads little-endian numbers and bool; Fortran order is
// rejected with advice.
Result<TensorValue> parse_npy(std::string_view content, const NpyLimits& limits = {});
Result<TensorValue> read_npy(const std::string& path, const NpyLimits& limits = {});

// Writes version 1.0, C order. Fails for dtypes that NumPy does not have.
Result<std::string> npy_text(const TensorView& tensor);
Status write_npy(const std::string& path, const TensorView& tensor);

}  // namespace heddle
