#include "support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "heddle/base/hash.h"
#include "heddle/base/random.h"

namespace heddle::test {
namespace {

std::shared_ptr<const Graph> random_graph(const RandomProblemOptions& options) {
  Random random(options.seed);
  GraphBuilder builder("random");
  std::vector<TensorId> made = {builder.add_input("in", DType::kU8, {8})};
  std::vector<bool> read(1, true);
  for (int i = 0; i < options.ops; ++i) {
    Op op;
    op.name = "op" + std::to_string(i);
    op.type = "Test";
    for (size_t j = 1; j < made.size(); ++j) {
      if (!random.chance(options.edge_probability)) continue;
      op.inputs.push_back(made[j]);
      read[j] = true;
    }
    if (op.inputs.empty()) op.inputs.push_back(made[0]);
    if (options.param_bytes > 0) {
      op.params.push_back(builder.add_param(
          {.name = "p" + std::to_string(i), .bytes = options.param_bytes * (1 + i * 7 % 4)}));
    }
    const OpId id =
        builder.add_op(std::move(op), {{.name = "t" + std::to_string(i), .dtype = DType::kU8, .shape = {8}}});
    made.push_back(builder.outputs_of(id)[0]);
    read.push_back(false);
  }
  for (size_t j = 1; j < made.size(); ++j) {
    if (!read[j]) builder.add_output(made[j]);
  }
  return builder.build().value();
}

std::shared_ptr<const Cluster> make_cluster(const RandomProblemOptions& options) {
  ClusterBuilder builder("test");
  const HostId host = builder.add_host({.name = "host", .memory_bytes = 0});
  const NodeId hub = options.cores || options.host_hub ? builder.host_node(host) : builder.add_switch("hub");
  for (int i = 0; i < options.devices; ++i) {
    Device device;
    device.name = "d" + std::to_string(i);
    device.device_class = "test";
    device.host = host;
    device.memory_bytes = options.device_memory_bytes;
    if (options.cores) {
      device.kind = DeviceKind::kCpu;
      device.cores = i % 3 == 2 ? std::vector<int>{0, 1} : std::vector<int>{i % 3};
      device.memory_bytes = 0;
    }
    if (i < options.cpus) {
      device.kind = DeviceKind::kCpu;
      device.memory_bytes = 0;
    }
    const DeviceId id = builder.add_device(device);
    if (!options.cores) {
      builder.add_link({.name = "l" + std::to_string(i),
                        .a = builder.device_node(id),
                        .b = hub,
                        .bytes_per_s = 1e30,
                        .latency_us = options.transfer_us / 2});
    }
  }
  return builder.build().value();
}

uint64_t segment_hash(const std::string& output, const std::map<std::string, uint64_t>& inputs) {
  Hasher hasher;
  hasher.text(output);
  for (const auto& [name, value] : inputs) hasher.text(name).number(value);
  return hasher.value();
}

class HashSegment final : public CompiledSegment {
 public:
  HashSegment(HashBackend& backend, SegmentSpec spec, int slots)
      : backend_(backend),
        spec_(std::move(spec)),
        inputs_(static_cast<size_t>(slots)),
        outputs_(static_cast<size_t>(slots)) {
    backend_.live.fetch_add(1);
  }
  ~HashSegment() override { backend_.live.fetch_sub(1); }
  Status bind(int slot, std::span<const TensorView> inputs, std::span<const TensorView> outputs) override {
    inputs_[static_cast<size_t>(slot)].assign(inputs.begin(), inputs.end());
    outputs_[static_cast<size_t>(slot)].assign(outputs.begin(), outputs.end());
    return {};
  }
  Status run(int slot) override {
    backend_.running.fetch_add(1);
    backend_.runs.fetch_add(1);
    Status status = backend_.hook ? backend_.hook(spec_.name) : Status();
    std::map<std::string, uint64_t> values;
    for (size_t i = 0; i < spec_.inputs.size(); ++i)
      std::memcpy(&values[spec_.inputs[i].name], inputs_[static_cast<size_t>(slot)][i].data, 8);
    for (size_t i = 0; i < spec_.outputs.size(); ++i) {
      const uint64_t hash = segment_hash(spec_.outputs[i].name, values);
      std::memcpy(outputs_[static_cast<size_t>(slot)][i].data, &hash, 8);
    }
    backend_.running.fetch_sub(1);
    return status;
  }

 private:
  HashBackend& backend_;
  SegmentSpec spec_;
  std::vector<std::vector<TensorView>> inputs_, outputs_;
};

class HashDevice final : public RuntimeDevice {
 public:
  explicit HashDevice(HashBackend& backend) : backend_(backend) {}
  Result<std::unique_ptr<CompiledSegment>> compile(const SegmentSpec& spec, int slots) override {
    backend_.compiles.fetch_add(1);
    if (backend_.compile_hook) HEDDLE_RETURN_IF_ERROR(backend_.compile_hook(spec.name));
    return std::unique_ptr<CompiledSegment>(std::make_unique<HashSegment>(backend_, spec, slots));
  }
  std::vector<int> worker_cores() const override { return backend_.cores; }

 private:
  HashBackend& backend_;
};

}  // namespace

Problem random_problem(const RandomProblemOptions& options) {
  Problem problem;
  problem.graph = random_graph(options);
  problem.cluster = make_cluster(options);
  problem.objective = options.objective;
  auto costs = std::make_shared<CostTable>(problem.graph->num_ops(), problem.cluster->num_devices());
  Random random(options.seed + 17);
  for (size_t op = 0; op < problem.graph->num_ops(); ++op) {
    for (size_t d = 0; d < problem.cluster->num_devices(); ++d) {
      costs->set(OpId(op), DeviceId(d),
                 {.us = random.uniform(0, options.max_us), .origin = Origin::kGiven, .rel_spread = 0});
    }
  }
  problem.costs = costs;
  return problem;
}

Plan random_plan(const Problem& problem, uint64_t seed, double join, int lanes) {
  Random random(seed);
  std::vector<Lane> all;
  for (int lane = 0; lane < lanes; ++lane) {
    Assignment a;
    const auto order = problem.graph->topological_order();
    a.order.assign(order.begin(), order.end());
    a.device.resize(order.size());
    a.segment.resize(order.size());
    int segment = 0;
    DeviceId device(static_cast<size_t>(random.below(problem.cluster->num_devices())));
    for (OpId op : order) {
      if (!random.chance(join)) {
        ++segment;
        device = DeviceId(static_cast<size_t>(random.below(problem.cluster->num_devices())));
      }
      a.device[op.index()] = device;
      a.segment[op.index()] = segment;
    }
    all.push_back({std::move(a), 1.0 / lanes});
  }
  auto plan = lanes == 1 ? build_plan(problem, all[0].assignment) : build_plan(problem, all);
  if (!plan.ok()) throw std::runtime_error(plan.error().to_string());
  return std::move(plan).value();
}

std::function<Result<std::unique_ptr<RuntimeDevice>>(const Device&)> HashBackend::opener() {
  return [this](const Device&) -> Result<std::unique_ptr<RuntimeDevice>> {
    return std::unique_ptr<RuntimeDevice>(std::make_unique<HashDevice>(*this));
  };
}

std::vector<uint64_t> expected_outputs(const Problem& problem, const Plan& plan, int lane, uint64_t input) {
  const Graph& graph = *problem.graph;
  std::map<std::string, uint64_t> value = {{"in", input}};
  for (const Step& step : plan.steps) {
    const Segment& segment = plan.segments[step.segment.index()];
    if (step.kind != StepKind::kRun || segment.lane != lane) continue;
    const auto inside = [&](OpId op) {
      return op.valid() && std::binary_search(segment.ops.begin(), segment.ops.end(), op);
    };
    std::map<std::string, uint64_t> read;
    for (OpId op : segment.ops) {
      for (TensorId t : graph.op(op).inputs) {
        if (!inside(graph.tensor(t).producer)) read[graph.tensor(t).name] = value.at(graph.tensor(t).name);
      }
    }
    for (OpId op : segment.ops) {
      for (TensorId t : graph.op(op).outputs)
        value[graph.tensor(t).name] = segment_hash(graph.tensor(t).name, read);
    }
  }
  std::vector<uint64_t> outputs;
  for (TensorId t : graph.outputs()) outputs.push_back(value.at(graph.tensor(t).name));
  return outputs;
}

std::vector<uint64_t> read_outputs(std::span<const TensorView> outputs) {
  std::vector<uint64_t> values(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) std::memcpy(&values[i], outputs[i].data, 8);
  return values;
}

void write_input(std::span<const TensorView> inputs, uint64_t value) {
  std::memcpy(inputs[0].data, &value, 8);
}

StreamOptions gathering(Executor& executor, int requests, uint64_t first, Gathered& into) {
  into.outputs.assign(static_cast<size_t>(requests), {});
  into.lane.assign(static_cast<size_t>(requests), -1);
  into.slot.assign(static_cast<size_t>(requests), -1);
  StreamOptions stream;
  stream.requests = requests;
  stream.fill = [&executor, first](int64_t request, int slot) {
    write_input(executor.inputs(slot), static_cast<uint64_t>(request) + first);
  };
  stream.done = [&executor, &into](const RequestTiming& t) {
    const auto i = static_cast<size_t>(t.request);
    into.outputs[i] = read_outputs(executor.outputs(t.slot));
    into.lane[i] = t.lane;
    into.slot[i] = t.slot;
  };
  return stream;
}

Problem host_access_problem() {
  Problem problem = random_problem({.ops = 8,
                                    .devices = 2,
                                    .param_bytes = 100,
                                    .host_hub = true,
                                    .objective = Objective::kColdLatency,
                                    .seed = 3});
  CostTable costs = *problem.costs;
  for (size_t op = 0; op < problem.graph->num_ops(); ++op) {
    for (int d = 0; d < 2; ++d) costs.set_host_access(OpId(op), DeviceId(d), 1);
  }
  problem.costs = std::make_shared<const CostTable>(std::move(costs));
  return problem;
}

std::vector<SegmentFault> segment_faults() {
  return {{"an error while loading", true, [] { return Status(Error(Code::kIo, "the file is cut short")); },
           "the file is cut short"},
          {"memory ends while loading", true, []() -> Status { throw std::bad_alloc(); }, "out of memory"},
          {"a load worker throws", true, []() -> Status { throw std::runtime_error("boom"); }, "boom"},
          {"a load worker throws a number", true, []() -> Status { throw 7; }, "unknown type"},
          {"an error while running", false, [] { return Status(Error(Code::kInternal, "device lost")); },
           "device lost"},
          {"memory ends while running", false, []() -> Status { throw std::bad_alloc(); }, "out of memory"},
          {"a worker throws", false, []() -> Status { throw std::runtime_error("bang"); }, "bang"}};
}

std::unique_ptr<Executor> make_executor(const Problem& problem, const Plan& plan,
                                        const ExecutorOptions& options) {
  auto executor = Executor::create(problem, plan, nullptr, options);
  EXPECT_TRUE(executor.ok()) << executor.error().to_string();
  return executor.ok() ? std::move(executor).value() : nullptr;
}

}  // namespace heddle::test
