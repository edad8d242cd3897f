// Groups nodes that exchange values which cannot cross from one segment to another.
//
// With an edge back along each such value, the nodes that must stay together are the strongly connected components:
// a component contains every path between its nodes, so it is convex, and no smaller group would do.
#include "core/strong_components.h"
#include "model_impl.h"

namespace heddle::internal {

std::vector<NodeGroup> group_nodes(const std::vector<std::shared_ptr<ov::Node>>& ops,
                                   const std::function<bool(const ov::Output<ov::Node>&)>& inner) {
  std::unordered_map<const ov::Node*, size_t> place;
  for (size_t i = 0; i < ops.size(); ++i) place.emplace(ops[i].get(), i);
  std::vector<std::vector<size_t>> next(ops.size());
  bool any = false;
  for (size_t i = 0; i < ops.size(); ++i) {
    for (const auto& value : ops[i]->input_values()) {
      const auto maker = place.find(value.get_node());
      if (maker == place.end()) continue;
      next[maker->second].push_back(i);
      if (!inner(value)) continue;
      next[i].push_back(maker->second);
      any = true;
    }
  }
  std::vector<NodeGroup> groups;
  if (!any) {
    for (const auto& node : ops) groups.push_back({node});
    return groups;
  }
  const StrongComponents components(next);
  for (auto it = components.found.rbegin(); it != components.found.rend(); ++it) {
    auto& group = groups.emplace_back();
    for (const size_t i : *it) group.push_back(ops[i]);
  }
  return groups;
}

}  // namespace heddle::internal
