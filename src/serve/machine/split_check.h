// Compares a model that is cut into parts with the whole model, on one random row.
#pragma once

#include <span>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/runtime/tensor.h"
#include "plan_runner.h"

namespace heddle {

// Above this the parts do not compute what the model computes; sums in another order stay far below.
inline constexpr double kMostSplitDifference = 1e-3;
// With float16 between the parts, whose values are wrong by 2^-11 of themselves.
inline constexpr double kMostHalfDifference = .1;
// In types narrower than float32 single values may differ by anything; their mean stays below a rounding or two.
inline constexpr double kMostNarrowMean = 0x1p-7;

// |difference| over the tensor's largest |value|; infinite where one is not a number.
struct TensorGap {
  double largest = 0, mean = 0;
};
TensorGap relative_difference(const TensorView& actual, const TensorView& expected);
void keep_worst(TensorGap& worst, const TensorGap& more);

// One row of each, in the protocol's shapes.
Result<std::vector<TensorValue>> tensors_of(std::span<const TensorInfo> infos);

// A row that runs outside of a plane.
struct ProbeRow final : TensorRow {
  void settled() override {}
};

// With pointers to the tensors' data.
ProbeRow probe_row(const std::vector<TensorValue>& inputs, const std::vector<TensorValue>& outputs);

// Makes a random row and runs the whole model on it.
Status run_whole(PlanRunner& whole, const LocalModel& model, std::vector<TensorValue>& inputs,
                 std::vector<TensorValue>& outputs);
// The same row through the parts, one after the other: the largest difference of an output.
Result<TensorGap> run_split(std::span<PlanRunner* const> parts, const LocalModel& model,
                            const std::vector<TensorValue>& inputs, const std::vector<TensorValue>& outputs);

}  // namespace heddle
