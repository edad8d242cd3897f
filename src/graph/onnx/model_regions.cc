// Groups nodes that exchange values which cannot cross from one segment to another.
//
// With an edge back along each such value, the nodes that must stay together are the strongly connected components:
// a component contains every path between its nodes, so it is convex, and no smaller group would do.
#include <algorithm>

#include "model_impl.h"

namespace heddle::internal {
namespace {

// Tarjan's algorithm without recursion. Components come in reverse topological order.
class Components {
 public:
  explicit Components(const std::vector<std::vector<size_t>>& next)
      : next_(next), number_(next.size(), kNew), low_(next.size(), 0), open_(next.size(), false) {
    for (size_t v = 0; v < next.size(); ++v)
      if (number_[v] == kNew) visit(v);
  }
  std::vector<std::vector<size_t>> found;

 private:
  static constexpr size_t kNew = SIZE_MAX;
  struct Frame {
    size_t node, edge;
  };

  void enter(size_t v) {
    number_[v] = low_[v] = count_++;
    open_[v] = true;
    stack_.push_back(v);
    frames_.push_back({v, 0});
  }

  void visit(size_t root) {
    enter(root);
    while (!frames_.empty()) {
      const size_t v = frames_.back().node;
      if (frames_.back().edge < next_[v].size()) {
        const size_t w = next_[v][frames_.back().edge++];
        if (number_[w] == kNew)
          enter(w);
        else if (open_[w])
          low_[v] = std::min(low_[v], number_[w]);
        continue;
      }
      frames_.pop_back();
      if (!frames_.empty()) low_[frames_.back().node] = std::min(low_[frames_.back().node], low_[v]);
      if (low_[v] == number_[v]) close(v);
    }
  }

  void close(size_t root) {
    auto& members = found.emplace_back();
    size_t v = 0;
    do {
      v = stack_.back();
      stack_.pop_back();
      open_[v] = false;
      members.push_back(v);
    } while (v != root);
  }

  const std::vector<std::vector<size_t>>& next_;
  std::vector<size_t> number_, low_;
  std::vector<bool> open_;
  std::vector<size_t> stack_;
  std::vector<Frame> frames_;
  size_t count_ = 0;
};

}  // namespace

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
  Components components(next);
  for (auto it = components.found.rbegin(); it != components.found.rend(); ++it) {
    std::sort(it->begin(), it->end());
    auto& group = groups.emplace_back();
    for (const size_t i : *it) group.push_back(ops[i]);
  }
  return groups;
}

}  // namespace heddle::internal
