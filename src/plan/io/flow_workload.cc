// Reading Moirai's public workloads.
#include "heddle/plan/flow_workload.h"

#include <set>
#include <unordered_map>

#include "heddle/base/decimals.h"
#include "problem_json.h"
#include "whole_bytes.h"

namespace heddle {
namespace {

constexpr double kMostFlowTime = 1099511627776.0;  // 2^40
constexpr size_t kMostFlowDevices = 1024, kMostFlowOps = 1'000'000;
constexpr double kMostFlowMemory = 1e18;

double us_per_unit(const std::string& unit) {
  if (unit.starts_with("ms")) return 1e3;
  return unit.starts_with('s') ? 1e6 : 1;
}

class FlowReader {
 public:
  Result<FlowWorkloadFile> run(const JsonCursor& root) {
    Fields f(root);
    std::string name;
    f.required("name", name)
        .optional("units",
                  [this](const JsonCursor& at) -> Status {
                    HEDDLE_ASSIGN_OR_RETURN(file_.time_unit, at.string_or("time", ""));
                    return {};
                  })
        .required("devices",
                  [this](const JsonCursor& at) -> Status {
                    HEDDLE_RETURN_IF_ERROR(
                        each([this](const JsonCursor& d) { return read_device(d); }, kMostFlowDevices)(at));
                    return num_devices() == 0 ? at.error("no devices; expected at least one") : Status();
                  })
        .required("ops", each([this](const JsonCursor& at) { return read_op(at); }, kMostFlowOps))
        .required("edges", each([this](const JsonCursor& at) { return read_edge(at); }))
        .ignored({"source"});
    HEDDLE_RETURN_IF_ERROR(f.finish());
    file_.us_per_unit = us_per_unit(file_.time_unit);
    if (!decimal_scale(all_times_, kMostDecimals))
      return root.error("a time has more than nine decimals; round it");
    auto bytes = WholeBytes::make(op_memory_, device_memory_);
    if (!bytes.ok()) return root.error("memory: " + bytes.error().message());
    Problem& problem = file_.problem;
    auto graph = build_graph(name, *bytes);
    if (!graph.ok()) return root.error(graph.error().message());
    problem.graph = *graph;
    HEDDLE_ASSIGN_OR_RETURN(problem.cluster, build_cluster(name, *bytes));
    set_costs();
    set_transfers();
    HEDDLE_RETURN_IF_ERROR(validate(problem));
    return std::move(file_);
  }

 private:
  struct FlowEdge {
    uint32_t from = 0, to = 0;
    bool is_order_only = false;
    std::vector<double> times;  // [device of from * devices + device of to]
  };

  size_t num_devices() const { return device_memory_.size(); }

  Status read_device(const JsonCursor& at) {
    Fields f(at);
    f.required("id", [this](const JsonCursor& id) -> Status {
       HEDDLE_ASSIGN_OR_RETURN(const auto number, id.as_int(0, INT32_MAX));
       if (static_cast<size_t>(number) == num_devices()) return {};
       return id.error("device ids must be 0, 1, 2, ... in this order; expected " +
                       std::to_string(num_devices()));
     }).required("memory", [this](const JsonCursor& memory) {
      return take(memory, device_memory_.emplace_back(), 0, kMostFlowMemory);
    });
    return f.finish();
  }

  Status read_op(const JsonCursor& at) {
    Fields f(at);
    f.required("id",
               [this](const JsonCursor& id) -> Status {
                 HEDDLE_ASSIGN_OR_RETURN(const auto number, id.as_int(0, INT64_MAX));
                 if (!index_.emplace(number, static_cast<uint32_t>(op_names_.size())).second)
                   return id.error("op " + std::to_string(number) + " is there twice");
                 op_names_.push_back(std::to_string(number));
                 return {};
               })
        .required("memory", op_memory_.emplace_back(), 0, kMostFlowMemory)
        .required("time", [this](const JsonCursor& times) -> Status {
          HEDDLE_ASSIGN_OR_RETURN(const auto row, times.as_numbers(0, kMostFlowTime));
          if (row.size() != num_devices())
            return times.error(std::to_string(row.size()) + " times; expected one for each of the " +
                               std::to_string(num_devices()) + " devices");
          op_times_.insert(op_times_.end(), row.begin(), row.end());
          all_times_.insert(all_times_.end(), row.begin(), row.end());
          return {};
        });
    out_.emplace_back();
    return f.finish();
  }

  Result<uint32_t> op_at(const JsonCursor& at) {
    HEDDLE_ASSIGN_OR_RETURN(const auto number, at.as_int(0, INT64_MAX));
    const auto found = index_.find(number);
    if (found == index_.end()) return at.error("there is no op " + std::to_string(number));
    return found->second;
  }

  Status read_edge(const JsonCursor& at) {
    FlowEdge edge;
    edge.is_order_only = !at.has("flow") || at.value()["flow"].is_null();
    const auto op = [this](const JsonCursor& id) { return op_at(id); };
    Fields f(at);
    f.required("src", edge.from, op).required("dst", edge.to, op).ignored({"flow"});
    if (edge.is_order_only)
      f.ignored({"time"});
    else
      f.required("time", [&](const JsonCursor& matrix) { return read_matrix(matrix, edge); });
    HEDDLE_RETURN_IF_ERROR(f.finish());
    out_[edge.from].push_back(static_cast<uint32_t>(edges_.size()));
    edges_.push_back(std::move(edge));
    return {};
  }

  Status read_matrix(const JsonCursor& matrix, FlowEdge& edge) {
    const size_t k = num_devices();
    const auto read_row = [&](size_t i, const JsonCursor& row) -> Status {
      HEDDLE_RETURN_IF_ERROR(check_size(row, k, "device"));
      HEDDLE_ASSIGN_OR_RETURN(const auto values, row.as_numbers(0, kMostFlowTime));
      if (values[i] != 0) return row.error("the time from a device to itself must be 0");
      edge.times.insert(edge.times.end(), values.begin(), values.end());
      return {};
    };
    HEDDLE_RETURN_IF_ERROR(each_of(k, "device", read_row)(matrix));
    all_times_.insert(all_times_.end(), edge.times.begin(), edge.times.end());
    return {};
  }

  // "3->5"; a second edge between two ops has its number, too.
  std::string tensor_name(uint32_t q) {
    const FlowEdge& edge = edges_[q];
    std::string name = op_names_[edge.from] + "->" + op_names_[edge.to];
    if (!tensor_names_.insert(name).second) name += "#" + std::to_string(q);
    return name;
  }

  Result<std::shared_ptr<const Graph>> build_graph(const std::string& name, const WholeBytes& bytes) {
    GraphBuilder builder(name);
    std::vector<std::vector<TensorId>> inputs(op_names_.size());
    for (size_t v = 0; v < op_names_.size(); ++v) {
      Op op;
      op.name = op_names_[v];
      op.type = "Op";
      if (op_memory_[v] > 0)
        op.params = {builder.add_param({"memory of " + op.name, bytes.size(op_memory_[v])})};
      std::vector<Tensor> outputs;
      for (const uint32_t q : out_[v]) {
        outputs.push_back({.name = tensor_name(q), .dtype = DType::kU8, .shape = {0}});
        edge_of_tensor_.push_back(static_cast<int32_t>(q));
      }
      const bool is_sink = outputs.empty();
      if (is_sink) {
        outputs.push_back({.name = op.name + ".out", .dtype = DType::kU8, .shape = {0}});
        edge_of_tensor_.push_back(-1);
      }
      const OpId id = builder.add_op(std::move(op), std::move(outputs));
      const auto made = builder.outputs_of(id);
      if (is_sink) builder.add_output(made.front());
      for (size_t i = 0; i < out_[v].size(); ++i) inputs[edges_[out_[v][i]].to].push_back(made[i]);
    }
    for (size_t v = 0; v < inputs.size(); ++v) builder.set_inputs(OpId(v), std::move(inputs[v]));
    return builder.build();
  }

  Result<std::shared_ptr<const Cluster>> build_cluster(const std::string& name, const WholeBytes& bytes) {
    ClusterBuilder builder(name);
    const HostId host = builder.add_host({.name = "host"});
    for (size_t d = 0; d < num_devices(); ++d) {
      Device device;
      device.name = device.device_class = "device" + std::to_string(d);
      device.host = host;
      device.memory_bytes = bytes.limit(device_memory_[d]);
      builder.add_device(std::move(device));
    }
    return builder.build();
  }

  void set_costs() {
    auto costs = std::make_shared<CostTable>(op_names_.size(), num_devices());
    for (size_t v = 0; v < op_names_.size(); ++v) {
      for (size_t d = 0; d < num_devices(); ++d) {
        const double us = op_times_[v * num_devices() + d] * file_.us_per_unit;
        costs->set(OpId(v), DeviceId(d), {.us = us, .origin = Origin::kGiven});
      }
    }
    file_.problem.costs = std::move(costs);
  }

  void set_transfers() {
    auto times = std::make_shared<TransferTimes>();
    int32_t count = 0;
    for (const int32_t q : edge_of_tensor_) {
      const bool has_data = q >= 0 && !edges_[static_cast<size_t>(q)].is_order_only;
      times->matrix.push_back(has_data ? count++ : -1);
      if (!has_data) continue;
      for (const double t : edges_[static_cast<size_t>(q)].times) times->us.push_back(t * file_.us_per_unit);
    }
    file_.problem.transfers = std::move(times);
    file_.problem.execution.transfers = Transfers::kGiven;
  }

  FlowWorkloadFile file_;
  std::unordered_map<int64_t, uint32_t> index_;
  std::vector<std::string> op_names_;
  std::vector<double> op_memory_, device_memory_, op_times_, all_times_;
  std::vector<FlowEdge> edges_;
  std::vector<std::vector<uint32_t>> out_;  // per op: its edges
  std::vector<int32_t> edge_of_tensor_;     // -1: a result
  std::set<std::string> tensor_names_;
};

}  // namespace

bool is_flow_workload(const Json& json) {
  return json.is_object() && json.contains("devices") && json.contains("edges") && json.contains("ops");
}

Result<FlowWorkloadFile> flow_workload_from_json(const Json& json) {
  return FlowReader().run(JsonCursor(json));
}

Result<FlowWorkloadFile> read_flow_workload(const std::string& path) {
  return read_json_file(path, flow_workload_from_json);
}

}  // namespace heddle
