#include "core/transport_bench.h"

#include "heddle/cluster/cluster.h"
#include "heddle/plan/builder.h"
#include "heddle/runtime/executor.h"
#include "heddle/runtime/sampling.h"

namespace heddle::bench {
namespace {

struct Chain {
  Problem problem;
  Plan plan;
};

// Ops of no time, each on the other device than the one before.
Result<Chain> make_chain(int64_t bytes, int messages) {
  GraphBuilder graph("chain");
  TensorId last = graph.add_input("in", DType::kU8, {1});
  for (int i = 0; i <= messages; ++i) {
    Op op;
    op.name = "op" + std::to_string(i);
    op.type = "Pass";
    op.inputs = {last};
    const OpId id = graph.add_op(std::move(op),
                                 {{.name = "t" + std::to_string(i), .dtype = DType::kU8, .shape = {bytes}}});
    last = graph.outputs_of(id)[0];
  }
  graph.add_output(last);
  Chain chain;
  HEDDLE_ASSIGN_OR_RETURN(chain.problem.graph, graph.build());
  ClusterBuilder cluster("two");
  std::vector<NodeId> nodes;
  for (int r = 0; r < 2; ++r) {
    Device device;
    device.name = "d" + std::to_string(r);
    device.device_class = "free";
    device.host = cluster.add_host({.name = "h" + std::to_string(r), .memory_bytes = 0});
    nodes.push_back(cluster.device_node(cluster.add_device(device)));
  }
  cluster.add_link({.name = "l", .a = nodes[0], .b = nodes[1], .bytes_per_s = 1e9});
  HEDDLE_ASSIGN_OR_RETURN(chain.problem.cluster, cluster.build());
  auto costs = std::make_shared<CostTable>(chain.problem.graph->num_ops(), size_t{2});
  Assignment assignment;
  const auto order = chain.problem.graph->topological_order();
  assignment.order.assign(order.begin(), order.end());
  for (size_t op = 0; op < chain.problem.graph->num_ops(); ++op) {
    for (size_t d = 0; d < 2; ++d)
      costs->set(OpId(op), DeviceId(d), {.us = 0, .origin = Origin::kGiven, .rel_spread = 0});
    assignment.device.emplace_back(op % 2);
  }
  chain.problem.costs = costs;
  HEDDLE_ASSIGN_OR_RETURN(chain.plan, build_plan(chain.problem, assignment));
  return chain;
}

// Half the times between two messages that came here: what the machine does in between for others spoils one
// of them, and not the whole chain.
void note_round_trips(const Plan& plan, const RequestTiming& timing, std::vector<double>& us) {
  double before = -1;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (step.kind != StepKind::kTransfer || step.to.value != 0) continue;
    if (before >= 0) us.push_back((timing.steps[i].finish_us - before) / 2);
    before = timing.steps[i].finish_us;
  }
}

}  // namespace

Result<TransportBenchResult> bench_messages(RankGroup& group, int64_t bytes, int messages, int repeats) {
  if (group.size() < 2 || bytes < 1 || messages < 4 || repeats < 1)
    return Error(Code::kInvalidInput, "messages are measured between two ranks: start Heddle by mpirun -n 2");
  HEDDLE_ASSIGN_OR_RETURN(const Chain chain, make_chain(bytes, messages));
  ExecutorOptions create;
  create.ranks = RankOptions{&group, {0, 1}, true};
  HEDDLE_ASSIGN_OR_RETURN(const auto executor, Executor::create(chain.problem, chain.plan, nullptr, create));
  TransportBenchResult result{.messages = messages};
  std::vector<double> ours, raw;
  for (int i = -1; i < repeats; ++i) {
    HEDDLE_RETURN_IF_ERROR(group.agree({}));  // both are here
    const auto timing = executor->run();
    HEDDLE_RETURN_IF_ERROR(group.agree(timing.ok() ? Status() : Status(timing.error())));
    HEDDLE_ASSIGN_OR_RETURN(const double alone, group.transport().raw_message_us(0, 1, bytes, messages));
    if (i < 0) continue;  // the first round sets up connections
    if (group.rank() == 0) note_round_trips(chain.plan, *timing, ours);
    raw.push_back(alone);
  }
  result.executor_us = median_us(ours);
  result.raw_us = median_us(raw);
  return result;
}

}  // namespace heddle::bench
