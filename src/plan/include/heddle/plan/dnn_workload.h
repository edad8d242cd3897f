// Placement workloads in the JSON form of Tarnawski et al., "Efficient Algorithms for Device Placement of DNN
// Graph Operators" (NeurIPS 2020): a graph with given times, identical accelerators with limited memory and
// CPUs, all traffic through host memory. Their times carry no unit; they are consistent with milliseconds.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "heddle/base/json.h"
#include "heddle/base/status.h"

namespace heddle {

struct DnnNode {
  int64_t id = 0;          // the file's, unique
  double cpu = 0;          // time on one CPU core
  double accelerator = 0;  // time on one accelerator
  double cost = 0;         // time to move the output between an accelerator and host memory, one direction
  double bytes = 0;        // occupied on an accelerator; CPUs have no limit
  int32_t colour = -1;     // nodes of one colour, 0.., share a device; -1: the node is free
  bool on_accelerator = true;  // false: it runs on CPUs only
  bool backward = false;       // of the training pass
  std::string name;
};

struct DnnWorkload {
  std::string name;
  int accelerators = 0, cpus = 0;
  double accelerator_bytes = 0;  // memory of each accelerator
  std::vector<DnnNode> nodes;
  std::vector<std::pair<int32_t, int32_t>> edges;  // node indices, each pair once, without a cycle
  std::vector<std::vector<int32_t>> out, in;       // consumers and producers of each node
  std::vector<int32_t> order;                      // topological; ties by index
  int32_t colours = 0;
};

// Whether a document looks like such a workload (rather than a graph or a problem of Heddle): it has
// maxFPGAs, maxCPUs, nodes and edges.
bool is_dnn_workload(const Json& json);

// Reads untrusted input; every error names the place in the file. Refused: missing, unknown or wrongly typed
// members, repeated ids or edges, edges to nodes that are not there, negative or infinite numbers, out-edges
// of one node with different costs, cycles, a workload without devices. O(V log V + E log E).
Result<DnnWorkload> dnn_workload_from_json(const Json& json, std::string name);
// The name is the file's without folder and suffix; errors carry the path.
Result<DnnWorkload> read_dnn_workload(const std::string& path);

// Fills out, in and order from nodes and edges; fails on a cycle, naming a node on it.
Status complete_dnn_workload(DnnWorkload& workload);

}  // namespace heddle
