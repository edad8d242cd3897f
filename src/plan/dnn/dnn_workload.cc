#include "heddle/plan/dnn_workload.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <queue>

namespace heddle {
namespace {

constexpr size_t kMaxNodes = 1'000'000, kMaxEdges = 10'000'000;
constexpr int64_t kMaxDevices = 4096;
constexpr double kMaxNumber = 1e15;  // sums of a million of them are still exact enough to compare

// The files write flags as true, false, 0 or 1.
Result<bool> read_flag(const JsonCursor& node, std::string_view key, bool fallback) {
  if (!node.has(key)) return fallback;
  HEDDLE_ASSIGN_OR_RETURN(const auto at, node.at(key));
  if (at.value().is_boolean()) return at.value().get<bool>();
  HEDDLE_ASSIGN_OR_RETURN(const auto number, at.as_int(0, 1));
  return number == 1;
}

Result<double> read_amount(const JsonCursor& node, std::string_view key) {
  HEDDLE_ASSIGN_OR_RETURN(const auto at, node.at(key));
  return at.as_number(0, kMaxNumber);
}

class Reader {
 public:
  Reader(const Json& json, std::string name) : root_(json) { workload_.name = std::move(name); }

  Result<DnnWorkload> run() {
    HEDDLE_RETURN_IF_ERROR(
        root_.check_keys({"maxFPGAs", "maxCPUs", "maxSizePerFPGA", "nodes", "edges", "name", "comment"}));
    HEDDLE_ASSIGN_OR_RETURN(workload_.accelerators, read_count("maxFPGAs"));
    HEDDLE_ASSIGN_OR_RETURN(workload_.cpus, read_count("maxCPUs"));
    HEDDLE_ASSIGN_OR_RETURN(workload_.accelerator_bytes, read_amount(root_, "maxSizePerFPGA"));
    if (workload_.accelerators + workload_.cpus == 0)
      return root_.error("maxFPGAs and maxCPUs are both 0; a workload needs at least one device");
    HEDDLE_ASSIGN_OR_RETURN(const auto nodes_at, root_.at("nodes"));
    HEDDLE_ASSIGN_OR_RETURN(const auto nodes, nodes_at.elements(kMaxNodes));
    if (nodes.empty()) return nodes_at.error("there is no node; expected at least one");
    for (const auto& node : nodes) HEDDLE_RETURN_IF_ERROR(read_node(node));
    HEDDLE_ASSIGN_OR_RETURN(const auto edges_at, root_.at("edges"));
    HEDDLE_ASSIGN_OR_RETURN(const auto edges, edges_at.elements(kMaxEdges));
    cost_of_.resize(workload_.nodes.size());
    for (const auto& edge : edges) HEDDLE_RETURN_IF_ERROR(read_edge(edge));
    std::sort(workload_.edges.begin(), workload_.edges.end());
    const auto twice = std::adjacent_find(workload_.edges.begin(), workload_.edges.end());
    if (twice != workload_.edges.end())
      return edges_at.error("the edge from node " + id_text(twice->first) + " to node " +
                            id_text(twice->second) + " is given twice; expected each pair once");
    for (size_t v = 0; v < cost_of_.size(); ++v) workload_.nodes[v].cost = cost_of_[v].value_or(0);
    HEDDLE_RETURN_IF_ERROR(complete_dnn_workload(workload_));
    return std::move(workload_);
  }

 private:
  std::string id_text(int32_t v) const { return std::to_string(workload_.nodes[static_cast<size_t>(v)].id); }

  Result<int> read_count(std::string_view key) {
    HEDDLE_ASSIGN_OR_RETURN(const auto at, root_.at(key));
    HEDDLE_ASSIGN_OR_RETURN(const auto count, at.as_int(0, kMaxDevices));
    return static_cast<int>(count);
  }

  Status read_node(const JsonCursor& at) {
    HEDDLE_RETURN_IF_ERROR(at.check_keys({"id", "supportedOnFpga", "cpuLatency", "fpgaLatency",
                                          "isBackwardNode", "colorClass", "size", "name", "layerId"}));
    DnnNode node;
    HEDDLE_ASSIGN_OR_RETURN(const auto id, at.at("id"));
    HEDDLE_ASSIGN_OR_RETURN(node.id, id.as_int());
    HEDDLE_ASSIGN_OR_RETURN(node.cpu, read_amount(at, "cpuLatency"));
    HEDDLE_ASSIGN_OR_RETURN(node.accelerator, read_amount(at, "fpgaLatency"));
    HEDDLE_ASSIGN_OR_RETURN(node.bytes, read_amount(at, "size"));
    HEDDLE_ASSIGN_OR_RETURN(node.on_accelerator, read_flag(at, "supportedOnFpga", true));
    HEDDLE_ASSIGN_OR_RETURN(node.backward, read_flag(at, "isBackwardNode", false));
    HEDDLE_ASSIGN_OR_RETURN(node.name, at.string_or("name", ""));
    if (at.has("colorClass")) {
      HEDDLE_ASSIGN_OR_RETURN(const auto colour_at, at.at("colorClass"));
      HEDDLE_ASSIGN_OR_RETURN(const auto colour, colour_at.as_int());
      const auto [entry, fresh] = colours_.emplace(colour, workload_.colours);
      if (fresh) ++workload_.colours;
      node.colour = entry->second;
    }
    if (!index_.emplace(node.id, static_cast<int32_t>(workload_.nodes.size())).second)
      return id.error("a second node has the id " + std::to_string(node.id) + "; ids must be unique");
    workload_.nodes.push_back(std::move(node));
    return {};
  }

  Result<int32_t> read_end(const JsonCursor& edge, std::string_view key) {
    HEDDLE_ASSIGN_OR_RETURN(const auto at, edge.at(key));
    HEDDLE_ASSIGN_OR_RETURN(const auto id, at.as_int());
    const auto found = index_.find(id);
    if (found == index_.end())
      return at.error("no node has the id " + std::to_string(id) + "; expected one of \"nodes\"");
    return found->second;
  }

  Status read_edge(const JsonCursor& at) {
    HEDDLE_RETURN_IF_ERROR(at.check_keys({"sourceId", "destId", "cost", "size"}));
    HEDDLE_ASSIGN_OR_RETURN(const auto source, read_end(at, "sourceId"));
    HEDDLE_ASSIGN_OR_RETURN(const auto target, read_end(at, "destId"));
    if (source == target) return at.error("the edge leads from node " + id_text(source) + " to itself");
    HEDDLE_ASSIGN_OR_RETURN(const auto cost, read_amount(at, "cost"));
    auto& known = cost_of_[static_cast<size_t>(source)];
    if (known && *known != cost)
      return at.error("costs " + std::to_string(cost) + ", but another edge out of node " + id_text(source) +
                      " costs " + std::to_string(*known) +
                      "; a node's output is moved once, so all its out-edges must give the same cost");
    known = cost;
    workload_.edges.emplace_back(source, target);
    return {};
  }

  JsonCursor root_;
  DnnWorkload workload_;
  std::map<int64_t, int32_t> index_, colours_;
  std::vector<std::optional<double>> cost_of_;
};

}  // namespace

bool is_dnn_workload(const Json& json) {
  return json.is_object() && json.contains("maxFPGAs") && json.contains("maxCPUs") &&
         json.contains("nodes") && json.contains("edges");
}

Status complete_dnn_workload(DnnWorkload& workload) {
  const size_t n = workload.nodes.size();
  workload.out.assign(n, {});
  workload.in.assign(n, {});
  workload.order.clear();
  std::vector<int32_t> waiting(n, 0);
  for (const auto& [u, v] : workload.edges) {
    workload.out[static_cast<size_t>(u)].push_back(v);
    workload.in[static_cast<size_t>(v)].push_back(u);
    ++waiting[static_cast<size_t>(v)];
  }
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
  for (size_t v = 0; v < n; ++v)
    if (waiting[v] == 0) ready.push(static_cast<int32_t>(v));
  while (!ready.empty()) {
    const auto v = ready.top();
    ready.pop();
    workload.order.push_back(v);
    for (const auto w : workload.out[static_cast<size_t>(v)])
      if (--waiting[static_cast<size_t>(w)] == 0) ready.push(w);
  }
  if (workload.order.size() == n) return {};
  // Backwards along nodes that still wait: after n steps the walk is on a cycle.
  int32_t at = 0;
  for (size_t v = 0; v < n; ++v)
    if (waiting[v] > 0) at = static_cast<int32_t>(v);
  for (size_t step = 0; step < n; ++step) {
    for (const auto u : workload.in[static_cast<size_t>(at)]) {
      if (waiting[static_cast<size_t>(u)] > 0) {
        at = u;
        break;
      }
    }
  }
  return Error(Code::kInvalidInput, "$.edges: node " +
                                        std::to_string(workload.nodes[static_cast<size_t>(at)].id) +
                                        " is on a cycle; expected a graph without one");
}

Result<DnnWorkload> dnn_workload_from_json(const Json& json, std::string name) {
  return Reader(json, std::move(name)).run();
}

Result<DnnWorkload> read_dnn_workload(const std::string& path) {
  auto json = read_json_file(path);
  if (!json.ok()) return std::move(json).error();
  auto workload = dnn_workload_from_json(*json, std::filesystem::path(path).stem().string());
  if (!workload.ok()) return std::move(workload).error().with_context(path);
  return workload;
}

}  // namespace heddle
