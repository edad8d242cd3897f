// Graphs and stage schedules in the JSON form of IOS (Ding et al., "IOS: Inter-Operator Scheduler for CNN
// Acceleration", MLSys 2021) with sizes and work of each op; docs/hios.md describes the form.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heddle/base/json_fwd.h"
#include "heddle/base/status.h"
#include "heddle/graph/graph.h"

namespace heddle {

// Groups run at once, the ops of a group one after another.
struct IosStage {
  int64_t block = 0;
  std::vector<std::vector<OpId>> groups;  // none empty
  std::string device;                     // a device's name, or empty: not said
};

struct IosFile {
  // One op per node in the file's order; flops are twice the multiply-adds. A node has one output tensor per
  // range of channels that all its readers read whole, so that a reader of a slice gets the slice alone.
  // time_ms becomes a given time for all device classes, gpu_utilization the op's utilization.
  std::shared_ptr<const Graph> graph;
  std::vector<IosStage> stages;  // in the order in which they run; empty when the file has no schedule
};

// Whether a document looks like such a file: nodes with "macs", edges with "channels" or no edge at all.
bool is_ios_graph(const Json& json);

// Reads untrusted input; every error names the place in the file. Refused: missing, unknown or wrongly typed
// members, ids other than 0..n-1 in order, edges that do not lead to a later node, channels that the source
// does not have, bytes that do not fit shapes and channels, counts that differ from num_nodes and num_edges;
// stages that name an op never or twice or before what it reads. O((V + E) log V).
Result<IosFile> ios_graph_from_json(const Json& json);
// Errors carry the path.
Result<IosFile> read_ios_graph(const std::string& path);

// The document with these stages instead of its own: what ios_graph_from_json() reads back.
Json with_stages(Json document, const std::vector<IosStage>& stages);

}  // namespace heddle
