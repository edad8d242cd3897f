// Algorithm 1 of Moirai. The paper's fuse() and bind() are unite() here; is_rule() and is_sub_rule() are
// look-ups of the joined kinds; is_valid_conn() is only_reader(); unbind() is release().
#include "heddle/graph/gcof.h"

#include <unordered_map>
#include <unordered_set>

namespace heddle {
namespace {

// A sequence of kinds, each encoded as one 16-bit number.
using Word = std::u16string;

class Gcof {
 public:
  Gcof(const Graph& graph, const FusionRules& rules) : graph_(graph), rules_(rules) {
    std::unordered_map<std::string, char16_t> number;
    for (size_t r = 0; r < rules.rules.size(); ++r) {
      Word word;
      for (const auto& kind : rules.rules[r].kinds)
        word += number.try_emplace(kind, static_cast<char16_t>(number.size() + 1)).first->second;
      rule_.emplace(word, static_cast<int>(r));
      for (size_t i = 0; i < word.size(); ++i) {
        for (size_t n = 1; i + n <= word.size(); ++n) part_.insert(word.substr(i, n));
      }
    }
    for (size_t v = 0; v < graph.num_ops(); ++v) {
      const auto& type = graph.op(OpId(v)).type;
      const auto kind = rules.kind_of_type.find(type);
      const auto found = number.find(kind == rules.kind_of_type.end() ? type : kind->second);
      // Kind 0 means "in no rule": rule kinds are numbered from 1.
      nodes_.push_back({Word(1, found == number.end() ? char16_t{0} : found->second), static_cast<int>(v)});
      node_of_.push_back(static_cast<int>(v));
    }
    is_output_.assign(graph.num_ops(), false);
    for (const auto t : graph.outputs()) {
      if (graph.tensor(t).producer.valid()) is_output_[graph.tensor(t).producer.index()] = true;
    }
  }

  Fusion run() {
    std::vector<OpId> stack;
    std::vector<bool> seen(graph_.num_ops(), false);
    for (size_t v = graph_.num_ops(); v-- > 0;) {
      if (graph_.predecessors(OpId(v)).empty()) stack.emplace_back(v);
    }
    while (!stack.empty()) {
      const OpId v = stack.back();
      stack.pop_back();
      if (seen[v.index()]) continue;
      seen[v.index()] = true;
      const int node = grow(find(v.value));
      const OpId last(nodes_[static_cast<size_t>(node)].last);
      const auto next = graph_.successors(last);
      for (size_t i = next.size(); i-- > 0;) stack.push_back(next[i]);
    }
    return release();
  }

 private:
  struct Node {
    Word word;
    int last = 0;  // the op whose output is read outside the node
    int left = -1, right = -1;
    bool fused = false, bound = false;
    int into = -1;  // the node that it was united into
  };

  int find(int op) {
    int node = node_of_[static_cast<size_t>(op)];
    while (nodes_[static_cast<size_t>(node)].into >= 0) node = nodes_[static_cast<size_t>(node)].into;
    node_of_[static_cast<size_t>(op)] = node;
    return node;
  }

  // The only node that reads this one; -1 when there are several or none, or when its output is a model
  // output.
  int only_reader(int node) {
    const int last = nodes_[static_cast<size_t>(node)].last;
    if (is_output_[static_cast<size_t>(last)]) return -1;
    int reader = -1;
    for (const OpId s : graph_.successors(OpId(last))) {
      const int other = find(s.value);
      if (reader >= 0 && other != reader) return -1;
      reader = other;
    }
    return reader;
  }

  // Unites the node with its reader as long as their kinds in sequence are a rule or part of one.
  int grow(int node) {
    while (true) {
      const int reader = only_reader(node);
      if (reader < 0) return node;
      const Word word = nodes_[static_cast<size_t>(node)].word + nodes_[static_cast<size_t>(reader)].word;
      const bool whole = rule_.contains(word);
      if (!whole && !part_.contains(word)) return node;
      node = unite(node, reader, word, whole);
    }
  }

  int unite(int node, int reader, const Word& word, bool whole) {
    const int united = static_cast<int>(nodes_.size());
    nodes_[static_cast<size_t>(node)].into = nodes_[static_cast<size_t>(reader)].into = united;
    nodes_.push_back({word, nodes_[static_cast<size_t>(reader)].last, node, reader, whole, !whole, -1});
    return united;
  }

  // Splits nodes that match only a part of a rule into what they were made of; all other nodes become groups.
  Fusion release() {
    Fusion fusion;
    fusion.rule_uses.assign(rules_.rules.size(), 0);
    std::vector<int> root(graph_.num_ops(), -1);  // per op, the node that stays
    for (size_t i = nodes_.size(); i-- > 0;) {
      const Node& n = nodes_[i];
      if (n.into >= 0) continue;
      std::vector<int> loose{static_cast<int>(i)};
      while (!loose.empty()) {
        const int node = loose.back();
        loose.pop_back();
        const Node& part = nodes_[static_cast<size_t>(node)];
        if (part.bound) {
          loose.push_back(part.left);
          loose.push_back(part.right);
          continue;
        }
        if (part.fused) ++fusion.rule_uses[static_cast<size_t>(rule_.at(part.word))];
        std::vector<int> inside{node};
        while (!inside.empty()) {
          const int at = inside.back();
          inside.pop_back();
          const Node& x = nodes_[static_cast<size_t>(at)];
          if (x.left < 0) {
            root[static_cast<size_t>(at)] = node;
          } else {
            inside.push_back(x.left);
            inside.push_back(x.right);
          }
        }
      }
    }
    number(root, fusion);
    return fusion;
  }

  // Numbers groups by the topological positions of their last ops.
  void number(const std::vector<int>& root, Fusion& fusion) const {
    std::unordered_map<int, int> number;
    for (const OpId v : graph_.topological_order()) {
      const int node = root[v.index()];
      if (nodes_[static_cast<size_t>(node)].last == v.value)
        number.emplace(node, static_cast<int>(number.size()));
    }
    fusion.group.resize(graph_.num_ops());
    for (size_t v = 0; v < root.size(); ++v) fusion.group[v] = number.at(root[v]);
  }

  const Graph& graph_;
  const FusionRules& rules_;
  std::unordered_map<Word, int> rule_;
  std::unordered_set<Word> part_;
  std::vector<Node> nodes_;  // single ops first
  std::vector<int> node_of_;
  std::vector<bool> is_output_;
};

}  // namespace

Fusion fuse_ops(const Graph& graph, const FusionRules& rules) { return Gcof(graph, rules).run(); }

}  // namespace heddle
