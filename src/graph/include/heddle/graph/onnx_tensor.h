// Tensors in files of their own, as ONNX keeps a model's reference inputs and outputs (test_data_set_0/input_0.pb).
#pragma once

#include <string_view>

#include "heddle/base/status.h"
#include "heddle/graph/types.h"

namespace heddle {

struct OnnxTensorFile {
  DType dtype = DType::kUndefined;
  Shape shape;
  std::string_view data;  // row-major, little-endian; in the file's bytes
};
// A TensorProto with raw data, which is how ONNX's own tools write them. Untrusted input: invalid input if the bytes
// are no such tensor, sizes disagree, or the elements are listed in place of raw bytes. O(dimensions).
Result<OnnxTensorFile> parse_onnx_tensor(std::string_view bytes);

}  // namespace heddle
