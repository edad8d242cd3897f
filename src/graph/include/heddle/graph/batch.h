// A graph at a larger batch.
#pragma once

#include <cstdint>
#include <memory>

#include "heddle/base/status.h"
#include "heddle/graph/graph.h"

namespace heddle {

// The graph of `batch` requests at once, from that of one: the first dimension, the bytes of tensors, flops and
// given times are those of all requests; parameters are read once. Ids and names stay. The first dimension need not
// be open in the model's file. Fails if a sum exceeds the limits of graphs. O(V + E).
Result<std::shared_ptr<const Graph>> with_batch(const Graph& graph, int64_t batch);

}  // namespace heddle
