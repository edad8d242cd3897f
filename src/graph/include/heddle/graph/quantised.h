// Quantised models (QDQ and QLinear ops), which hardware with int8 arithmetic computes in int8.
#pragma once

#include <memory>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/graph.h"

namespace heddle {

// [op of the model's graph] true for convolutions and matrix products that read quantised tensors. The import turns a
// quantised op into a float32 one after a conversion from 8 bits, a shift and a scale; this follows those. O(V + E).
std::vector<bool> int8_products(const Graph& model);
// Units of the model's ops, with "int8" as a part of the types of those whose products are all such. Without any:
// `units` itself. O(V + E).
Result<std::shared_ptr<const Graph>> with_int8_types(const std::shared_ptr<const Graph>& units,
                                                     const Graph& model);
// Does the unit have that part?
bool is_int8(const Op& op);

}  // namespace heddle
