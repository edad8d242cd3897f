// A float32 model's graph as devices hold it that compute in a narrower type.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>

#include "heddle/base/status.h"
#include "heddle/graph/graph.h"

namespace heddle {

enum class Narrowed { kTensors, kAll };  // tensors alone, or parameters, too

// float32 tensors and parameters get the type `narrow` (float16 or bfloat16) and its bytes. The model's inputs and
// outputs stay as they are. The bytes that an op accesses shrink as its tensors and parameters do, together. Ids and
// names stay. `wide`: names of tensors and parameters that stay, too. O((V + E) log V).
Result<std::shared_ptr<const Graph>> narrowed(const Graph& graph, DType narrow,
                                              Narrowed what = Narrowed::kAll,
                                              const std::set<std::string>& wide = {});
// The same graph with these types of its tensors, one for each, and the bytes of these types. O(V + E).
Result<std::shared_ptr<const Graph>> with_tensor_types(const Graph& graph, std::span<const DType> types);

}  // namespace heddle
