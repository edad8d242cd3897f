// The error of a plan's narrower types: its outputs against the unsplit model's in float32, on samples.
#pragma once

#include <memory>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/json_fwd.h"
#include "heddle/base/status.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "heddle/runtime/output_error.h"
#include "heddle/runtime/tensor.h"

namespace heddle {

class Executor;
class Model;
class RuntimeDevice;

// The type with the fewest significant bits that a segment of the plan computes in.
Precision narrowest_type(const Problem& problem, const Plan& plan);
// The most of the plan's devices (Backend::roundings_per_layer).
int roundings_per_layer(const Problem& problem, const Plan& plan);
// For ExecutorOptions::open: the device with its own engine, in float32.
Result<std::unique_ptr<RuntimeDevice>> open_in_float32(const Device& device);
// The largest relative error of rounding to the type: 2^-8 for bf16, 2^-11 for fp16 and tf32, 2^-24 for f32.
double rounding_of(Precision precision);

// Inputs, and the outputs of the unsplit model in float32, by sample.
struct Samples {
  std::vector<std::vector<TensorValue>> inputs, expected;
};
Result<Samples> with_references(const Model& model, std::vector<std::vector<TensorValue>> inputs);

struct PrecisionError {
  Precision type = Precision::kF32;  // the narrowest of the plan
  OutputError plan;
  // Of the unsplit model in that type, by OpenVINO on the CPU; no samples if the CPU does not have the type.
  OutputError unsplit;
  int roundings = 1;  // Backend::roundings_per_layer(), the largest of the plan's devices

  // Does rounding explain the plan's error? The unsplit model rounds at every layer already, and the plan's devices
  // `roundings` times. A cut rounds once more, so the plan rounds at most twice that often, and its mean error is at
  // most that many times as large, plus the rounding of the output itself. Without the unsplit model's error: as much
  // as 64 roundings, at most 0.05.
  bool explained() const;
  int allowed_times() const { return 2 * roundings; }
};

// Every sample once through each of the executor's slots.
Result<OutputError> executor_error(Executor& executor, const Graph& graph, const Samples& samples,
                                   const DecisionRules& rules, const Deadline& deadline);
// Of the unsplit model on the CPU; no samples if the CPU does not compute in that type.
Result<OutputError> unsplit_error(const Model& model, Precision type, const Samples& samples,
                                  const DecisionRules& rules);

Json output_error_json(const OutputError& error);
Json precision_error_json(const PrecisionError& error);
Result<PrecisionError> precision_error_from_json(const JsonCursor& cursor);

}  // namespace heddle
