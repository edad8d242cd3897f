#include "segment_spec.h"

#include <set>

#include "executor/border_types.h"
#include "heddle/graph/model.h"

namespace heddle {

Result<OpsSegment> segment_of_ops(std::shared_ptr<const Model> model, std::span<const OpId> ops,
                                  const std::string& name, DType border, const WideValues& wide) {
  const Graph& graph = *model->graph();
  std::vector<int32_t> owner(graph.num_ops(), -1);
  for (OpId op : ops) {
    if (!op.valid() || op.index() >= graph.num_ops())
      return internal_error("it names ops that the model does not have");
    owner[op.index()] = 0;
  }
  const Segment segment{.name = name, .ops = {ops.begin(), ops.end()}, .device = {}, .lane = 0};
  OpsSegment made;
  made.ports = segment_ports(graph, segment, owner, 0);
  made.spec.name = name;
  made.spec.finest_ops = segment.ops;
  made.spec.inputs = segment_tensors(graph, made.ports.inputs);
  made.spec.outputs = segment_tensors(graph, made.ports.outputs);
  if (border != DType::kF32) {
    const std::set<TensorId> outputs(graph.outputs().begin(), graph.outputs().end());
    const auto narrow = [&](std::span<const TensorId> tensors, std::vector<SegmentTensor>& specs) {
      for (size_t i = 0; i < tensors.size(); ++i) {
        const bool inside = graph.tensor(tensors[i]).producer.valid() && !outputs.contains(tensors[i]);
        if (!inside || specs[i].dtype != DType::kF32 || wide.is_wide(tensors[i])) continue;
        specs[i].bytes = specs[i].bytes * dtype_bits(border) / dtype_bits(DType::kF32);
        specs[i].dtype = border;
      }
    };
    narrow(made.ports.inputs, made.spec.inputs);
    narrow(made.ports.outputs, made.spec.outputs);
  }
  made.spec.model = std::move(model);
  return made;
}

}  // namespace heddle
