#include "heddle/plan/hios_workload.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/fields.h"
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
  explicit Reader(const HiosWorkloadOptions& options) : options_(options) {}

  Result<Problem> run(const JsonCursor& root) {
    Fields f(root);
    std::string name = "hios";
    f.optional("name", name)
        .required("nodes", each([this](const JsonCursor& at) { return read_node(at); }, kMaxNodes))
        .required("edges", each([this](const JsonCursor& at) { return read_edge(at); }, kMaxEdges))
        .optional("ops", [this](const JsonCursor& at) { return check_count(at, ops_.size()); })
        .optional("deps", [this](const JsonCursor& at) { return check_count(at, arcs_.size()); })
        .then([&] { return sort_arcs(root); })
        .ignored({"layers", "p", "comment"});
    HEDDLE_RETURN_IF_ERROR(f.finish());
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
  static Status check_count(const JsonCursor& at, size_t found) {
    HEDDLE_ASSIGN_OR_RETURN(const auto count, at.as_int());
    if (count == static_cast<int64_t>(found)) return {};
    return at.error("is " + std::to_string(count) + ", but there are " + std::to_string(found));
  }

  Status read_node(const JsonCursor& at) {
    const auto number = std::to_string(ops_.size());
    Op op;
    op.name = "op" + number;
    op.type = "Layered";
    double ms = 0;
    Fields f(at);
    f.required("id",
               [&](const JsonCursor& id_at) -> Status {
                 HEDDLE_ASSIGN_OR_RETURN(const auto id, id_at.as_int());
                 if (id == static_cast<int64_t>(ops_.size())) return {};
                 return id_at.error("is " + std::to_string(id) + ", expected " + number +
                                    ": nodes are numbered from 0 in their order");
               })
        .optional("name", op.name)
        .required("time_ms", ms, 0, kMaxMs)
        .optional("gpu_utilization", op.utilization, 1e-9, 1)
        .ignored({"layer"});
    HEDDLE_RETURN_IF_ERROR(f.finish());
    us_.push_back(ms * kUsPerMs);
    op.given_times.push_back({"*", us_.back()});
    ops_.push_back(std::move(op));
    return {};
  }

  Status read_edge(const JsonCursor& at) {
    const auto last = static_cast<int64_t>(ops_.size()) - 1;
    Arc arc;
    double ms = 0;
    Fields f(at);
    f.required("src", arc.src, 0, last)
        .required("dst", arc.dst, 0, last)
        .required(options_.transfer_by_reader ? "transfer_ms_code" : "transfer_ms", ms, 0, kMaxMs)
        .ignored({"transfer_ms", "transfer_ms_code"});
    HEDDLE_RETURN_IF_ERROR(f.finish());
    if (arc.src == arc.dst)
      return at.error("the edge leads from node " + std::to_string(arc.src) + " to itself");
    arc.bytes = std::llround(ms * kBytesPerMs);
    arcs_.push_back(arc);
    return {};
  }

  Status sort_arcs(const JsonCursor& root) {
    if (ops_.empty()) return root.at("nodes")->error("there is no node; expected at least one");
    const auto ends = [](const Arc& arc) { return std::pair(arc.src, arc.dst); };
    std::ranges::stable_sort(arcs_, {}, ends);
    const auto twice = std::ranges::adjacent_find(arcs_, {}, ends);
    if (twice == arcs_.end()) return {};
    return root.at("edges")->error("the edge from node " + std::to_string(twice->src) + " to node " +
                                   std::to_string(twice->dst) + " is given twice; expected each pair once");
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

  const HiosWorkloadOptions options_;
  std::vector<Op> ops_;
  std::vector<double> us_;
  std::vector<Arc> arcs_;
};

}  // namespace

bool is_hios_workload(const Json& json) {
  return first_has(json, "nodes", "time_ms") && !first_has(json, "nodes", "macs") && json.contains("edges") &&
         (json["edges"].empty() || first_has(json, "edges", "transfer_ms"));
}

Result<Problem> hios_workload_from_json(const Json& json, const HiosWorkloadOptions& options) {
  if (options.devices < 1 || options.devices > kMaxHiosDevices) {
    return invalid_input("there are " + std::to_string(options.devices) + " devices, expected 1 to " +
                         std::to_string(kMaxHiosDevices));
  }
  return Reader(options).run(JsonCursor(json));
}

Result<Problem> read_hios_workload(const std::string& path, const HiosWorkloadOptions& options) {
  return read_json_file(path, [&](const Json& json) { return hios_workload_from_json(json, options); });
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
