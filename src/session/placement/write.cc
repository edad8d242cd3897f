// Plans as placements of other tools.
#include <algorithm>
#include <map>

#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/runtime/profiler.h"
#include "heddle/session/placement.h"

namespace heddle {
namespace {

// The device of each op of `graph`.
Result<std::vector<DeviceId>> devices_of(const PlanFile& file, const Graph& graph) {
  const Graph& units = *file.problem.graph;
  if (file.plan.lane_shares.size() > 1)
    return unsupported(
        "the plan has several lanes: its ops run on several devices, which a placement cannot say");
  const bool own = &graph == &units;
  std::vector<DeviceId> devices(graph.num_ops());
  for (const Segment& segment : file.plan.segments) {
    if (segment.stage >= 0 && file.problem.execution.stage_width > 1)
      return unsupported("the plan has stages, which a placement cannot say");
    for (const OpId op : own ? segment.ops : finest_ops(units, segment.ops)) {
      if (op.index() >= devices.size())
        return invalid_input("the plan was made for another version of the model; plan it again");
      devices[op.index()] = segment.device;
    }
  }
  for (size_t i = 0; i < devices.size(); ++i)
    if (!devices[i].valid())
      return invalid_input("the plan has no op " + quote_text(graph.op(OpId(i)).name) +
                           " of the model; plan it again");
  return devices;
}

// What users call the parts of the op: ONNX nodes, else the op itself.
std::vector<std::string> node_names(const Op& op) {
  return op.onnx_names.empty() ? std::vector<std::string>{op.name} : op.onnx_names;
}

// `name` gives the text for a device, `names` those for an op.
template <class Name, class Names>
Result<std::string> map_text(const Graph& graph, const std::vector<DeviceId>& devices, const Name& name,
                             const Names& names) {
  std::map<std::string, std::pair<std::string, OpId>> entries;
  for (size_t i = 0; i < devices.size(); ++i) {
    const Op& op = graph.op(OpId(i));
    HEDDLE_ASSIGN_OR_RETURN(const std::string device, name(devices[i]));
    for (const std::string& one : names(op)) {
      const auto [at, is_new] = entries.try_emplace(one, device, OpId(i));
      if (!is_new && at->second.first != device)
        return unsupported("node " + quote_text(one) + " has parts on " + at->second.first + " and on " +
                           device + ", which this format cannot say");
    }
  }
  Json json = Json::object();
  for (const auto& [one, entry] : entries) json[one] = entry.first;
  return json.dump(1) + "\n";
}

Result<std::string> openvino_text(const PlanFile& file, const Graph& graph,
                                  const std::vector<DeviceId>& devices) {
  const Cluster& cluster = *file.problem.cluster;
  std::map<std::string, DeviceId> known;
  return map_text(
      graph, devices,
      [&](DeviceId id) -> Result<std::string> {
        const Device& device = cluster.device(id);
        if (device.backend != "openvino" || device.backend_device.empty())
          return unsupported("device " + device.name + " is not OpenVINO's");
        const auto [at, is_new] = known.try_emplace(device.backend_device, id);
        if (!is_new && at->second != id)
          return unsupported("devices " + cluster.device(at->second).name + " and " + device.name +
                             " are both '" + device.backend_device + "' for OpenVINO");
        return device.backend_device;
      },
      [](const Op& op) { return std::vector<std::string>{op.name}; });
}

// Numbers of layers by device; the output counts as one if `with_output`.
Result<std::vector<int>> layer_counts(const PlanFile& file, const Graph& graph,
                                      const std::vector<DeviceId>& devices, bool with_output) {
  HEDDLE_ASSIGN_OR_RETURN(const Layers layers, find_layers(graph));
  const Cluster& cluster = *file.problem.cluster;
  std::vector<DeviceId> of_layer(static_cast<size_t>(layers.count) + 1);
  for (size_t i = 0; i < devices.size(); ++i) {
    auto layer = static_cast<size_t>(layers.of_op[i]);
    if (!with_output) layer = std::min(layer, of_layer.size() - 2);
    if (!of_layer[layer].valid()) of_layer[layer] = devices[i];
    if (of_layer[layer] != devices[i])
      return unsupported("layer " + std::to_string(layer) + " is on " + cluster.device(of_layer[layer]).name +
                         " and on " + cluster.device(devices[i]).name +
                         "; this format gives whole layers to devices");
  }
  if (!of_layer.back().valid()) of_layer.back() = of_layer[of_layer.size() - 2];
  if (!with_output) of_layer.pop_back();
  std::vector<int> counts;
  DeviceId last(0);
  for (const DeviceId device : of_layer) {
    if (device.index() < last.index())
      return unsupported("a layer on " + cluster.device(device).name + " comes after one on " +
                         cluster.device(last).name + "; this format goes through the devices in their order");
    last = device;
    counts.resize(device.index() + 1);
    ++counts[device.index()];
  }
  return counts;
}

std::string counts_text(const std::vector<int>& counts) {
  std::string text;
  for (const int count : counts) text += (text.empty() ? "" : ",") + std::to_string(count);
  return text + "\n";
}

Result<std::string> segments_text(const PlanFile& file, const Graph& graph) {
  const Graph& units = *file.problem.graph;
  Json list = Json::array();
  for (size_t s = 0; s < file.plan.steps.size(); ++s) {
    const Step& step = file.plan.steps[s];
    if (step.kind != StepKind::kRun) continue;
    const Segment& segment = file.plan.segments[step.segment.index()];
    Json ops = Json::array();
    for (const OpId op : &graph == &units ? segment.ops : finest_ops(units, segment.ops))
      ops.push_back(graph.op(op).name);
    list.push_back({{"device", file.problem.cluster->device(segment.device).name},
                    {"ops", ops},
                    {"start_us", file.predicted.start_us[s]},
                    {"finish_us", file.predicted.finish_us[s]}});
  }
  return Json{{"segments", list}}.dump(1) + "\n";
}

// Of the ops after which all that follows is on another device.
Result<std::string> cuts_text(const PlanFile& file, const Graph& graph,
                              const std::vector<DeviceId>& devices) {
  const Cluster& cluster = *file.problem.cluster;
  Json cuts = Json::array(), chain = Json::array();
  std::optional<DeviceId> now;
  OpId before;
  for (const OpId op : graph.topological_order()) {
    const DeviceId device = devices[op.index()];
    if (now && *now != device) cuts.push_back(graph.op(before).name);
    if (!now || *now != device) chain.push_back(cluster.device(device).name);
    now = device;
    before = op;
  }
  const std::string text = Json{{"cuts", cuts}, {"devices", chain}}.dump(1) + "\n";
  const auto again = parse_placement(text, PlacementFormat::kCuts, graph, cluster);
  if (again.ok() && again->device == devices) return text;
  return unsupported("the plan is no chain of pieces: its ops cannot be separated by cuts after single ops");
}

}  // namespace

Result<std::string> placement_text(const PlanFile& file, const Graph& graph, PlacementFormat format) {
  HEDDLE_ASSIGN_OR_RETURN(const auto devices, devices_of(file, graph));
  switch (format) {
    case PlacementFormat::kDeviceMap:
      return map_text(
          graph, devices,
          [&](DeviceId id) -> Result<std::string> { return file.problem.cluster->device(id).name; },
          node_names);
    case PlacementFormat::kOpenVino:
      return openvino_text(file, graph, devices);
    case PlacementFormat::kCuts:
      return cuts_text(file, graph, devices);
    case PlacementFormat::kLlamaCpp: {
      HEDDLE_ASSIGN_OR_RETURN(const auto counts, layer_counts(file, graph, devices, true));
      return counts_text(counts);
    }
    case PlacementFormat::kJson:
      return segments_text(file, graph);
    case PlacementFormat::kVllm:
      break;
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto counts, layer_counts(file, graph, devices, false));
  return counts_text(counts);
}

}  // namespace heddle
