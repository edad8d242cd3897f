// The repeated blocks of a model.
#include <algorithm>
#include <cctype>
#include <map>

#include "heddle/session/placement.h"

namespace heddle {
namespace {

constexpr int kMostLayers = 100000;

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_border(char c) { return c == '.' || c == '/' || c == '_' || c == '-'; }

// Calls with each number in the name that stands at a border's left, and with what is before it.
template <class Found>
void numbers_in(const std::string& name, const Found& found) {
  for (size_t end = 1; end <= name.size(); ++end) {
    if (!is_digit(name[end - 1]) || (end < name.size() && !is_border(name[end]))) continue;
    size_t begin = end;
    while (begin > 0 && is_digit(name[begin - 1])) --begin;
    if (end - begin > 5) continue;
    found(name.substr(0, begin), std::stoi(name.substr(begin, end - begin)));
  }
}

struct Family {
  std::map<int, std::vector<OpId>> layers;  // by number
  size_t ops = 0;
};

// The number of consecutive layers, from 0 or 1 on; 0 if some number is missing.
int consecutive(const Family& family) {
  const int first = family.layers.begin()->first, last = family.layers.rbegin()->first;
  const int count = last - first + 1;
  return first <= 1 && count == static_cast<int>(family.layers.size()) ? count : 0;
}

// Ops without a number belong to the latest layer before them, else to the earliest after them.
void fill(const Graph& graph, Layers& layers) {
  for (const OpId op : graph.topological_order()) {
    int& own = layers.of_op[op.index()];
    if (own >= 0) continue;
    for (const OpId before : graph.predecessors(op)) own = std::max(own, layers.of_op[before.index()]);
  }
  const auto order = graph.topological_order();
  for (size_t i = order.size(); i-- > 0;) {
    int& own = layers.of_op[order[i].index()];
    if (own >= 0) continue;
    int after = layers.count;
    for (const OpId next : graph.successors(order[i])) after = std::min(after, layers.of_op[next.index()]);
    own = after == layers.count ? 0 : after;
  }
}

// What only the last layer leads to, and has no number, is the output.
void mark_output(const Graph& graph, const std::vector<bool>& numbered, Layers& layers) {
  const auto order = graph.topological_order();
  std::vector<bool> output(graph.num_ops());
  for (size_t i = order.size(); i-- > 0;) {
    const OpId op = order[i];
    const auto next = graph.successors(op);
    output[op.index()] =
        !numbered[op.index()] && layers.of_op[op.index()] == layers.count - 1 &&
        std::all_of(next.begin(), next.end(), [&](OpId reader) { return output[reader.index()]; });
  }
  for (size_t i = 0; i < output.size(); ++i)
    if (output[i]) layers.of_op[i] = layers.count;
}

}  // namespace

Result<Layers> find_layers(const Graph& graph) {
  std::map<std::string, Family> families;
  for (size_t i = 0; i < graph.num_ops(); ++i) {
    const Op& op = graph.op(OpId(i));
    const std::string& name = op.onnx_names.empty() ? op.name : op.onnx_names.front();
    numbers_in(name, [&](const std::string& prefix, int number) {
      auto& ops = families[prefix].layers[number];
      if (!ops.empty() && ops.back() == OpId(i)) return;
      ops.emplace_back(i);
      ++families[prefix].ops;
    });
  }
  const std::pair<const std::string, Family>* best = nullptr;
  for (const auto& family : families) {
    const int count = consecutive(family.second);
    // A layer has several ops: numbered ops alone are only named so.
    if (count < 2 || count > kMostLayers || family.second.ops < 2 * static_cast<size_t>(count)) continue;
    if (best == nullptr || family.second.ops > best->second.ops) best = &family;
  }
  if (best == nullptr)
    return unsupported(
        "the model has no layers in a row: no ops are named by consecutive numbers such as \"layer0.x\" and "
        "\"layer1.x\"; use a device map");
  Layers layers{consecutive(best->second), std::vector<int>(graph.num_ops(), -1), best->first};
  std::vector<bool> numbered(graph.num_ops());
  const int first = best->second.layers.begin()->first;
  for (const auto& [number, ops] : best->second.layers) {
    for (const OpId op : ops) {
      layers.of_op[op.index()] = number - first;
      numbered[op.index()] = true;
    }
  }
  fill(graph, layers);
  mark_output(graph, numbered, layers);
  return layers;
}

}  // namespace heddle
