// Types and sizes of an ONNX file's values, as ONNX Runtime infers them or as runs show them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "region_op.h"

namespace heddle::internal {

struct FoundValue {
  RegionValue value;    // type 0: no tensor
  bool by_run = false;  // the shape was not inferred: it is the same in all runs, but for its open dimensions
};

// The outputs of the file `bytes`, whose inputs have these static shapes. Sizes that inference leaves open are found by
// three runs: on zeros, ones and seeded random numbers; at least two must end. Unsupported, with the library's
// reason, if it cannot load the file or if fewer runs end. Loads all weights.
Result<std::vector<FoundValue>> find_values(const std::string& bytes, std::span<const RegionValue> inputs,
                                            std::span<const std::string> outputs);

}  // namespace heddle::internal
