// Random small workloads, brute force over them, and the public data's folder.
#pragma once

#include <functional>
#include <string>

#include "heddle/base/random.h"
#include "heddle/plan/dnn_split.h"

namespace heddle {

struct RandomDnn {
  int nodes = 6, accelerators = 2, cpus = 1;
  double edge_chance = 0.35;
  bool training = false;  // a backward node for most forward nodes, tied by colour
  bool tight = false;     // not everything fits on one accelerator
};
inline DnnWorkload random_dnn(const RandomDnn& shape, uint64_t seed) {
  Random random(seed);
  DnnWorkload w;
  w.name = "random";
  w.accelerators = shape.accelerators;
  w.cpus = shape.cpus;
  double bytes = 0;
  const int32_t n = shape.nodes;
  const auto add = [&](bool backward, int32_t colour) {
    DnnNode node;
    node.id = static_cast<int64_t>(w.nodes.size()) * 3 + 1;
    node.accelerator = random.chance(0.2) ? 0 : static_cast<double>(random.between(1, 9));
    node.cpu = node.accelerator * 3;
    node.cost = static_cast<double>(random.between(0, 6)) / 4;
    node.bytes = static_cast<double>(random.between(0, 4));
    node.backward = backward;
    node.colour = colour;
    node.on_accelerator = !random.chance(0.05);
    bytes += node.bytes;
    w.nodes.push_back(node);
  };
  for (int32_t v = 0; v < n; ++v) {
    const bool shared = !shape.training && v > 0 && random.chance(0.15);
    const auto colour = shared ? std::max(w.nodes.back().colour, 0) : w.colours;
    if (colour == w.colours) ++w.colours;
    add(false, colour);
  }
  for (int32_t u = 0; u < n; ++u)
    for (int32_t v = u + 1; v < n; ++v)
      if (random.chance(shape.edge_chance)) w.edges.emplace_back(u, v);
  if (shape.training) {
    const auto forward = w.edges;
    for (int32_t v = 0; v < n; ++v) add(true, random.chance(0.8) ? v : -1);
    for (const auto& [u, v] : forward) w.edges.emplace_back(n + v, n + u);
    w.edges.emplace_back(n - 1, 2 * n - 1);
  }
  w.accelerator_bytes = shape.tight ? bytes * 0.6 : bytes + 1;
  (void)complete_dnn_workload(w).ok();
  return w;
}

// Calls `visit` with every assignment of nodes to `devices` devices.
inline void for_each_split(size_t nodes, int32_t devices, const std::function<void(const DnnSplit&)>& visit) {
  DnnSplit split;
  split.device.assign(nodes, 0);
  for (;;) {
    visit(split);
    size_t v = 0;
    while (v < nodes && ++split.device[v] == devices) split.device[v++] = 0;
    if (v == nodes) return;
  }
}

// The best value by brute force; infinity when nothing is feasible.
inline double best_dnn_value(const DnnWorkload& w, const DnnRules& rules) {
  double best = std::numeric_limits<double>::infinity();
  const bool latency = rules.objective == DnnObjective::kLatency;
  for_each_split(w.nodes.size(), latency ? w.accelerators + 1 : w.accelerators + w.cpus,
                 [&](const DnnSplit& split) {
                   if (!check_dnn_split(w, split, rules).ok()) return;
                   best = std::min(best, evaluate_dnn_split(w, split, rules.objective)->value);
                 });
  return best;
}

// A folder that is not there when there is no public data.
inline std::string dnn_data() {
  const char* shared = std::getenv("HEDDLE_SHARED");
  return shared == nullptr ? "no-public-data/" : std::string(shared) + "/data/dnn-partitioning/";
}

}  // namespace heddle
