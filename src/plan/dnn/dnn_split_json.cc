// Splits in the result form of the workloads' authors.
#include <map>

#include "heddle/plan/dnn_split.h"

namespace heddle {
namespace {

constexpr size_t kMostSplitDevices = 8192;
constexpr size_t kMostSplitNodes = 1'000'000;

}  // namespace

Result<DnnSplit> dnn_split_from_json(const DnnWorkload& w, const Json& json) {
  const JsonCursor root(json);
  std::map<int64_t, size_t> index;
  for (size_t v = 0; v < w.nodes.size(); ++v) index[w.nodes[v].id] = v;
  DnnSplit split;
  split.device.assign(w.nodes.size(), -1);
  const auto read = [&](std::string_view key, int32_t first, int count) -> Status {
    HEDDLE_ASSIGN_OR_RETURN(const auto list, root.at(key));
    HEDDLE_ASSIGN_OR_RETURN(const auto devices, list.elements(kMostSplitDevices));
    if (devices.size() > static_cast<size_t>(count))
      return list.error("there are " + std::to_string(devices.size()) + ", but the workload has " +
                        std::to_string(count));
    for (size_t d = 0; d < devices.size(); ++d) {
      HEDDLE_ASSIGN_OR_RETURN(const auto nodes_at, devices[d].at("nodes"));
      HEDDLE_ASSIGN_OR_RETURN(const auto nodes, nodes_at.elements(kMostSplitNodes));
      for (const auto& node : nodes) {
        HEDDLE_ASSIGN_OR_RETURN(const auto id, node.as_int());
        const auto found = index.find(id);
        if (found == index.end())
          return node.error("the workload has no node with the id " + std::to_string(id));
        auto& device = split.device[found->second];
        if (device >= 0) return node.error("node " + std::to_string(id) + " is named a second time");
        device = first + static_cast<int32_t>(d);
      }
    }
    return {};
  };
  HEDDLE_RETURN_IF_ERROR(read("fpgas", 0, w.accelerators));
  HEDDLE_RETURN_IF_ERROR(read("cpus", w.accelerators, std::max(w.cpus, 1)));
  std::map<int32_t, int32_t> of_colour;
  for (size_t v = 0; v < w.nodes.size(); ++v)
    if (split.device[v] >= 0 && w.nodes[v].colour >= 0) of_colour[w.nodes[v].colour] = split.device[v];
  for (size_t v = 0; v < w.nodes.size(); ++v) {
    if (split.device[v] >= 0) continue;
    const auto found = of_colour.find(w.nodes[v].colour);
    if (w.nodes[v].colour < 0 || found == of_colour.end())
      return root.error("node " + std::to_string(w.nodes[v].id) + " is on no device");
    split.device[v] = found->second;
  }
  return split;
}

}  // namespace heddle
