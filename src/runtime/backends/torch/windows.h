// Sliding windows over the spatial axes of [batch, channels, axes...]: pads, strides and dilations.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel.h"

namespace heddle::torch_backend {

struct Windows {
  std::vector<int64_t> kernel, strides, dilations, pads_begin;
  std::vector<int64_t> input, output;  // spatial sizes

  size_t rank() const { return kernel.size(); }
  // Length covered by all windows; differs from the padded input's if the last ones do not fit exactly.
  int64_t span(size_t i) const { return (output[i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1; }
  // constant_pad_nd's list (last axis first) that extends or cuts the input to the span.
  std::vector<int64_t> pads() const;
};

// Windows of an op with the attributes strides, dilations, pads_begin and auto_pad, for the given spatial
// sizes of input and output. The end pads follow from the sizes. Fails if the lists differ in length.
Result<Windows> windows_of(const OpSite& site, std::vector<int64_t> kernel, std::vector<int64_t> input,
                           std::vector<int64_t> output);
// The sizes after batch and channels.
std::vector<int64_t> spatial(const Shape& shape);

}  // namespace heddle::torch_backend
