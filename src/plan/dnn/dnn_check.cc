// Feasibility of splits from the workload alone: nothing here is shared with the evaluator.
#include <map>
#include <set>
#include <vector>

#include "heddle/plan/dnn_split.h"

namespace heddle {
namespace {

Error no(const DnnWorkload& w, const std::string& message) {
  return Error(Code::kVerificationFailed, w.name + ": " + message);
}

std::string node_text(const DnnWorkload& w, size_t v) { return "node " + std::to_string(w.nodes[v].id); }

using Groups = std::map<int64_t, std::set<int64_t>>;  // successors of each group

// Removes groups without predecessors until none is left; what stays is on or behind a cycle.
bool acyclic(const Groups& successors) {
  std::map<int64_t, int64_t> entering;
  for (const auto& [group, next] : successors) {
    entering[group];
    for (const auto other : next) ++entering[other];
  }
  std::vector<int64_t> free;
  for (const auto& [group, count] : entering)
    if (count == 0) free.push_back(group);
  size_t removed = 0;
  while (!free.empty()) {
    const auto group = free.back();
    free.pop_back();
    ++removed;
    const auto found = successors.find(group);
    if (found == successors.end()) continue;
    for (const auto other : found->second)
      if (--entering[other] == 0) free.push_back(other);
  }
  return removed == entering.size();
}

Status check_devices(const DnnWorkload& w, const DnnSplit& split, int32_t devices) {
  std::vector<double> bytes(static_cast<size_t>(w.accelerators), 0);
  for (size_t v = 0; v < w.nodes.size(); ++v) {
    const auto d = split.device[v];
    if (d < 0 || d >= devices)
      return no(w, node_text(w, v) + " is on device " + std::to_string(d) + ", of 0.." +
                       std::to_string(devices - 1));
    if (d >= w.accelerators) continue;
    if (!w.nodes[v].on_accelerator) return no(w, node_text(w, v) + " cannot run on an accelerator");
    bytes[static_cast<size_t>(d)] += w.nodes[v].bytes;
  }
  for (size_t d = 0; d < bytes.size(); ++d)
    // The sizes are sums of decimal fractions: a part in 10^12 is rounding, not memory.
    if (bytes[d] > w.accelerator_bytes * (1 + 1e-12))
      return no(w, "accelerator " + std::to_string(d) + " holds " + std::to_string(bytes[d]) +
                       " bytes, at most " + std::to_string(w.accelerator_bytes));
  return {};
}

Status check_colours(const DnnWorkload& w, const DnnSplit& split) {
  std::map<int32_t, size_t> first;
  for (size_t v = 0; v < w.nodes.size(); ++v) {
    if (w.nodes[v].colour < 0) continue;
    const auto u = first.emplace(w.nodes[v].colour, v).first->second;
    if (split.device[u] != split.device[v])
      return no(w, node_text(w, v) + " and " + node_text(w, u) + " have one colour but devices " +
                       std::to_string(split.device[v]) + " and " + std::to_string(split.device[u]));
  }
  return {};
}

Status check_order_of_devices(const DnnWorkload& w, const DnnSplit& split) {
  std::set<int32_t> forward_colours;
  for (const auto& node : w.nodes)
    if (!node.backward && node.colour >= 0) forward_colours.insert(node.colour);
  const auto orphan = [&](size_t v) {
    return w.nodes[v].backward && !forward_colours.contains(w.nodes[v].colour);
  };
  Groups devices;
  for (const auto& [source, target] : w.edges) {
    const auto u = static_cast<size_t>(source), v = static_cast<size_t>(target);
    if (split.device[u] == split.device[v]) continue;
    if (!w.nodes[u].backward && !w.nodes[v].backward) devices[split.device[u]].insert(split.device[v]);
    if (w.nodes[u].backward && w.nodes[v].backward && (orphan(u) || orphan(v)))
      devices[split.device[v]].insert(split.device[u]);
  }
  if (acyclic(devices)) return {};
  return no(w, "not contiguous: the devices' forward nodes cannot be ordered");
}

Status check_pieces(const DnnWorkload& w, const DnnSplit& split, int pieces) {
  // Pieces by accelerator and place; CPU nodes are groups of their own, below 0.
  Groups groups;
  const auto group_of = [&](size_t v) {
    if (split.device[v] >= w.accelerators) return -1 - static_cast<int64_t>(v);
    const int64_t piece = split.piece.empty() ? 0 : split.piece[v];
    return split.device[v] * int64_t{pieces} + piece;
  };
  for (size_t v = 0; v < w.nodes.size(); ++v) {
    if (split.device[v] >= w.accelerators || split.piece.empty()) continue;
    if (split.piece[v] < 0 || split.piece[v] >= pieces)
      return no(w, node_text(w, v) + " is in piece " + std::to_string(split.piece[v]) +
                       " of its accelerator, which may have " + std::to_string(pieces));
  }
  for (const auto& [u, v] : w.edges) {
    const auto a = group_of(static_cast<size_t>(u)), b = group_of(static_cast<size_t>(v));
    if (a != b) groups[a].insert(b);
  }
  for (int64_t d = 0; d < w.accelerators; ++d)
    for (int64_t p = 1; p < pieces; ++p) groups[d * pieces + p - 1].insert(d * pieces + p);
  if (acyclic(groups)) return {};
  return no(w, "the graph of pieces is not acyclic: some pieces wait for each other");
}

}  // namespace

Status check_dnn_split(const DnnWorkload& w, const DnnSplit& split, const DnnRules& rules) {
  if (split.device.size() != w.nodes.size() || (!split.piece.empty() && split.piece.size() != w.nodes.size()))
    return no(w, "the split places " + std::to_string(split.device.size()) + " nodes, the workload has " +
                     std::to_string(w.nodes.size()));
  const bool latency = rules.objective == DnnObjective::kLatency;
  HEDDLE_RETURN_IF_ERROR(check_devices(w, split, latency ? w.accelerators + 1 : w.accelerators + w.cpus));
  HEDDLE_RETURN_IF_ERROR(check_colours(w, split));
  if (latency) return check_pieces(w, split, rules.pieces);
  return rules.contiguous ? check_order_of_devices(w, split) : Status();
}

}  // namespace heddle
