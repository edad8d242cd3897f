// An ONNX file without its weights, for importing it with the weights left where they are.
#pragma once

#include <string>
#include <string_view>

#include "heddle/base/status.h"

namespace heddle::internal {

// The same model with every large initializer's data (raw_data) replaced by its place in the file, as if it
// were one beside the model of the name `name`. For files that were checked, and that have no external data:
// their place would be lost. O(size without weights).
Result<std::string> onnx_skeleton(std::string_view file, const std::string& name);

}  // namespace heddle::internal
