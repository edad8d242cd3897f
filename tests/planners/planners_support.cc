#include "planners_support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "heddle/plan/builder.h"
#include "heddle/plan/evaluator.h"
#include "heddle/solve/self_test.h"

namespace heddle::test {
namespace {

Device gpu(int i, HostId host, int64_t memory) {
  Device d;
  d.name = "g" + std::to_string(i);
  d.device_class = d.name;
  d.host = host;
  d.memory_bytes = memory;
  return d;
}

Device cpu(int i, HostId host, std::vector<int> cores) {
  Device d;
  d.name = "c" + std::to_string(i);
  d.kind = DeviceKind::kCpu;
  d.device_class = d.name;
  d.host = host;
  d.cores = std::move(cores);
  return d;
}

class BruteForce {
 public:
  explicit BruteForce(const Problem& problem) : problem_(problem), evaluator_(problem) {
    assignment_.device.resize(problem.graph->num_ops());
  }
  double run() {
    extend();
    return best_;
  }

 private:
  void extend() {
    const Graph& graph = *problem_.graph;
    if (assignment_.order.size() == graph.num_ops()) return try_it();
    for (size_t v = 0; v < graph.num_ops(); ++v) {
      const OpId op(v);
      const auto placed = [&](OpId o) {
        return std::count(assignment_.order.begin(), assignment_.order.end(), o) > 0;
      };
      const auto before = graph.predecessors(op);
      if (placed(op) || !std::all_of(before.begin(), before.end(), placed)) continue;
      assignment_.order.push_back(op);
      for (const DeviceId d : problem_.usable_devices()) {
        if (problem_.costs->us(op, d) == kImpossible) continue;
        assignment_.device[v] = d;
        extend();
      }
      assignment_.order.pop_back();
    }
  }
  void try_it() {
    const auto plan = build_plan(problem_, assignment_);
    if (!plan.ok()) return;
    const auto timeline = evaluator_.evaluate(*plan);
    if (timeline.ok()) best_ = std::min(best_, objective_us(problem_, *timeline));
  }
  const Problem& problem_;
  Evaluator evaluator_;
  Assignment assignment_;
  double best_ = std::numeric_limits<double>::infinity();
};

}  // namespace

std::shared_ptr<const Graph> make_graph(int ops, const std::vector<Wire>& wires,
                                        const std::vector<int64_t>& params) {
  GraphBuilder builder("test");
  const TensorId in = builder.add_input("in", DType::kU8, {4});
  std::vector<std::vector<TensorId>> reads(static_cast<size_t>(ops));
  for (int v = 0; v < ops; ++v) {
    Op op;
    op.name = "op" + std::to_string(v);
    op.type = "Test";
    if (static_cast<size_t>(v) < params.size())
      op.params = {builder.add_param({"w" + std::to_string(v), params[static_cast<size_t>(v)]})};
    std::vector<Tensor> outputs;
    std::vector<int> readers;
    for (const Wire& w : wires) {
      if (w.from != v) continue;
      Tensor t;
      t.name = "t" + std::to_string(v) + "_" + std::to_string(w.to);
      t.dtype = DType::kU8;
      t.shape = {w.bytes};
      outputs.push_back(std::move(t));
      readers.push_back(w.to);
    }
    const OpId id = builder.add_op(std::move(op), std::move(outputs));
    for (size_t i = 0; i < readers.size(); ++i)
      reads[static_cast<size_t>(readers[i])].push_back(builder.outputs_of(id)[i]);
  }
  // Wires may lead from a later op to an earlier one, so inputs are set when all tensors are there.
  for (int v = 0; v < ops; ++v) {
    auto& inputs = reads[static_cast<size_t>(v)];
    if (inputs.empty()) inputs = {in};
    builder.set_inputs(OpId(v), std::move(inputs));
  }
  return must(builder.build());
}

std::shared_ptr<const Cluster> make_mesh(int gpus, int64_t memory) {
  ClusterBuilder builder("mesh");
  const HostId host = builder.add_host({.name = "h", .memory_bytes = 0});
  std::vector<NodeId> nodes;
  for (int i = 0; i < gpus; ++i) {
    const DeviceId d = builder.add_device(gpu(i, host, memory));
    nodes.push_back(builder.device_node(d));
    builder.add_link({.name = "pcie" + std::to_string(i),
                      .a = builder.host_node(host),
                      .b = nodes.back(),
                      .bytes_per_s = 2e5,
                      .latency_us = 0,
                      .duplex = Duplex::kFull,
                      .bus = {}});
  }
  for (int i = 0; i < gpus; ++i) {
    for (int j = i + 1; j < gpus; ++j) {
      builder.add_link({.name = "l" + std::to_string(i) + "_" + std::to_string(j),
                        .a = nodes[static_cast<size_t>(i)],
                        .b = nodes[static_cast<size_t>(j)],
                        .bytes_per_s = 1e6,
                        .latency_us = 0,
                        .duplex = Duplex::kFull,
                        .bus = {}});
    }
  }
  return must(builder.build());
}

std::shared_ptr<const Cluster> make_cpus(const std::vector<std::vector<int>>& cores, int64_t memory) {
  ClusterBuilder builder("cpus");
  const HostId host = builder.add_host({.name = "h", .memory_bytes = memory});
  for (size_t i = 0; i < cores.size(); ++i) builder.add_device(cpu(static_cast<int>(i), host, cores[i]));
  return must(builder.build());
}

std::shared_ptr<const Cluster> make_mixed(int64_t memory) {
  ClusterBuilder builder("mixed");
  const HostId host = builder.add_host({.name = "h", .memory_bytes = 0});
  builder.add_device(cpu(0, host, {0, 1}));
  builder.add_device(cpu(1, host, {0}));
  builder.add_device(cpu(2, host, {1}));
  const BusId bus = builder.add_bus({"root", 0, Duplex::kHalf});
  for (int i = 0; i < 2; ++i) {
    const DeviceId d = builder.add_device(gpu(i, host, memory));
    builder.add_link({.name = "pcie" + std::to_string(i),
                      .a = builder.host_node(host),
                      .b = builder.device_node(d),
                      .bytes_per_s = 3e6,
                      .latency_us = 1,
                      .duplex = Duplex::kFull,
                      .bus = bus});
  }
  return must(builder.build());
}

std::vector<Wire> random_wires(Random& random, int ops, double probability) {
  std::vector<Wire> wires;
  for (int a = 0; a < ops; ++a) {
    for (int b = a + 1; b < ops; ++b) {
      if (random.chance(probability)) wires.push_back({a, b, random.between(1, 8)});
    }
  }
  return wires;
}

std::vector<std::vector<double>> random_times(Random& random, size_t ops, size_t devices) {
  std::vector<std::vector<double>> times(ops, std::vector<double>(devices));
  for (auto& row : times) {
    for (double& us : row) us = static_cast<double>(random.between(1, 20));
  }
  return times;
}

double brute_force_us(const Problem& problem) { return BruteForce(problem).run(); }

std::shared_ptr<const Cluster> two_gpus(bool one_bus) {
  ClusterBuilder builder("two");
  const HostId host = builder.add_host({.name = "h", .memory_bytes = 0});
  BusId bus;
  if (one_bus) bus = builder.add_bus({.name = "bus", .bytes_per_s = 1e6, .duplex = Duplex::kFull});
  std::vector<NodeId> nodes;
  const auto link = [&](const std::string& name, NodeId a, NodeId b, double rate, BusId on) {
    builder.add_link({.name = name,
                      .a = a,
                      .b = b,
                      .bytes_per_s = rate,
                      .latency_us = 0,
                      .duplex = Duplex::kFull,
                      .bus = on});
  };
  for (int i = 0; i < 2; ++i) {
    Device d;
    d.name = "g" + std::to_string(i);
    d.device_class = d.name;
    d.host = host;
    d.copy_engines = 0;
    nodes.push_back(builder.device_node(builder.add_device(d)));
    link("pcie" + std::to_string(i), builder.host_node(host), nodes.back(), 1e6, bus);
  }
  link("nvlink", nodes[0], nodes[1], 1e7, {});
  return *builder.build();
}

PlanResult must_plan(const char* planner, const Problem& problem, double seconds) {
  PlannerOptions o;
  o.deadline = Deadline::after_seconds(seconds);
  auto result = run_planner(*find_planner(planner), problem, o);
  if (!result.ok()) ADD_FAILURE() << planner << ": " << result.error().to_string();
  return result.ok() ? std::move(*result) : PlanResult{};
}

bool solver_is_here() {
  const auto outcome = cp_sat_self_test();
  return outcome.ok() || outcome.error().code() != Code::kUnsupported;
}

}  // namespace heddle::test
