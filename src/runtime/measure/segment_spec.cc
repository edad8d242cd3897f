#include "segment_spec.h"

#include "heddle/graph/model.h"

namespace heddle {

Result<OpsSegment> segment_of_ops(std::shared_ptr<const Model> model, std::span<const OpId> ops,
                                  const std::string& name) {
  const Graph& graph = *model->graph();
  std::vector<int32_t> owner(graph.num_ops(), -1);
  for (OpId op : ops) {
    if (!op.valid() || op.index() >= graph.num_ops())
      return Error(Code::kInternal, "it names ops that the model does not have");
    owner[op.index()] = 0;
  }
  const Segment segment{.name = name, .ops = {ops.begin(), ops.end()}, .device = {}, .lane = 0};
  OpsSegment made;
  made.ports = segment_ports(graph, segment, owner, 0);
  made.spec.name = name;
  made.spec.finest_ops = segment.ops;
  const auto add = [&](std::span<const TensorId> tensors, std::vector<SegmentTensor>& specs) {
    for (TensorId t : tensors) {
      const Tensor& tensor = graph.tensor(t);
      specs.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes});
    }
  };
  add(made.ports.inputs, made.spec.inputs);
  add(made.ports.outputs, made.spec.outputs);
  made.spec.model = std::move(model);
  return made;
}

}  // namespace heddle
