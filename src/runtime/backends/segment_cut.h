// What a backend compiles: a segment's part of the model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/graph/model.h"
#include "heddle/runtime/backend.h"

namespace heddle {

struct SegmentCut {
  std::shared_ptr<const Model> model;  // owns memory of the part's constants
  SegmentModel part;
  // [input, output of the part] index of its tensor in the spec; -1: an output that is not read.
  std::vector<int> inputs, outputs;
};
// Reads the model if the spec does not have it yet. Fails (invalid input), naming the device, if there is none.
Result<SegmentCut> cut_segment(const SegmentSpec& spec, const std::string& device);

}  // namespace heddle
