// Splits of a DnnWorkload, their value and their check. Two objectives:
//
// Latency of one sample (paper, section 4, "latency minimisation"): CPU cores are unlimited, an accelerator
// runs its pieces (subgraphs) one after the other, and a piece moves all inputs in, computes serially, and
// moves all outputs out. With S a piece, each u counted once,
//   lat(v)    = cpu(v) + max lat(u) over producers u of v                         v on the CPUs
//   start(S)  = max of lat(u) over u outside S with an edge into S, and of the finish of the piece before S
//   finish(S) = start(S) + sum cost(u), u outside with an edge into S
//                        + sum accelerator(v), v in S
//                        + sum cost(u), u in S with an edge that leaves S         = lat(v) for v in S
//   value     = max lat(v)
// Max-load of a pipelined stream (section 3, "throughput maximisation"): the largest load of a device,
//   CPU:          sum cpu(v)
//   accelerator:  sum accelerator(v) + sum cost(u) over u with an edge that crosses the device's border
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/plan/dnn_workload.h"

namespace heddle {

enum class DnnObjective { kLatency, kMaxLoad };

struct DnnSplit {
  // Of each node: 0..k-1 are the accelerators; k.. the CPUs. For latency all CPUs are one pool: k.
  std::vector<int32_t> device;
  // Latency: which piece of its accelerator, in their order from 0. Empty: all are in piece 0.
  std::vector<int32_t> piece;
};

struct DnnRules {
  DnnObjective objective = DnnObjective::kMaxLoad;
  // Max-load: the devices can be ordered so that every forward edge leads to the same or a later device.
  // Backward nodes follow their colour; a backward edge at a node whose colour has no forward node (or that
  // has no colour) counts as a forward edge in the opposite direction.
  bool contiguous = false;
  int pieces = 1;  // latency: at most so many pieces on an accelerator (the paper's q; 1 is contiguous)
};

struct DnnValue {
  double value = 0;
  std::vector<double> loads;  // max-load: of each accelerator, then of each CPU
  std::vector<double> lat;    // latency: when each node's output is in host memory
};

// The exact value. O(V + E) apart from sorting. Fails only where there is none: devices out of range or, for
// latency, pieces that wait for each other. Memory, colours and contiguity are the checker's.
Result<DnnValue> evaluate_dnn_split(const DnnWorkload& workload, const DnnSplit& split,
                                    DnnObjective objective);

// Independent of the evaluator and of every planner. kVerificationFailed with the first of: a node without a
// device or on an unknown one, a node where it cannot run, memory, colours, pieces, contiguity, cycles
// between pieces.
Status check_dnn_split(const DnnWorkload& workload, const DnnSplit& split, const DnnRules& rules);

// The authors' result form: {"fpgas":[{"nodes":[ids]}],"cpus":[{"nodes":[ids]}]}. A node named nowhere goes
// where its colour is. Errors: more devices than the workload has, unknown ids, a node named twice or, with
// its colour, nowhere.
Result<DnnSplit> dnn_split_from_json(const DnnWorkload& workload, const Json& json);

}  // namespace heddle
