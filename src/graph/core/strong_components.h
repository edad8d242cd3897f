// Strongly connected components of a directed graph.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle::internal {

// Components come in reverse topological order, the members of each ascending. Tarjan, 1972, without recursion.
// O(V + E).
class StrongComponents {
 public:
  explicit StrongComponents(const std::vector<std::vector<size_t>>& next)
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
    std::sort(members.begin(), members.end());
  }

  const std::vector<std::vector<size_t>>& next_;
  std::vector<size_t> number_, low_;
  std::vector<bool> open_;
  std::vector<size_t> stack_;
  std::vector<Frame> frames_;
  size_t count_ = 0;
};

}  // namespace heddle::internal
