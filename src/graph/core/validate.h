// Checks that GraphBuilder::build() runs on a graph's parts before it derives anything from them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/graph.h"

namespace heddle::internal {

// Returns the indices 0..names.size()-1 sorted by name. Fails when a name is empty or occurs twice; `what`
// ("op", "tensor", ...) is for the message.
Result<std::vector<uint32_t>> index_names(std::span<const std::string_view> names, const char* what);

// Checks all except names and cycles: ids, sizes, times, limits.
Status check_parts(std::span<const Op> ops, std::span<const Tensor> tensors, std::span<const Param> params,
                   std::span<const TensorId> outputs);

}  // namespace heddle::internal
