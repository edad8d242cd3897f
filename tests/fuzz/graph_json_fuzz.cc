// Any bytes: a graph file is a graph that survives a round trip, or an error with a message.
#include <cstdint>
#include <string_view>

#include "heddle/base/json.h"
#include "heddle/graph/graph_json.h"
#include "json_mutator.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto document = heddle::parse_json(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!document.ok()) return 0;
  const auto graph = heddle::graph_from_json(heddle::JsonCursor(*document));
  if (!graph.ok()) {
    require(!graph.error().to_string().empty());
    return 0;
  }
  const heddle::Json written = heddle::graph_to_json(**graph);
  const auto again = heddle::graph_from_json(heddle::JsonCursor(written));
  require(again.ok() && heddle::graph_to_json(**again) == written);
  require((*again)->num_edges() == (*graph)->num_edges());
  return 0;
}
