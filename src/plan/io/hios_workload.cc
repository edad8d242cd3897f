#include "heddle/plan/hios_workload.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/json.h"
#include "heddle/cluster/cluster_yaml.h"

namespace heddle {
namespace {

constexpr size_t kMaxNodes = 1'000'000, kMaxEdges = 10'000'000;
constexpr double kMaxMs = 1e9;  // about eleven days
constexpr double kUsPerMs = 1000;
// Preset hios-sim moves one byte per nanosecond.
constexpr double kBytesPerMs = 1e6;
// Streams per device in HIOS's released simulation.
constexpr int kStageWidth = 2;

struct Arc {
  int32_t src = 0, dst = 0;
  int64_t bytes = 0;
};

class Reader {
 public:
  Reader(const Json& json, const HiosWorkloadOptions& options) : root_(json), options_(options) {}

  Result<Problem> run() {
    HEDDLE_RETURN_IF_ERROR(
        root_.check_keys({"name", "ops", "layers", "deps", "p", "nodes", "edges", "comment"}));
    HEDDLE_ASSIGN_OR_RETURN(const auto name, root_.string_or("name", "hios"));
    HEDDLE_ASSIGN_OR_RETURN(const auto nodes_at, root_.at("nodes"));
    HEDDLE_ASSIGN_OR_RETURN(const auto nodes, nodes_at.elements(kMaxNodes));
    if (nodes.empty()) return nodes_at.error("there is no node; expected at least one");
    for (const auto& node : nodes) HEDDLE_RETURN_IF_ERROR(read_node(node));
    HEDDLE_ASSIGN_OR_RETURN(const auto edges_at, root_.at("edges"));
    HEDDLE_ASSIGN_OR_RETURN(const auto edges, edges_at.elements(kMaxEdges));
    for (const auto& edge : edges) HEDDLE_RETURN_IF_ERROR(read_edge(edge));
    HEDDLE_RETURN_IF_ERROR(check_count("ops", ops_.size()));
    HEDDLE_RETURN_IF_ERROR(check_count("deps", arcs_.size()));
    std::stable_sort(arcs_.begin(), arcs_.end(), [](const Arc& a, const Arc& b) {
      return a.src != b.src ? a.src < b.src : a.dst < b.dst;
    });
    for (size_t i = 1; i < arcs_.size(); ++i) {
      if (arcs_[i].src == arcs_[i - 1].src && arcs_[i].dst == arcs_[i - 1].dst)
        return edges_at.error("the edge from node " + std::to_string(arcs_[i].src) + " to node " +
                              std::to_string(arcs_[i].dst) + " is given twice; expected each pair once");
    }
    Problem problem;
    HEDDLE_ASSIGN_OR_RETURN(problem.graph, build(name));
    HEDDLE_ASSIGN_OR_RETURN(problem.cluster,
                            load_cluster("preset:hios-sim-" + std::to_string(options_.devices)));
    CostTable costs(ops_.size(), problem.cluster->num_devices());
    for (size_t v = 0; v < ops_.size(); ++v) {
      for (size_t d = 0; d < problem.cluster->num_devices(); ++d)
        costs.set(OpId(v), DeviceId(d), {.us = us_[v], .origin = Origin::kGiven});
    }
    problem.costs = std::make_shared<const CostTable>(std::move(costs));
    problem.execution.link_contention = problem.execution.engine_contention = false;
    set_hios_stages(problem);
    HEDDLE_RETURN_IF_ERROR(validate(problem));
    return problem;
  }

 private:
  Status check_count(std::string_view key, size_t found) const {
    if (!root_.has(key)) return {};
    HEDDLE_ASSIGN_OR_RETURN(const auto at, root_.at(key));
    HEDDLE_ASSIGN_OR_RETURN(const auto count, at.as_int());
    if (count == static_cast<int64_t>(found)) return {};
    return at.error("is " + std::to_string(count) + ", but there are " + std::to_string(found));
  }

  Status read_node(const JsonCursor& at) {
    HEDDLE_RETURN_IF_ERROR(at.check_keys({"id", "layer", "time_ms", "gpu_utilization", "name"}));
    HEDDLE_ASSIGN_OR_RETURN(const auto id_at, at.at("id"));
    HEDDLE_ASSIGN_OR_RETURN(const auto id, id_at.as_int());
    if (id != static_cast<int64_t>(ops_.size()))
      return id_at.error("is " + std::to_string(id) + ", expected " + std::to_string(ops_.size()) +
                         ": nodes are numbered from 0 in their order");
    Op op;
    HEDDLE_ASSIGN_OR_RETURN(op.name, at.string_or("name", "op" + std::to_string(id)));
    op.type = "Layered";
    HEDDLE_ASSIGN_OR_RETURN(const auto time_at, at.at("time_ms"));
    HEDDLE_ASSIGN_OR_RETURN(const auto ms, time_at.as_number(0, kMaxMs));
    us_.push_back(ms * kUsPerMs);
    op.given_times.push_back({"*", us_.back()});
    HEDDLE_ASSIGN_OR_RETURN(op.utilization, at.number_or("gpu_utilization", 1, 1e-9, 1));
    ops_.push_back(std::move(op));
    return {};
  }

  Status read_edge(const JsonCursor& at) {
    HEDDLE_RETURN_IF_ERROR(at.check_keys({"src", "dst", "transfer_ms", "transfer_ms_code"}));
    const auto last = static_cast<int64_t>(ops_.size()) - 1;
    HEDDLE_ASSIGN_OR_RETURN(const auto src_at, at.at("src"));
    HEDDLE_ASSIGN_OR_RETURN(const auto src, src_at.as_int(0, last));
    HEDDLE_ASSIGN_OR_RETURN(const auto dst_at, at.at("dst"));
    HEDDLE_ASSIGN_OR_RETURN(const auto dst, dst_at.as_int(0, last));
    if (src == dst) return at.error("the edge leads from node " + std::to_string(src) + " to itself");
    HEDDLE_ASSIGN_OR_RETURN(const auto ms_at,
                            at.at(options_.transfer_by_reader ? "transfer_ms_code" : "transfer_ms"));
    HEDDLE_ASSIGN_OR_RETURN(const auto ms, ms_at.as_number(0, kMaxMs));
    arcs_.push_back({static_cast<int32_t>(src), static_cast<int32_t>(dst), std::llround(ms * kBytesPerMs)});
    return {};
  }

  Result<std::shared_ptr<const Graph>> build(const std::string& name) const {
    GraphBuilder builder(name);
    std::vector<std::vector<TensorId>> inputs(ops_.size());
    std::vector<int64_t> read_bytes(ops_.size(), 0);
    for (const Arc& arc : arcs_) read_bytes[static_cast<size_t>(arc.dst)] += arc.bytes;
    for (size_t v = 0, begin = 0, end = 0; v < ops_.size(); ++v, begin = end) {
      while (end < arcs_.size() && static_cast<size_t>(arcs_[end].src) == v) ++end;
      const bool one_tensor = std::all_of(arcs_.begin() + static_cast<std::ptrdiff_t>(begin),
                                          arcs_.begin() + static_cast<std::ptrdiff_t>(end),
                                          [&](const Arc& a) { return a.bytes == arcs_[begin].bytes; });
      Op op = ops_[v];
      op.bytes_accessed = read_bytes[v];
      std::vector<Tensor> outputs;
      for (size_t e = begin; e < (one_tensor ? std::min(begin + 1, end) : end); ++e) {
        Tensor tensor;
        tensor.name = op.name + (one_tensor ? ".out" : ".to." + ops_[static_cast<size_t>(arcs_[e].dst)].name);
        tensor.dtype = DType::kU8;
        tensor.shape = {arcs_[e].bytes};
        op.bytes_accessed += arcs_[e].bytes;
        outputs.push_back(std::move(tensor));
      }
      const bool sink = begin == end;
      if (sink) {
        Tensor result;
        result.name = op.name + ".out";
        result.dtype = DType::kU8;
        result.shape = {0};
        outputs.push_back(std::move(result));
      }
      const OpId id = builder.add_op(std::move(op), std::move(outputs));
      const auto made = builder.outputs_of(id);
      if (sink) builder.add_output(made.front());
      for (size_t e = begin; e < end; ++e)
        inputs[static_cast<size_t>(arcs_[e].dst)].push_back(made[one_tensor ? 0 : e - begin]);
    }
    for (size_t v = 0; v < ops_.size(); ++v) builder.set_inputs(OpId(v), std::move(inputs[v]));
    auto graph = builder.build();
    if (!graph.ok()) return std::move(graph).error().with_context("$");
    return graph;
  }

  JsonCursor root_;
  const HiosWorkloadOptions options_;
  std::vector<Op> ops_;
  std::vector<double> us_;
  std::vector<Arc> arcs_;
};

bool first_has(const Json& json, const char* list, const char* key) {
  const auto found = json.find(list);
  return found != json.end() && found->is_array() && !found->empty() && found->front().is_object() &&
         found->front().contains(key);
}

}  // namespace

bool is_hios_workload(const Json& json) {
  if (!json.is_object() || !json.contains("edges") || !first_has(json, "nodes", "time_ms")) return false;
  return !first_has(json, "nodes", "macs") &&
         (json["edges"].empty() || first_has(json, "edges", "transfer_ms"));
}

Result<Problem> hios_workload_from_json(const Json& json, const HiosWorkloadOptions& options) {
  if (options.devices < 1 || options.devices > kMaxHiosDevices) {
    return Error(Code::kInvalidInput, "there are " + std::to_string(options.devices) +
                                          " devices, expected 1 to " + std::to_string(kMaxHiosDevices));
  }
  return Reader(json, options).run();
}

Result<Problem> read_hios_workload(const std::string& path, const HiosWorkloadOptions& options) {
  auto json = read_json_file(path);
  if (!json.ok()) return std::move(json).error();
  auto problem = hios_workload_from_json(*json, options);
  if (!problem.ok()) return std::move(problem).error().with_context(path);
  return problem;
}

void set_hios_stages(Problem& problem) {
  auto costs = std::make_shared<CostTable>(*problem.costs);
  for (size_t d = 0; d < costs->num_devices(); ++d) {
    costs->set_stage_model(DeviceId(d), kSimulatedStages);
    for (size_t v = 0; v < costs->num_ops(); ++v)
      costs->set_utilization(OpId(v), DeviceId(d), problem.graph->op(OpId(v)).utilization);
  }
  problem.costs = std::move(costs);
  problem.execution.stage_width = kStageWidth;
}

}  // namespace heddle
