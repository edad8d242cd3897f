// Simulation instances of HIOS (Kundu and Shu, IPDPSW 2024, section V-A) in their public JSON format. They have ops
// with a time and a utilization, dependencies with a transfer time, and equal devices. See docs/hios.md.
#pragma once

#include <string>

#include "heddle/base/json_fwd.h"
#include "heddle/base/status.h"
#include "heddle/plan/problem.h"

namespace heddle {

struct HiosWorkloadOptions {
  int devices = 4;  // number of equal devices, 1 to 64
  // Each edge has two transfer times: "transfer_ms" follows the time of its source (as the paper says),
  // "transfer_ms_code" that of its reader (as the released program does). True: use the second.
  bool transfer_by_reader = false;
};
inline constexpr int kMaxHiosDevices = 64;

// True when a document looks like such an instance: nodes with "layer" or "gpu_utilization" and without
// "macs", edges with "transfer_ms".
bool is_hios_workload(const Json& json);

// The latency problem on preset hios-sim-N: no contention, stages of two ops with
// t(S) = 0.5 sum t + 0.5 max(sum t u, max t).
// An op makes one tensor if all its transfers take the same time, else one per reader; transfers are exact to
// 1 ns. Input is untrusted; every error names the place in the file. Rejected: missing, unknown or wrongly
// typed members, ids other than 0..n-1 in order, edges to missing nodes, repeated edges, cycles, counts that
// differ from "ops" and "deps". O(V + E log E).
Result<Problem> hios_workload_from_json(const Json& json, const HiosWorkloadOptions& options);
// Errors include the path.
Result<Problem> read_hios_workload(const std::string& path, const HiosWorkloadOptions& options);

// Sets the stage model of the simulation on every device of the problem: t(S) above with the graph's
// utilizations, stages of two ops. Also works for generated graphs (generate_layered()).
void set_hios_stages(Problem& problem);

}  // namespace heddle
