// An ONNX file without its weights, for imports that leave the weights in the file.
#pragma once

#include <string>
#include <string_view>

#include "heddle/base/status.h"

namespace heddle::internal {

// The same model, with the data (raw_data) of every large initializer replaced by a reference: external data
// in a file called `name` next to the model. The file must be checked and have no external data of its own,
// whose location would be lost. O(size without weights).
Result<std::string> onnx_skeleton(std::string_view file, const std::string& name);

}  // namespace heddle::internal
