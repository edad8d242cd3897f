// Requests that are smaller than their bucket, tried before a server relies on how it runs them: what the model
// gives at their own shape, against what it gives padded or by an engine that takes any shape.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "own_shapes.h"
#include "plan_runner.h"

namespace heddle {

// A random request, and the model's outputs for it at its own shape.
struct SmallerProbe {
  std::shared_ptr<const LocalModel> model;   // at that shape, one row
  NamedShapes shapes;                        // of its inputs
  std::vector<TensorValue> inputs, outputs;  // in the served order, with the dimension of the batch
};

// All inputs of the model at batch 1.
NamedShapes input_shapes(const LocalModel& local);

// Shapes smaller than `bucket` to try, the best first: halfway from `below`, the bucket before it (none: null),
// `below` itself, three quarters, a half. `open` has -1 for the dimensions that vary.
std::vector<NamedShapes> smaller_shapes(const NamedShapes& bucket, const NamedShapes* below,
                                        const NamedShapes& open);

// At the first of the shapes that the model takes; none where it takes none of them. Errors: those of the device.
Result<std::optional<SmallerProbe>> probe_smaller(const ModelSource& source,
                                                  std::span<const NamedShapes> shapes, const Device& device);

struct SmallerError {
  double largest = 0;     // difference of an element of an output, over the output's largest value
  double agreement = 1;   // share of the equal decisions (output_error.h)
  int64_t decisions = 0;  // that were compared
};
void keep_worst(SmallerError& worst, const SmallerError& more);

// Padded to the bucket; `pad` has a value for each input.
Result<SmallerError> padding_error(const SmallerProbe& probe, PlanRunner& runner, const LocalModel& bucket,
                                   std::span<const double> pad);
// At its own shape by an engine that takes any.
Result<SmallerError> own_shape_error(const SmallerProbe& probe, OwnShapeRunner& runner);

}  // namespace heddle
