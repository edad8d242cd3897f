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

  // Does rounding at the plan's cuts explain its error? The unsplit model rounds at every layer already. A cut
  // rounds once more, so the plan rounds at most twice as often as the unsplit model, and its mean error is at
  // most twice as large, plus the rounding of the output itself.
  bool explained() const;
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
