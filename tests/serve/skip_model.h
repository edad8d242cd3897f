// A small model with a skip connection, and a fleet that runs it in two parts.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "heddle/cluster/discover.h"
#include "heddle/fleet/fleet.h"
#include "heddle/graph/model.h"
#include "onnx_writer.h"

namespace heddle {

// y = x + [1, 2, 3]; r = relu(y); z = r * [2, 3, 4] + y, for any number of rows. y is needed twice, once
// behind every cut; y and z are outputs.
// `first`: instead of the 1.
inline std::string skip_model(float first = 1) {
  namespace ow = onnx_writer;
  return ow::model({{ow::node("Add", {"x", "w"}, {"y"}, "add"), ow::node("Relu", {"y"}, {"r"}, "relu"),
                     ow::node("Mul", {"r", "k"}, {"m"}, "mul"), ow::node("Add", {"m", "y"}, {"z"}, "skip")},
                    {ow::value("x", {-1, 3})},
                    {ow::value("y", {-1, 3}), ow::value("z", {-1, 3})},
                    {ow::float_tensor("w", {3}, {first, 2, 3}), ow::float_tensor("k", {3}, {2, 3, 4})}});
}
inline float z_of(float x, size_t i) {
  const float y = x + static_cast<float>(i + 1);
  return std::max(y, 0.F) * static_cast<float>(i + 2) + y;
}

// This machine's devices of one core.
inline std::vector<std::string> single_cores() {
  std::vector<std::string> singles;
  const auto cluster = discover_local();
  EXPECT_TRUE(cluster.ok());
  if (!cluster.ok()) return singles;
  for (const auto& d : (*cluster)->devices())
    if (d.cores.size() == 1) singles.push_back(d.name);
  return singles;
}

// Each class is fast in one block alone, so that every good plan has a pipeline of both. Without a model
// where the file cannot be read.
inline Fleet skip_fleet(const std::string& path, const std::vector<std::string>& front,
                        const std::vector<std::string>& back) {
  Fleet fleet;
  fleet.name = "here";
  const auto count = [](const std::vector<std::string>& names) { return static_cast<int64_t>(names.size()); };
  fleet.classes = {{.name = "front", .count = count(front), .nic_bytes_per_s = 1e9, .devices = front},
                   {.name = "back", .count = count(back), .nic_bytes_per_s = 1e9, .devices = back}};
  const auto model = Model::load(path, {.batch = 1});
  EXPECT_TRUE(model.ok()) << model.error().to_string();
  if (!model.ok()) return fleet;
  const auto& graph = *(*model)->graph();
  FleetModel net;
  net.name = "skip";
  net.blocks = 2;
  net.cut_bytes = {12, 24, 24};
  net.slo_us = 60e6;
  net.file.path = path;
  net.file.hash = (*model)->file_hash();
  for (size_t op = 0; op < graph.num_ops(); ++op)
    net.file.block_of.push_back(graph.topological_position(OpId(op)) >= 2 ? 1 : 0);
  const auto times = [](double first, double second) {
    return std::vector<std::vector<std::vector<double>>>{{{first, second}, {first, second}, {first, second}}};
  };
  net.latency_us = {times(500, 50'000), times(50'000, 500)};
  fleet.models = {net};
  return fleet;
}

}  // namespace heddle
