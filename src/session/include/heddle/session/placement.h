// Placements as other tools write them: which device each op is on, and nothing about order or time.
#pragma once

#include <string>
#include <vector>

#include "heddle/base/ids.h"
#include "heddle/base/json_fwd.h"
#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/graph/graph.h"
#include "heddle/plan/plan_file.h"

namespace heddle {

enum class PlacementFormat {
  // {"NAME": DEVICE, ...}: accelerate's device_map. A name stands for an op or ONNX node, or for all whose names begin
  // with it and a "." or "/"; the longest one counts, and "" stands for all. "." and "/" are the same. A device is a
  // name, a number (in the cluster's order) or "cpu".
  kDeviceMap,
  // The same with exact names only, those of OpenVINO's nodes: its affinities. Devices may have OpenVINO's names.
  kOpenVino,
  // {"cuts": [NAME, ...], "devices": [DEVICE, ...]}: the first device has what is up to the first op named, and so on.
  kCuts,
  // "3,1" or {"tensor_split": [3, 1]}: llama.cpp's shares of the layers for each device, in the cluster's order. The
  // output counts as a layer.
  kLlamaCpp,
  // "8,12" or {"layer_partition": [8, 12]}: vLLM's numbers of layers for each device, in the cluster's order.
  kVllm,
  // {"segments": [{"device": DEVICE, "ops": [NAME, ...]}, ...]}, with predicted times when it is written. For scripts.
  kJson,
};
const char* placement_format_name(
    PlacementFormat format);  // "device-map", "openvino", "cuts", "llama.cpp", "vllm", "json"
std::optional<PlacementFormat> placement_format_named(std::string_view name);
std::vector<std::string> placement_format_names();  // all

struct Placement {
  PlacementFormat format = PlacementFormat::kDeviceMap;
  std::vector<DeviceId> device;  // per op of the graph
};

// The placement of a model's finest graph that the text means. Without a format it is found out: a list of numbers is
// llama.cpp's if its sum is not the number of layers, else vLLM's. Untrusted input: an error names the place, the
// nearest name of an unknown one, and an op that no entry covers. O(ops x entries).
Result<Placement> parse_placement(const std::string& text, std::optional<PlacementFormat> format,
                                  const Graph& graph, const Cluster& cluster);

// The repeated blocks of a model, by the numbers in its ops' names ("layer3.attend", "/h.3/mlp/fc"). Ops before the
// first count to it, ops after the last have the number `count`. Unsupported if there are none, with what was looked
// for. O(ops + edges).
struct Layers {
  int count = 0;
  std::vector<int> of_op;  // 0 .. count
  std::string prefix;      // "layer": the name before the number
};
Result<Layers> find_layers(const Graph& graph);

// The plan's placement as the text of a format, with a newline at its end. Unsupported, with the reason, if the format
// cannot say it: several lanes, stages, parts of one node on several devices, devices that have one name in OpenVINO,
// layers that are not in a row. `graph` is the model's finest graph, of which the plan's units are made, or the
// problem's own.
Result<std::string> placement_text(const PlanFile& file, const Graph& graph, PlacementFormat format);

}  // namespace heddle
