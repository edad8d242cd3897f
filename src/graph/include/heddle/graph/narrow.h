// A float32 model's graph as it is when all of it computes in a narrower type.
#pragma once

#include <memory>

#include "heddle/base/status.h"
#include "heddle/graph/graph.h"

namespace heddle {

// float32 tensors and parameters get the type `narrow` (float16 or bfloat16) and its bytes. The model's inputs and
// outputs stay as they are. The bytes that an op accesses shrink as its tensors and parameters do, together. Ids and
// names stay. O(V + E).
Result<std::shared_ptr<const Graph>> narrowed(const Graph& graph, DType narrow);

}  // namespace heddle
