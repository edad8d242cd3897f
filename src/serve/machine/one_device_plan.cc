#include "one_device_plan.h"

#include <set>
#include <utility>

#include "heddle/cost/cost.h"
#include "heddle/plan/builder.h"

namespace heddle {
namespace {

int64_t parameter_bytes(const Graph& graph, std::span<const OpId> ops) {
  std::set<ParamId> all;
  for (const auto op : ops) all.insert(graph.op(op).params.begin(), graph.op(op).params.end());
  int64_t bytes = 0;
  for (const auto p : all) bytes += graph.param(p).bytes;
  return bytes;
}

// One op that stands for all of them.
Result<std::shared_ptr<const Graph>> one_op_graph(const std::string& name, const Graph& graph,
                                                  std::span<const OpId> ops, const SegmentModel& cut) {
  const auto like = [&graph](TensorId id) {
    const auto& t = graph.tensor(id);
    Tensor copy;
    copy.name = t.name;
    copy.dtype = t.dtype;
    copy.shape = t.shape;
    copy.bytes = t.bytes;
    return copy;
  };
  GraphBuilder builder(name);
  Op op;
  op.name = name;
  op.type = "part";
  op.members.assign(ops.begin(), ops.end());
  for (const auto id : cut.inputs) op.inputs.push_back(builder.add_input(like(id)));
  if (const auto bytes = parameter_bytes(graph, ops); bytes > 0)
    op.params.push_back(builder.add_param({.name = "parameters", .bytes = bytes}));
  std::vector<Tensor> outputs;
  for (const auto id : cut.outputs) outputs.push_back(like(id));
  const auto id = builder.add_op(std::move(op), std::move(outputs));
  const auto made = builder.outputs_of(id);
  for (const auto output : std::vector<TensorId>(made.begin(), made.end())) builder.add_output(output);
  return builder.build();
}

}  // namespace

Result<SizedPlan> one_device_plan(const std::string& name, std::shared_ptr<const Model> model,
                                  std::span<const OpId> ops, const SegmentModel& cut, const Device& device) {
  SizedPlan out;
  HEDDLE_ASSIGN_OR_RETURN(out.problem.graph, one_op_graph(name, *model->graph(), ops, cut));
  ClusterBuilder builder(device.name);
  Device here = device;
  here.variant_of.clear();  // it is alone here
  here.host = builder.add_host({.name = "host", .memory_bytes = 0});
  builder.add_device(std::move(here));
  HEDDLE_ASSIGN_OR_RETURN(out.problem.cluster, builder.build());
  auto costs = std::make_shared<CostTable>(1, 1);
  costs->set(OpId(0), DeviceId(0), {.us = 1, .origin = Origin::kEstimated});  // nothing is chosen by it
  out.problem.costs = std::move(costs);
  HEDDLE_ASSIGN_OR_RETURN(out.plan,
                          build_plan(out.problem, Assignment{.device = {DeviceId(0)}, .order = {OpId(0)}}));
  out.plan.segments.front().name = name;
  out.model = std::move(model);
  return out;
}

}  // namespace heddle
