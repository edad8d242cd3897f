// A set of the model's ops as a segment that is compiled without a plan.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "executor/program.h"
#include "heddle/runtime/backend.h"

namespace heddle {

struct OpsSegment {
  SegmentSpec spec;    // inputs and outputs in the order of the ports
  SegmentPorts ports;  // of the model's graph
};
// `ops` of the model's graph, ascending. Float32 tensors that pass between segments, but for wide ones, have the type
// `border`. Fails (internal) if the model does not have one of the ops.
Result<OpsSegment> segment_of_ops(std::shared_ptr<const Model> model, std::span<const OpId> ops,
                                  const std::string& name, DType border = DType::kF32,
                                  const WideValues& wide = {});

}  // namespace heddle
