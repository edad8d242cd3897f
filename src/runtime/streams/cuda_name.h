// What cluster files call CUDA devices: "cuda:0", or "cuda:0/0-2/8" for eighths 0 and 1 of it.
#pragma once

#include <string_view>

#include "heddle/base/status.h"

namespace heddle {

struct CudaName {
  int index = 0;
  int first = 0, last = 0, of = 0;  // the parts from first up to last, not included, of `of`; of 0: all of it
};
// Fails (invalid input), saying what was expected, where it is no such name.
Result<CudaName> parse_cuda_name(std::string_view text);

}  // namespace heddle
