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
  Gcof(const Graph& graph, const FusionRules& rules) : graph_(graph) {
    std::unordered_map<std::string, char16_t> number;
    for (const auto& rule : rules.rules) {
      Word word;
      for (const auto& kind : rule.kinds)
        word += number.try_emplace(kind, static_cast<char16_t>(number.size() + 1)).first->second;
      rule_.insert(word);
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

  std::vector<int> run() {
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
    int last = 0;       // the op whose output is read outside the node
    bool part = false;  // of a rule; it was united, but never became a whole one
    int into = -1;      // the node that it was united into
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
    nodes_.push_back({word, nodes_[static_cast<size_t>(reader)].last, !whole});
    return united;
  }

  // Splits nodes that match only a part of a rule into the nodes that they were united from; all other nodes
  // become groups, numbered by the topological positions of their last ops.
  std::vector<int> release() {
    std::vector<int> root(nodes_.size());  // the node that stays; -1: split
    for (size_t i = nodes_.size(); i-- > 0;) {
      const Node& n = nodes_[i];
      const bool stands_alone = n.into < 0 || root[static_cast<size_t>(n.into)] < 0;
      root[i] = !stands_alone ? root[static_cast<size_t>(n.into)] : n.part ? -1 : static_cast<int>(i);
    }
    std::unordered_map<int, int> number;
    for (const OpId v : graph_.topological_order()) {
      const int node = root[v.index()];
      if (nodes_[static_cast<size_t>(node)].last == v.value)
        number.emplace(node, static_cast<int>(number.size()));
    }
    std::vector<int> group;
    for (size_t v = 0; v < graph_.num_ops(); ++v) group.push_back(number.at(root[v]));
    return group;
  }

  const Graph& graph_;
  std::unordered_set<Word> rule_, part_;
  std::vector<Node> nodes_;  // single ops first
  std::vector<int> node_of_;
  std::vector<bool> is_output_;
};

}  // namespace

std::vector<int> fuse_ops(const Graph& graph, const FusionRules& rules) { return Gcof(graph, rules).run(); }

}  // namespace heddle
