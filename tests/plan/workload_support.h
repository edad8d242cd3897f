// Random workloads of papers for the tests of plan/ and planners/.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "heddle/base/json.h"
#include "heddle/base/random.h"
#include "heddle/plan/checker.h"
#include "heddle/plan/evaluator.h"
#include "heddle/plan/flow_workload.h"
#include "heddle/plan/placement_workload.h"

namespace heddle::test {

// Set-up that cannot fail.
template <class T>
T made(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "test set-up: %s\n", result.error().to_string().c_str());
    std::abort();
  }
  return std::move(result).value();
}

// Times are whole microseconds; every tenth edge carries no data.
struct RandomFlows {
  int ops = 4, devices = 2;
  double edge_probability = 0.6;
  double memory = 1e9;  // of each device; ops take 0 to 5
};
inline Json random_flow_json(Random& random, const RandomFlows& shape) {
  Json json = {{"name", "random"}, {"units", {{"time", "us"}}}};
  json["devices"] = json["ops"] = json["edges"] = Json::array();
  for (int k = 0; k < shape.devices; ++k) json["devices"].push_back({{"id", k}, {"memory", shape.memory}});
  for (int v = 0; v < shape.ops; ++v) {
    Json times = Json::array();
    for (int k = 0; k < shape.devices; ++k) times.push_back(random.between(0, 9));
    json["ops"].push_back({{"id", v}, {"time", times}, {"memory", random.between(0, 5)}});
  }
  for (int a = 0; a < shape.ops; ++a) {
    for (int b = a + 1; b < shape.ops; ++b) {
      if (!random.chance(shape.edge_probability)) continue;
      Json edge = {{"src", a}, {"dst", b}, {"flow", nullptr}};
      if (!random.chance(0.1)) {
        edge["flow"] = shape.ops * a + b;
        Json rows = Json::array();
        for (int i = 0; i < shape.devices; ++i) {
          Json row = Json::array();
          for (int j = 0; j < shape.devices; ++j) row.push_back(i == j ? 0 : random.between(0, 6));
          rows.push_back(std::move(row));
        }
        edge["time"] = std::move(rows);
      }
      json["edges"].push_back(std::move(edge));
    }
  }
  return json;
}
inline Problem random_flow_problem(Random& random, const RandomFlows& shape) {
  return made(flow_workload_from_json(random_flow_json(random, shape))).problem;
}

// Times are in the files' unit. Node v has the id 3 v + 1.
struct RandomPlacement {
  int nodes = 6, accelerators = 2, cpus = 1;
  double edge_chance = 0.35;
  bool training = false;  // a backward node for each forward node, most tied by colour
  bool tight = false;     // not everything fits on one accelerator
  bool anywhere = false;  // no colours, and every node runs on accelerators
};
inline Json random_placement_json(const RandomPlacement& shape, uint64_t seed) {
  Random random(seed);
  const int n = shape.nodes;
  int colours = 0, last_colour = -1;
  double bytes = 0;
  Json nodes = Json::array(), edges = Json::array();
  std::vector<double> cost;
  const auto add = [&](bool backward, int colour) {
    const double time = random.chance(0.2) ? 0 : static_cast<double>(random.between(1, 9));
    Json node = {
        {"id", 3 * static_cast<int>(nodes.size()) + 1}, {"fpgaLatency", time}, {"cpuLatency", 3 * time}};
    cost.push_back(static_cast<double>(random.between(0, 6)) / 4);
    const auto size = random.between(0, 4);
    node["size"] = size;
    node["isBackwardNode"] = backward;
    const bool on_accelerator = !random.chance(0.05);
    node["supportedOnFpga"] = on_accelerator || shape.anywhere;
    if (colour >= 0 && !shape.anywhere) node["colorClass"] = colour;
    bytes += static_cast<double>(size);
    nodes.push_back(std::move(node));
  };
  const auto connect = [&](int u, int v) {
    edges.push_back({{"sourceId", 3 * u + 1}, {"destId", 3 * v + 1}, {"cost", cost[static_cast<size_t>(u)]}});
  };
  for (int v = 0; v < n; ++v) {
    const bool shared = !shape.training && v > 0 && random.chance(0.15);
    if (!shared) last_colour = colours++;
    add(false, last_colour);
  }
  std::vector<std::pair<int, int>> forward;
  for (int u = 0; u < n; ++u) {
    for (int v = u + 1; v < n; ++v) {
      if (random.chance(shape.edge_chance)) forward.emplace_back(u, v);
    }
  }
  for (int v = 0; v < n && shape.training; ++v) add(true, random.chance(0.8) ? v : -1);
  for (const auto& [u, v] : forward) connect(u, v);
  for (const auto& [u, v] : forward) {
    if (shape.training) connect(n + v, n + u);
  }
  if (shape.training) connect(n - 1, 2 * n - 1);
  return {{"maxFPGAs", shape.accelerators},
          {"maxCPUs", shape.cpus},
          {"maxSizePerFPGA", shape.tight ? bytes * 0.6 : bytes + 1},
          {"nodes", nodes},
          {"edges", edges}};
}
inline Problem random_placement_problem(const RandomPlacement& shape, uint64_t seed,
                                        const PlacementOptions& options) {
  return made(placement_workload_from_json(random_placement_json(shape, seed), "random", options));
}

// Calls `visit` with every way to deal `items` to `places` places.
inline void for_each_dealing(size_t items, int32_t places,
                             const std::function<void(const std::vector<int32_t>&)>& visit) {
  std::vector<int32_t> place(items, 0);
  for (;;) {
    visit(place);
    size_t i = 0;
    while (i < items && ++place[i] == places) place[i++] = 0;
    if (i == items) return;
  }
}

// The best value in us over every placement of the ops on the devices, each accelerator's ops in one piece;
// infinity when nothing is feasible.
inline double best_placement_us(const Problem& problem) {
  double best = std::numeric_limits<double>::infinity();
  Evaluator evaluator(problem);
  for_each_dealing(problem.graph->num_ops(), static_cast<int32_t>(problem.cluster->num_devices()),
                   [&](const std::vector<int32_t>& devices) {
                     WorkloadPlacement placement;
                     for (const int32_t d : devices) placement.device.emplace_back(d);
                     const auto plan = plan_of_placement(problem, placement);
                     if (!plan.ok()) return;
                     const auto timeline = evaluator.evaluate(*plan, {.critical = false, .resources = false});
                     if (!timeline.ok() || !(objective_us(problem, *timeline) < best)) return;
                     if (check(problem, *plan, *timeline).ok()) best = objective_us(problem, *timeline);
                   });
  return best;
}

// The public data's folder; one that is not there without HEDDLE_SHARED.
inline std::string public_data(const std::string& set) {
  const char* shared = std::getenv("HEDDLE_SHARED");
  return std::string(shared != nullptr ? shared : "no-public-data") + "/data/" + set + "/";
}

}  // namespace heddle::test
