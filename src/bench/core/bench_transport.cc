// The transport suite: what a message of a plan costs beside MPI alone, in turns in one run.
#include <cstdint>

#include "heddle/base/quantiles.h"
#include "heddle/base/units.h"
#include "heddle/cluster/cluster.h"
#include "heddle/plan/builder.h"
#include "heddle/runtime/executor.h"
#include "heddle/runtime/rank_group.h"
#include "suites.h"

namespace heddle::bench {
namespace {

struct TransportBenchResult {
  double executor_us = 0;  // half a round trip in a chain of ops that take no time, median
  double raw_us = 0;       // half a round trip of the same bytes by the library's blocking calls
};

struct Chain {
  Problem problem;
  Plan plan;
};

// A chain of ops that take no time, alternating between the two devices.
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

// Half of the time between two successive arrivals here. A disturbance of the machine then spoils one value,
// not the whole chain.
void note_round_trips(const Plan& plan, const RequestTiming& timing, std::vector<double>& us) {
  double before = -1;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (step.kind != StepKind::kTransfer || step.to.value != 0) continue;
    if (before >= 0) us.push_back((timing.steps[i].finish_us - before) / 2);
    before = timing.steps[i].finish_us;
  }
}

// Called by all of at least two ranks; ranks 0 and 1 take part. `messages`: length of the chain, at least 4.
// Both are measured in turns, `repeats` times; the medians are returned on rank 0.
Result<TransportBenchResult> bench_messages(RankGroup& group, int64_t bytes, int messages, int repeats) {
  if (group.size() < 2 || bytes < 1 || messages < 4 || repeats < 1)
    return invalid_input("messages are measured between two ranks: start Heddle by mpirun -n 2");
  HEDDLE_ASSIGN_OR_RETURN(const Chain chain, make_chain(bytes, messages));
  ExecutorOptions create;
  create.ranks = RankOptions{&group, {0, 1}, true};
  HEDDLE_ASSIGN_OR_RETURN(const auto executor, Executor::create(chain.problem, chain.plan, nullptr, create));
  TransportBenchResult result;
  std::vector<double> ours, raw;
  for (int i = -1; i < repeats; ++i) {
    HEDDLE_RETURN_IF_ERROR(group.agree({}));  // both ranks are ready
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

constexpr double kTargetAddedUs = 20;
constexpr int64_t kMessageRepeats = 5;

// Even, so that the last message of a chain comes back to rank 0, which has the time.
int messages_of(int64_t bytes) { return bytes <= 1 << 16 ? 100 : 20; }

}  // namespace

Status bench_transport(const BenchOptions& options, const Control&, std::vector<BenchRow>& rows) {
  if (rank_environment().size < 2) {
    return invalid_input(
        "suite transport measures between two ranks: start it as mpirun -n 2 heddle bench transport");
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto transport, make_mpi_transport());
  RankGroup group(*transport);
  for (const int64_t bytes :
       {int64_t{8}, int64_t{1} << 10, int64_t{1} << 16, int64_t{1} << 20, int64_t{1} << 22}) {
    HEDDLE_ASSIGN_OR_RETURN(const auto result,
                            bench_messages(group, bytes, messages_of(bytes),
                                           static_cast<int>(options.repeats.value_or(kMessageRepeats))));
    const auto add = [&](const char* metric, const char* unit, double value) -> BenchRow& {
      rows.push_back(bench_row("transport", "messages of " + format_bytes(bytes), "", metric, unit, value));
      return rows.back();
    };
    auto& time = add("one message", "us", result.executor_us);
    time.beside("MPI alone", result.raw_us);
    auto& added = add("added by the executor", "us", result.executor_us - result.raw_us);
    added.against(kTargetAddedUs, "target");
    add("ratio", "", result.raw_us > 0 ? result.executor_us / result.raw_us : 0);
  }
  return {};
}

}  // namespace heddle::bench
