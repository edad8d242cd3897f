// Readers of placements.
#include <algorithm>
#include <cmath>
#include <map>

#include "heddle/base/errors.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/graph/op_named.h"
#include "heddle/session/placement.h"

namespace heddle {
namespace {

constexpr const char* kFormatNames[] = {"device-map", "openvino", "cuts", "llama.cpp", "vllm", "json"};
constexpr size_t kMostText = size_t{64} << 20;

// "/h/0/mlp" and "h.0.mlp" are one name.
std::string dotted(std::string name) {
  std::replace(name.begin(), name.end(), '/', '.');
  return name.starts_with('.') ? name.substr(1) : name;
}

Result<DeviceId> device_of(const Json& value, const std::string& place, const Cluster& cluster) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number < cluster.num_devices()) return DeviceId(number);
    return invalid_input(place + ": there is no device " + std::to_string(number) + "; the cluster has " +
                         counted(cluster.num_devices(), "device") + ", numbered from 0");
  }
  if (!value.is_string())
    return invalid_input(place + ": expected a device's name or number, not " +
                         std::string(value.type_name()));
  const auto name = value.get<std::string>();
  if (name == "disk")
    return unsupported(place + ": weights on disk are not part of plans; give the op to a device");
  if (const DeviceId id = cluster.find_device(name); id.valid()) return id;
  for (size_t d = 0; d < cluster.num_devices(); ++d) {
    const Device& device = cluster.device(DeviceId(d));
    if (name == "cpu" ? device.kind == DeviceKind::kCpu : device.backend_device == name) return DeviceId(d);
  }
  return with_context(device_named(cluster, name), place);
}

// The names of an op that entries may use.
std::vector<std::string> names_of(const Op& op) {
  std::vector<std::string> names = {op.name};
  names.insert(names.end(), op.onnx_names.begin(), op.onnx_names.end());
  return names;
}

Error not_covered(const Graph& graph, const std::vector<DeviceId>& device, const char* hint) {
  size_t missing = 0;
  OpId first;
  for (size_t i = device.size(); i-- > 0;) {
    if (device[i].valid()) continue;
    ++missing;
    first = OpId(i);
  }
  return invalid_input(counted(missing, "op") + " without a device, first " +
                       quote_text(graph.op(first).name) + hint);
}

// Entries by name, checked.
Result<std::map<std::string, DeviceId>> read_entries(const Json& json, const Graph& graph,
                                                     const Cluster& cluster, bool prefixes) {
  if (!json.is_object()) return invalid_input("expected an object of names and devices");
  std::map<std::string, bool> used;
  std::map<std::string, DeviceId> entries;
  for (const auto& [name, value] : json.items()) {
    HEDDLE_ASSIGN_OR_RETURN(const DeviceId device, device_of(value, quote_text(name), cluster));
    const std::string key = dotted(name);
    if (!entries.emplace(key, device).second)
      return invalid_input(quote_text(name) + ": this name was given twice");
    used[key] = key.empty() && prefixes;
  }
  for (const Op& op : graph.ops()) {
    for (const std::string& name : names_of(op)) {
      const std::string whole = dotted(name);
      if (const auto at = used.find(whole); at != used.end()) at->second = true;
      for (size_t i = 0; prefixes && i < whole.size(); ++i) {
        if (whole[i] != '.') continue;
        if (const auto at = used.find(whole.substr(0, i)); at != used.end()) at->second = true;
      }
    }
  }
  for (const auto& [key, is_used] : used) {
    if (is_used) continue;
    HEDDLE_RETURN_IF_ERROR(op_named(graph, key).ok() ? Status() : op_named(graph, key).error());
    return invalid_input(quote_text(key) + ": no op has this name");
  }
  return entries;
}

// The entry that covers the op by one of its names; the longest.
const DeviceId* covering(const Op& op, const std::map<std::string, DeviceId>& entries, bool prefixes) {
  const DeviceId* found = nullptr;
  size_t length = 0;
  const auto look = [&](const std::string& key) {
    const auto at = entries.find(key);
    if (at == entries.end() || (found != nullptr && key.size() <= length)) return;
    found = &at->second;
    length = key.size();
  };
  for (const std::string& name : names_of(op)) {
    const std::string whole = dotted(name);
    look(whole);
    for (size_t i = whole.size(); prefixes && i-- > 0;)
      if (whole[i] == '.') look(whole.substr(0, i));
  }
  if (prefixes) look("");
  return found;
}

Result<std::vector<DeviceId>> read_map(const Json& json, const Graph& graph, const Cluster& cluster,
                                       bool prefixes) {
  HEDDLE_ASSIGN_OR_RETURN(const auto entries, read_entries(json, graph, cluster, prefixes));
  std::vector<DeviceId> devices;
  for (const Op& op : graph.ops()) {
    const DeviceId* device = covering(op, entries, prefixes);
    devices.push_back(device != nullptr ? *device : DeviceId());
  }
  if (std::all_of(devices.begin(), devices.end(), [](DeviceId d) { return d.valid(); })) return devices;
  return not_covered(
      graph, devices,
      prefixes ? "; the entry \"\": DEVICE stands for all others" : "; every op needs an entry");
}

Result<std::vector<DeviceId>> read_cuts(const Json& json, const Graph& graph, const Cluster& cluster) {
  const auto list = [&](const char* name) -> Result<std::vector<Json>> {
    if (!json.contains(name) || !json[name].is_array())
      return invalid_input(std::string("expected a list \"") + name + "\"");
    return std::vector<Json>(json[name].begin(), json[name].end());
  };
  HEDDLE_ASSIGN_OR_RETURN(const auto cuts, list("cuts"));
  HEDDLE_ASSIGN_OR_RETURN(const auto names, list("devices"));
  if (names.size() != cuts.size() + 1)
    return invalid_input(counted(cuts.size(), "cut") + " need " + counted(cuts.size() + 1, "device") +
                         ", but there are " + std::to_string(names.size()));
  std::vector<size_t> piece(graph.num_ops(), 0);
  for (const Json& cut : cuts) {
    if (!cut.is_string()) return invalid_input("cuts: expected names of ops");
    HEDDLE_ASSIGN_OR_RETURN(const OpId op, op_named(graph, cut.get<std::string>()));
    std::vector<bool> after(graph.num_ops());
    for (const OpId next : graph.topological_order()) {
      for (const OpId before : graph.predecessors(next))
        if (before == op || after[before.index()]) after[next.index()] = true;
      piece[next.index()] += after[next.index()] ? 1 : 0;
    }
  }
  std::vector<DeviceId> chain;
  for (const Json& name : names) {
    HEDDLE_ASSIGN_OR_RETURN(const DeviceId device, device_of(name, "devices", cluster));
    chain.push_back(device);
  }
  std::vector<DeviceId> devices;
  for (const size_t p : piece) devices.push_back(chain[p]);
  return devices;
}

Result<std::vector<DeviceId>> read_segments(const Json& json, const Graph& graph, const Cluster& cluster) {
  if (!json.is_object() || !json.contains("segments") || !json["segments"].is_array())
    return invalid_input("expected a list \"segments\"");
  Json entries = Json::object();
  for (const Json& segment : json["segments"]) {
    if (!segment.is_object() || !segment.contains("device") || !segment.contains("ops") ||
        !segment["ops"].is_array())
      return invalid_input("segments: expected objects with \"device\" and a list \"ops\"");
    for (const Json& op : segment["ops"]) {
      if (!op.is_string()) return invalid_input("segments: ops: expected names");
      entries[op.get<std::string>()] = segment["device"];
    }
  }
  return read_map(entries, graph, cluster, false);
}

// "3,1", [3, 1] or {"tensor_split": [3, 1]}; empty if the text is nothing of these.
std::vector<double> numbers_of(const Json& json) {
  const Json* list = &json;
  for (const char* name : {"tensor_split", "layer_partition"})
    if (json.is_object() && json.contains(name)) list = &json[name];
  std::vector<double> numbers;
  if (!list->is_array()) return {};
  for (const Json& number : *list) {
    if (!number.is_number()) return {};
    numbers.push_back(number.get<double>());
  }
  return numbers;
}

Status check_numbers(const std::vector<double>& numbers, const Cluster& cluster) {
  if (numbers.empty()) return invalid_input("expected a number for each device, such as 3,1");
  if (numbers.size() > cluster.num_devices())
    return invalid_input(counted(numbers.size(), "number") + " for " +
                         counted(cluster.num_devices(), "device"));
  for (const double number : numbers)
    if (!(number >= 0 && number <= 1e9)) return invalid_input("expected numbers from 0 to 1e9");
  return {};
}

// llama.cpp: layer i of n + 1 (the output is the last) goes to the first device whose part of the shares, summed up,
// is above i / (n + 1).
Result<std::vector<DeviceId>> read_shares(const std::vector<double>& shares, const Graph& graph,
                                          const Cluster& cluster) {
  HEDDLE_RETURN_IF_ERROR(check_numbers(shares, cluster));
  HEDDLE_ASSIGN_OR_RETURN(const Layers layers, find_layers(graph));
  std::vector<float> sums;
  float sum = 0;
  for (const double share : shares) sums.push_back(sum += static_cast<float>(share));
  if (!(sum > 0)) return invalid_input("the shares are all 0");
  for (float& part : sums) part /= sum;
  std::vector<DeviceId> devices;
  for (const int layer : layers.of_op) {
    const float at = static_cast<float>(layer) / static_cast<float>(layers.count + 1);
    const auto found = std::upper_bound(sums.begin(), sums.end(), at);
    devices.emplace_back(static_cast<size_t>(std::min(found, sums.end() - 1) - sums.begin()));
  }
  return devices;
}

Result<std::vector<DeviceId>> read_partition(const std::vector<double>& counts, const Graph& graph,
                                             const Cluster& cluster) {
  HEDDLE_RETURN_IF_ERROR(check_numbers(counts, cluster));
  HEDDLE_ASSIGN_OR_RETURN(const Layers layers, find_layers(graph));
  std::vector<size_t> device_of_layer;
  for (size_t d = 0; d < counts.size(); ++d) {
    if (counts[d] != std::floor(counts[d]) || counts[d] > layers.count)
      return invalid_input("expected whole numbers of layers, at most " + std::to_string(layers.count));
    device_of_layer.insert(device_of_layer.end(), static_cast<size_t>(counts[d]), d);
  }
  if (static_cast<int>(device_of_layer.size()) != layers.count)
    return invalid_input("the numbers of layers add up to " + std::to_string(device_of_layer.size()) +
                         "; the model has " + counted(static_cast<uint64_t>(layers.count), "layer") + " (" +
                         quote_text(layers.prefix + "0") + " to " +
                         quote_text(layers.prefix + std::to_string(layers.count - 1)) + ")");
  std::vector<DeviceId> devices;
  for (const int layer : layers.of_op)
    devices.emplace_back(device_of_layer[static_cast<size_t>(std::min(layer, layers.count - 1))]);
  return devices;
}

Result<Json> json_of(const std::string& text) {
  if (text.size() > kMostText) return invalid_input("a placement of more than 64 MiB");
  const size_t first = text.find_first_not_of(" \t\r\n");
  // "3,1" as on a command line.
  if (first != std::string::npos && std::string_view("0123456789.").find(text[first]) != std::string::npos)
    return parse_json("[" + text + "]");
  return parse_json(text);
}

PlacementFormat guess(const Json& json, const std::vector<double>& numbers, const Graph& graph) {
  if (json.is_object() && json.contains("cuts")) return PlacementFormat::kCuts;
  if (json.is_object() && json.contains("segments")) return PlacementFormat::kJson;
  if (json.is_object() && json.contains("tensor_split")) return PlacementFormat::kLlamaCpp;
  if (json.is_object() && json.contains("layer_partition")) return PlacementFormat::kVllm;
  if (numbers.empty()) return PlacementFormat::kDeviceMap;
  double sum = 0;
  for (const double number : numbers) sum += number;
  const auto layers = find_layers(graph);
  return layers.ok() && sum == layers->count ? PlacementFormat::kVllm : PlacementFormat::kLlamaCpp;
}

}  // namespace

const char* placement_format_name(PlacementFormat format) {
  return kFormatNames[static_cast<size_t>(format)];
}

std::optional<PlacementFormat> placement_format_named(std::string_view name) {
  return enum_named<PlacementFormat>(kFormatNames, name);
}

std::vector<std::string> placement_format_names() {
  return {std::begin(kFormatNames), std::end(kFormatNames)};
}

Result<Placement> parse_placement(const std::string& text, std::optional<PlacementFormat> format,
                                  const Graph& graph, const Cluster& cluster) {
  HEDDLE_ASSIGN_OR_RETURN(const Json json, json_of(text));
  const auto numbers = numbers_of(json);
  Placement placement;
  placement.format = format.value_or(guess(json, numbers, graph));
  const auto read = [&]() -> Result<std::vector<DeviceId>> {
    switch (placement.format) {
      case PlacementFormat::kDeviceMap:
        return read_map(json, graph, cluster, true);
      case PlacementFormat::kOpenVino:
        return read_map(json, graph, cluster, false);
      case PlacementFormat::kCuts:
        return read_cuts(json, graph, cluster);
      case PlacementFormat::kLlamaCpp:
        return read_shares(numbers, graph, cluster);
      case PlacementFormat::kJson:
        return read_segments(json, graph, cluster);
      case PlacementFormat::kVllm:
        break;
    }
    return read_partition(numbers, graph, cluster);
  };
  HEDDLE_ASSIGN_OR_RETURN(placement.device, read());
  return placement;
}

}  // namespace heddle
