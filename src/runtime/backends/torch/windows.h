// Windows that slide over the spatial axes of [batch, channels, axes...]: pads, strides and dilations.
#pragma once

#include <cstdint>
#include <vector>

#include "kernel.h"

namespace heddle::torch_backend {

struct Windows {
  std::vector<int64_t> kernel, strides, dilations, pads_begin;
  std::vector<int64_t> input, output;  // spatial sizes

  size_t rank() const { return kernel.size(); }
  // What the windows span together; more or less than the padded input where the last ones do not fit.
  int64_t span(size_t i) const { return (output[i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1; }
  // constant_pad_nd's list (last axis first) that makes the input as long as the span. May cut.
  std::vector<int64_t> pads() const;
};

// Of an op with the attributes strides, dilations, pads_begin, auto_pad, for a tensor of `input` and an
// output of `output` spatial sizes. The end's pads follow from the sizes. Fails where they are not of one
// length.
Result<Windows> windows_of(const OpSite& site, std::vector<int64_t> kernel, std::vector<int64_t> input,
                           std::vector<int64_t> output);
// The sizes behind batch and channels.
std::vector<int64_t> spatial(const Shape& shape);

}  // namespace heddle::torch_backend
