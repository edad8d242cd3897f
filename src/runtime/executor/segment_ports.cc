#include <algorithm>
#include <utility>

#include "program.h"

namespace heddle {

Rows Rows::from_pairs(size_t rows, std::vector<std::pair<int32_t, int32_t>> pairs) {
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  Rows result;
  result.begin.assign(rows + 1, 0);
  result.items.reserve(pairs.size());
  for (const auto& [row, item] : pairs) {
    ++result.begin[static_cast<size_t>(row) + 1];
    result.items.push_back(item);
  }
  for (size_t i = 0; i < rows; ++i) result.begin[i + 1] += result.begin[i];
  return result;
}

std::vector<std::vector<int32_t>> ops_to_segments(const Problem& problem, const Plan& plan) {
  std::vector<std::vector<int32_t>> owner(plan.lane_shares.size(),
                                          std::vector<int32_t>(problem.graph->num_ops(), -1));
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    for (OpId op : plan.segments[s].ops)
      owner[static_cast<size_t>(plan.segments[s].lane)][op.index()] = static_cast<int32_t>(s);
  }
  return owner;
}

SegmentPorts segment_ports(const Graph& graph, const Segment& segment, std::span<const int32_t> op_segment,
                           int32_t self) {
  SegmentPorts ports;
  std::vector<TensorId> model_outputs(graph.outputs().begin(), graph.outputs().end());
  std::sort(model_outputs.begin(), model_outputs.end());
  for (OpId op : segment.ops) {
    for (TensorId t : graph.op(op).inputs) {
      const OpId producer = graph.tensor(t).producer;
      if (!producer.valid() || op_segment[producer.index()] != self) ports.inputs.push_back(t);
    }
    for (TensorId t : graph.op(op).outputs) {
      const auto& readers = graph.tensor(t).consumers;
      const bool leaves =
          std::any_of(readers.begin(), readers.end(), [&](OpId r) { return op_segment[r.index()] != self; });
      if (leaves || std::binary_search(model_outputs.begin(), model_outputs.end(), t))
        ports.outputs.push_back(t);
    }
  }
  for (auto* list : {&ports.inputs, &ports.outputs}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  return ports;
}

}  // namespace heddle
