// Moirai's public workloads (docs/flow-workloads.md): a time for every op and device, and for every flow and
// ordered pair of devices. They become latency problems with Transfers::kGiven.
#pragma once

#include <string>

#include "heddle/base/json_fwd.h"
#include "heddle/base/status.h"
#include "heddle/plan/problem.h"

namespace heddle {

struct FlowWorkloadFile {
  Problem problem;
  std::string time_unit;   // as the file names it
  double us_per_unit = 1;  // of a unit that begins with "s", "ms" or "us"; 1 for any other
};

// Whether a document looks like such a workload: it has devices, ops and edges.
bool is_flow_workload(const Json& json);

// Ops keep the file's order and ids (as names), devices are called device0, device1, ... Each edge is a tensor
// of its own. Reads untrusted input. Fails, naming the place, on unknown ids, sizes that differ, negative
// times, a cycle, times or memory with more than nine decimals. O(size log size).
Result<FlowWorkloadFile> flow_workload_from_json(const Json& json);
// Errors carry the path.
Result<FlowWorkloadFile> read_flow_workload(const std::string& path);

}  // namespace heddle
