// Heddle's graph file: versioned JSON, documented in docs/graph-format.md.
#pragma once

#include <memory>
#include <string>

#include "heddle/base/json_fwd.h"
#include "heddle/graph/graph.h"

namespace heddle {

inline constexpr int kGraphJsonVersion = 1;

Json graph_to_json(const Graph& graph);
// Strict: unknown keys, wrong types and inconsistent graphs are errors that name the place.
Result<std::shared_ptr<const Graph>> graph_from_json(const JsonCursor& cursor);
Result<std::shared_ptr<const Graph>> read_graph_file(const std::string& path);

}  // namespace heddle
