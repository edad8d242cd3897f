// Graphs and stage schedules in the JSON format of IOS (Ding et al., "IOS: Inter-Operator Scheduler for CNN
// Acceleration", MLSys 2021), extended by sizes and work of each op; docs/hios.md describes the format.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heddle/base/json_fwd.h"
#include "heddle/base/status.h"
#include "heddle/graph/graph.h"

namespace heddle {

// The groups of a stage run concurrently; the ops of a group run in sequence.
struct IosStage {
  int64_t block = 0;
  std::vector<std::vector<OpId>> groups;  // none empty
  std::string device;                     // a device's name; empty: unspecified
};

struct IosFile {
  // One op per node, in the file's order. flops are twice the multiply-adds; time_ms becomes a given time for
  // all device classes, gpu_utilization the op's utilization. A node's output is split at all channels where
  // a reader's slice begins or ends: a reader of a slice depends on that slice alone.
  std::shared_ptr<const Graph> graph;
  std::vector<IosStage> stages;  // in execution order; empty when the file has no schedule
};

// True when a document looks like such a file: nodes with "macs", and edges (if any) with "channels".
bool is_ios_graph(const Json& json);

// Input is untrusted; every error names the place in the file. Rejected: missing, unknown or wrongly typed
// members; ids other than 0..n-1 in order; edges that do not lead to a later node; channels that the source
// does not have; bytes that do not match shapes and channels; counts that differ from num_nodes and
// num_edges; stages that omit or repeat an op or run it before an op that it reads. O((V + E) log V).
Result<IosFile> ios_graph_from_json(const Json& json);
// Errors include the path.
Result<IosFile> read_ios_graph(const std::string& path);

// The document with its stages replaced, in the form that ios_graph_from_json() reads.
Json with_stages(Json document, const std::vector<IosStage>& stages);

}  // namespace heddle
