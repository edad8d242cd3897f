#include <algorithm>

#include "net.h"

namespace heddle::zoo {
namespace {

class GraphMaker {
 public:
  explicit GraphMaker(const Net& net)
      : net_(net), builder_(net.name()), tensors_(net.values().size()), params_(net.values().size()) {}

  Result<std::shared_ptr<const Graph>> make() {
    for (const Val v : net_.inputs())
      tensors_[index(v)] = builder_.add_input(value(v).name, value(v).dtype, value(v).shape);
    for (const Node& node : net_.nodes()) add(node);
    for (const Val v : net_.outputs()) builder_.add_output(tensors_[index(v)]);
    return builder_.build();
  }

 private:
  static size_t index(Val v) { return static_cast<size_t>(v); }
  const Value& value(Val v) const { return net_.values()[index(v)]; }
  int64_t bytes_of(Val v) const { return tensor_bytes(value(v).dtype, value(v).shape).value_or(0); }

  ParamId param(Val v) {
    if (!params_[index(v)].valid())
      params_[index(v)] = builder_.add_param({value(v).name, bytes_of(v), value(v).dtype});
    return params_[index(v)];
  }

  void add(const Node& node) {
    Op op;
    op.name = node.name;
    op.type = node.type;
    op.onnx_names = {node.name};
    op.flops = node.flops;
    int64_t bytes = 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Val v = node.inputs[i];
      const bool again = std::find(node.inputs.begin(), node.inputs.begin() + static_cast<std::ptrdiff_t>(i),
                                   v) != node.inputs.begin() + static_cast<std::ptrdiff_t>(i);
      if (value(v).kind == ValueKind::kActivation)
        op.inputs.push_back(tensors_[index(v)]);
      else if (value(v).kind == ValueKind::kWeight && !again)
        op.params.push_back(param(v));
      if (value(v).kind != ValueKind::kConstant && !again) bytes += bytes_of(v);
    }
    std::vector<Tensor> outputs;
    for (const Val v : node.outputs) {
      bytes += bytes_of(v);
      Tensor t;
      t.name = value(v).name;
      t.dtype = value(v).dtype;
      t.shape = value(v).shape;
      outputs.push_back(std::move(t));
    }
    op.bytes_accessed = node.bytes >= 0 ? node.bytes : bytes;
    const OpId id = builder_.add_op(std::move(op), std::move(outputs));
    const auto made = builder_.outputs_of(id);
    for (size_t i = 0; i < made.size(); ++i) tensors_[index(node.outputs[i])] = made[i];
  }

  const Net& net_;
  GraphBuilder builder_;
  std::vector<TensorId> tensors_;
  std::vector<ParamId> params_;
};

}  // namespace

Result<std::shared_ptr<const Graph>> to_graph(const Net& net) { return GraphMaker(net).make(); }

}  // namespace heddle::zoo
