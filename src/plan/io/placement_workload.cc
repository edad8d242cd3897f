// Reading placement workloads.
#include "heddle/plan/placement_workload.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "heddle/base/fields.h"
#include "whole_bytes.h"

namespace heddle {
namespace {

constexpr size_t kMostPlacementNodes = 1'000'000, kMostPlacementEdges = 10'000'000;
constexpr int64_t kMostPlacementDevices = 256;
constexpr int kMostPieces = 1000;
constexpr double kMostAmount = 1e15;  // sums of a million of them are still exact enough to compare

// The files write flags as true, false, 0 or 1.
Result<bool> flag_at(const JsonCursor& at) {
  if (at.value().is_boolean()) return at.value().get<bool>();
  HEDDLE_ASSIGN_OR_RETURN(const auto number, at.as_int(0, 1));
  return number == 1;
}

Status check_options(const PlacementOptions& o) {
  const bool latency = o.objective == Objective::kLatency;
  if (!latency && o.objective != Objective::kThroughput)
    return invalid_input(std::string("placement workloads have the objectives latency and throughput, not ") +
                         objective_name(o.objective));
  if (latency && o.contiguous)
    return invalid_input("contiguity is for the objective throughput; one piece is its like for latency");
  if (!latency && o.pieces != 1) return invalid_input("pieces are for the objective latency");
  if (o.pieces < 1 || o.pieces > kMostPieces)
    return invalid_input("there are " + std::to_string(o.pieces) + " pieces, expected 1 to " +
                         std::to_string(kMostPieces));
  return {};
}

class PlacementReader {
 public:
  PlacementReader(const Json& json, std::string name, const PlacementOptions& options)
      : root_(json), name_(std::move(name)), options_(options) {}

  Result<Problem> run() {
    HEDDLE_RETURN_IF_ERROR(check_options(options_));
    Fields f(root_);
    f.required("maxFPGAs", accelerators_, 0, kMostPlacementDevices)
        .required("maxCPUs", cpus_, 0, kMostPlacementDevices)
        .required("maxSizePerFPGA", memory_, 0, kMostAmount)
        .then([this] {
          return accelerators_ + cpus_ > 0
                     ? Status()
                     : root_.error("maxFPGAs and maxCPUs are both 0; a workload needs at least one device");
        })
        .required("nodes",
                  [this](const JsonCursor& at) -> Status {
                    HEDDLE_RETURN_IF_ERROR(each([this](const JsonCursor& node) { return read_node(node); },
                                                kMostPlacementNodes)(at));
                    return nodes_.empty() ? at.error("there is no node; expected at least one") : Status();
                  })
        .required("edges", [this](const JsonCursor& at) { return read_edges(at); })
        .ignored({"name", "comment"});
    HEDDLE_RETURN_IF_ERROR(f.finish());
    return make_problem();
  }

 private:
  struct Node {
    int64_t id = 0;
    std::string type;
    double cpu = 0, accelerator = 0, size = 0;
    bool on_accelerator = true;
    std::vector<int32_t> in;
    std::optional<double> cost;  // to move its output between an accelerator and host memory
    bool is_read = false;
  };

  std::string id_text(int32_t v) const { return std::to_string(nodes_[static_cast<size_t>(v)].id); }

  Status read_node(const JsonCursor& at) {
    Node node;
    node.type = "Node";
    bool backward = false;
    int32_t colour = -1;
    Fields f(at);
    f.required(
         "id",
         [&](const JsonCursor& id) -> Status {
           HEDDLE_ASSIGN_OR_RETURN(node.id, id.as_int());
           if (index_.emplace(node.id, static_cast<int32_t>(nodes_.size())).second) return {};
           return id.error("a second node has the id " + std::to_string(node.id) + "; ids must be unique");
         })
        .required("cpuLatency", node.cpu, 0, kMostAmount)
        .required("fpgaLatency", node.accelerator, 0, kMostAmount)
        .required("size", node.size, 0, kMostAmount)
        .optional("supportedOnFpga", node.on_accelerator, flag_at)
        .optional("isBackwardNode", backward, flag_at)
        .optional("name", node.type)
        .optional("colorClass",
                  [&](const JsonCursor& number_at) -> Status {
                    HEDDLE_ASSIGN_OR_RETURN(const auto number, number_at.as_int());
                    colour = colours_.emplace(number, static_cast<int32_t>(colours_.size())).first->second;
                    return {};
                  })
        .ignored({"layerId"});
    HEDDLE_RETURN_IF_ERROR(f.finish());
    rules_.colour.push_back(colour);
    rules_.backward.push_back(backward ? 1 : 0);
    nodes_.push_back(std::move(node));
    return {};
  }

  Result<int32_t> node_at(const JsonCursor& at) {
    HEDDLE_ASSIGN_OR_RETURN(const auto id, at.as_int());
    const auto found = index_.find(id);
    if (found == index_.end())
      return at.error("no node has the id " + std::to_string(id) + "; expected one of \"nodes\"");
    return found->second;
  }

  Status read_edges(const JsonCursor& edges_at) {
    std::vector<std::pair<int32_t, int32_t>> edges;
    const auto end = [this](const JsonCursor& at) { return node_at(at); };
    const auto read_edge = [&](const JsonCursor& at) -> Status {
      auto& [source, target] = edges.emplace_back();
      double cost = 0;
      Fields f(at);
      f.required("sourceId", source, end)
          .required("destId", target, end)
          .required("cost", cost, 0, kMostAmount)
          .ignored({"size"});
      HEDDLE_RETURN_IF_ERROR(f.finish());
      if (source == target) return at.error("the edge leads from node " + id_text(source) + " to itself");
      auto& known = nodes_[static_cast<size_t>(source)].cost;
      if (known && *known != cost)
        return at.error("costs " + std::to_string(cost) + ", but another edge out of node " +
                        id_text(source) + " costs " + std::to_string(*known) +
                        "; a node's output is moved once, so all its out-edges must give the same cost");
      known = cost;
      return {};
    };
    HEDDLE_RETURN_IF_ERROR(each(read_edge, kMostPlacementEdges)(edges_at));
    std::sort(edges.begin(), edges.end());
    const auto twice = std::adjacent_find(edges.begin(), edges.end());
    if (twice != edges.end())
      return edges_at.error("the edge from node " + id_text(twice->first) + " to node " +
                            id_text(twice->second) + " is given twice; expected each pair once");
    for (const auto& [source, target] : edges) {
      nodes_[static_cast<size_t>(target)].in.push_back(source);
      nodes_[static_cast<size_t>(source)].is_read = true;
    }
    return {};
  }

  Result<Problem> make_problem() {
    std::vector<double> sizes;
    for (const Node& node : nodes_) sizes.push_back(node.size);
    const double limits[] = {memory_};
    auto bytes = WholeBytes::make(sizes, limits);
    if (!bytes.ok()) return root_.error(bytes.error().message());
    const bool latency = options_.objective == Objective::kLatency;
    Problem problem;
    problem.objective = options_.objective;
    HEDDLE_ASSIGN_OR_RETURN(problem.graph, build_graph(*bytes));
    HEDDLE_ASSIGN_OR_RETURN(problem.cluster, build_cluster(*bytes, latency ? 1 : cpus_));
    auto costs = std::make_shared<CostTable>(nodes_.size(), problem.cluster->num_devices());
    auto times = std::make_shared<TransferTimes>();
    for (size_t v = 0; v < nodes_.size(); ++v) {
      const Node& node = nodes_[v];
      for (size_t d = 0; d < problem.cluster->num_devices(); ++d) {
        const bool is_cpu = static_cast<int>(d) >= accelerators_;
        Cost cost{.us = (is_cpu ? node.cpu : node.accelerator) * kPlacementUnitUs, .origin = Origin::kGiven};
        if (!is_cpu && !node.on_accelerator) cost.us = kImpossible;
        costs->set(OpId(v), DeviceId(d), cost);
      }
      times->us.push_back(node.cost.value_or(0) * kPlacementUnitUs);
    }
    problem.costs = std::move(costs);
    problem.transfers = std::move(times);
    problem.execution.transfers = Transfers::kWithinRuns;
    problem.execution.unlimited_cpus = latency;
    rules_.contiguous = options_.contiguous;
    rules_.most_segments = latency ? options_.pieces : 0;
    problem.rules = std::make_shared<const PlacementRules>(std::move(rules_));
    HEDDLE_RETURN_IF_ERROR(validate(problem));
    return problem;
  }

  Result<std::shared_ptr<const Graph>> build_graph(const WholeBytes& bytes) {
    GraphBuilder builder(name_);
    for (size_t v = 0; v < nodes_.size(); ++v) {
      const Node& node = nodes_[v];
      Op op;
      op.name = std::to_string(node.id);
      op.type = node.type;
      if (node.size > 0) op.params = {builder.add_param({op.name + ".memory", bytes.size(node.size)})};
      const std::string output = op.name + ".out";
      const OpId id = builder.add_op(std::move(op), {{.name = output, .dtype = DType::kU8, .shape = {0}}});
      if (!node.is_read) builder.add_output(builder.outputs_of(id).front());
    }
    for (size_t v = 0; v < nodes_.size(); ++v) {
      std::vector<TensorId> inputs;
      for (const int32_t u : nodes_[v].in) inputs.push_back(builder.outputs_of(OpId(u)).front());
      builder.set_inputs(OpId(v), std::move(inputs));
    }
    auto graph = builder.build();
    if (!graph.ok()) return root_.at("edges")->error(graph.error().message());
    return graph;
  }

  Result<std::shared_ptr<const Cluster>> build_cluster(const WholeBytes& bytes, int cpus) {
    const auto text = [](int count, const char* what) {
      return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
    };
    const bool latency = options_.objective == Objective::kLatency;
    ClusterBuilder builder(text(accelerators_, "accelerator") + ", " +
                           (latency ? "CPUs" : text(cpus, "CPU")));
    const HostId host = builder.add_host({.name = "host"});
    for (int d = 0; d < accelerators_ + cpus; ++d) {
      Device device;
      const bool is_cpu = d >= accelerators_;
      device.kind = is_cpu ? DeviceKind::kCpu : DeviceKind::kNpu;
      device.device_class = is_cpu ? "cpu" : "accelerator";
      device.name = device.device_class + std::to_string(is_cpu ? d - accelerators_ : d);
      if (is_cpu && latency) device.name = "cpus";
      device.host = host;
      if (!is_cpu) device.memory_bytes = bytes.limit(memory_);
      builder.add_device(std::move(device));
    }
    return builder.build();
  }

  JsonCursor root_;
  std::string name_;
  PlacementOptions options_;
  int accelerators_ = 0, cpus_ = 0;
  double memory_ = 0;  // of each accelerator
  std::vector<Node> nodes_;
  PlacementRules rules_;
  std::map<int64_t, int32_t> index_, colours_;
};

}  // namespace

bool is_placement_workload(const Json& json) {
  return json.is_object() && json.contains("maxFPGAs") && json.contains("maxCPUs") &&
         json.contains("nodes") && json.contains("edges");
}

Result<Problem> placement_workload_from_json(const Json& json, const std::string& name,
                                             const PlacementOptions& options) {
  return PlacementReader(json, name, options).run();
}

Result<Problem> read_placement_workload(const std::string& path, const PlacementOptions& options) {
  return read_json_file(path, [&](const Json& json) {
    return placement_workload_from_json(json, std::filesystem::path(path).stem().string(), options);
  });
}

}  // namespace heddle
