// An ONNX file without its weights, for importing it with the weights left where they are.
#pragma once

#include <string>
#include <string_view>

#include "heddle/base/status.h"

namespace heddle::internal {

// The same model with every large initializer's data (raw_data) replaced by its address in `file`, in the way
// that OpenVINO's importer takes: what is imported from it uses the file's bytes and must not outlive them.
// For files that were checked, and that have no external data: their place would be lost. O(size without
// weights).
Result<std::string> onnx_skeleton(std::string_view file);

}  // namespace heddle::internal
