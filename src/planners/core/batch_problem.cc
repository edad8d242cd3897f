#include "heddle/planners/batch_problem.h"

#include <cmath>

namespace heddle {
namespace {

Result<std::shared_ptr<const Graph>> copies_of(const Graph& graph, int requests) {
  GraphBuilder builder(graph.name() + "-batch" + std::to_string(requests));
  for (const Param& p : graph.params()) builder.add_param(p);
  const auto named = [](const std::string& name, int copy) { return name + "#" + std::to_string(copy); };
  for (int l = 0; l < requests; ++l) {
    std::vector<TensorId> now(graph.num_tensors());
    for (const TensorId t : graph.inputs()) {
      Tensor tensor = graph.tensor(t);
      tensor.name = named(tensor.name, l);
      now[t.index()] = builder.add_input(std::move(tensor));
    }
    for (const OpId v : graph.topological_order()) {
      Op op = graph.op(v);
      const auto outputs = op.outputs;
      op.name = named(op.name, l);
      for (TensorId& t : op.inputs) t = now[t.index()];
      std::vector<Tensor> made;
      for (const TensorId t : outputs) {
        made.push_back(graph.tensor(t));
        made.back().name = named(made.back().name, l);
      }
      const OpId id = builder.add_op(std::move(op), std::move(made));
      for (size_t i = 0; i < outputs.size(); ++i) now[outputs[i].index()] = builder.outputs_of(id)[i];
    }
    for (const TensorId t : graph.outputs()) builder.add_output(now[t.index()]);
  }
  return builder.build();
}

}  // namespace

Result<Problem> batch_problem(const Problem& one, int requests,
                              const std::function<double(OpId, DeviceId, int)>& us) {
  if (requests < 2 || requests > kMostBatchRequests) {
    return invalid_input("a batch of " + std::to_string(requests) + " requests: expected 2 to " +
                         std::to_string(kMostBatchRequests));
  }
  if (one.objective != Objective::kLatency) {
    return invalid_input(std::string("a batch of a problem whose objective is ") +
                         objective_name(one.objective) + ", expected latency");
  }
  const Graph& graph = *one.graph;
  const size_t n = graph.num_ops();
  Problem batch = one;
  HEDDLE_ASSIGN_OR_RETURN(batch.graph, copies_of(graph, requests));
  auto costs = std::make_shared<CostTable>(n * static_cast<size_t>(requests), one.cluster->num_devices());
  const auto order = graph.topological_order();
  for (size_t place = 0; place < n; ++place) {
    // The copies' ids follow the topological order, copy by copy.
    const auto copy = [&](int l) { return OpId(static_cast<size_t>(l) * n + place); };
    for (size_t d = 0; d < one.cluster->num_devices(); ++d) {
      const DeviceId device(d);
      const Origin origin = one.costs->at(order[place], device).origin;
      for (int count = 1; count <= requests; ++count) {
        const double time = us(order[place], device, count);
        if (!(time >= 0)) {
          return invalid_input("op '" + graph.op(order[place]).name + "', a batch of " +
                               std::to_string(count) + " on device '" + one.cluster->device(device).name +
                               "': its time is negative or not a number");
        }
        if (std::isinf(time)) continue;
        for (int set = 1; set < 1 << requests; ++set) {
          if (__builtin_popcount(static_cast<unsigned>(set)) != count) continue;
          SegmentCost segment;
          segment.device = device;
          segment.cost = {time, origin, 0};
          for (int l = 0; l < requests; ++l) {
            if (set >> l & 1) segment.ops.push_back(copy(l));
          }
          if (count == 1)
            costs->set(segment.ops[0], device, segment.cost);
          else
            costs->set_segment(std::move(segment));
        }
      }
    }
  }
  batch.costs = std::move(costs);
  return batch;
}

Result<Problem> side_by_side(const Problem& one, int copies) {
  if (copies < 1) return invalid_input(std::to_string(copies) + " copies of a problem: expected 1 or more");
  const size_t n = one.graph->num_ops();
  Problem many = one;
  HEDDLE_ASSIGN_OR_RETURN(many.graph, copies_of(*one.graph, copies));
  auto costs = std::make_shared<CostTable>(n * static_cast<size_t>(copies), one.cluster->num_devices());
  const auto order = one.graph->topological_order();
  for (size_t v = 0; v < n * static_cast<size_t>(copies); ++v) {
    for (size_t d = 0; d < one.cluster->num_devices(); ++d)
      costs->set(OpId(v), DeviceId(d), one.costs->at(order[v % n], DeviceId(d)));
  }
  many.costs = std::move(costs);
  return many;
}

}  // namespace heddle
