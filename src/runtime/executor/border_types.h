// The types of the tensors that pass between a plan's segments.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "heddle/runtime/backend.h"

namespace heddle {

class Model;

// [lane] the problem's graph with the types that its tensors have in memory. A float32 tensor between segments has the
// type that its producer's device and all of its readers' devices take (RuntimeDevice::border_type, `of_device`). If
// they differ, or if it is one of Backend::wide_values(), it stays in float32. So do model inputs and outputs. The
// problem may count narrower types than the opened devices take, so `model` tells the tensors' own types; null: the
// problem's. Lanes with the same types share a graph. O(lanes x (V + E) + V log V).
Result<std::vector<std::shared_ptr<const Graph>>> lane_graphs(const Problem& problem, const Model* model,
                                                              const Plan& plan,
                                                              std::span<const DType> of_device);

// As a segment's input or output.
std::vector<SegmentTensor> segment_tensors(const Graph& graph, std::span<const TensorId> tensors);

}  // namespace heddle
