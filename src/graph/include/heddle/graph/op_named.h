// Ops by the names that people know.
#pragma once

#include <string>

#include "heddle/base/ids.h"
#include "heddle/base/status.h"
#include "heddle/graph/graph.h"

namespace heddle {

// The op of that name, else the first op that stands for an ONNX node of that name. Not found, with the nearest
// name, if there is none. O(nodes).
Result<OpId> op_named(const Graph& graph, const std::string& name);

}  // namespace heddle
