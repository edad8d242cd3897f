#include "heddle/runtime/mixed_model.h"

#include <cstring>

#include "heddle/graph/model.h"
#include "heddle/runtime/affinity.h"
#include "segment_spec.h"

namespace heddle {
namespace {

class Pieces final : public MixedModel {
 public:
  explicit Pieces(std::shared_ptr<const Model> model)
      : model_(std::move(model)), graph_(*model_->graph()), tensors_(graph_.num_tensors()) {}

  Status build(const std::vector<std::vector<OpId>>& pieces, std::span<const Device> devices,
               const Control& control) {
    for (const Device& device : devices) {
      HEDDLE_ASSIGN_OR_RETURN(auto opened, open_device(device));
      if (opened->stream_runtime() != nullptr || !opened->moves_data())
        return unsupported("device '" + device.name +
                           "' does not compute in host memory, so its types' error is not measured");
      HEDDLE_RETURN_IF_ERROR(check_cores(opened->worker_cores(), device.name));
      devices_.push_back(std::move(opened));
    }
    for (const TensorId t : graph_.inputs()) HEDDLE_RETURN_IF_ERROR(allocate(t));
    const double all = static_cast<double>(pieces.size());
    for (const auto& ops : pieces) {
      if (control.cancel.cancelled()) return cancelled_error("stopped while compiling in several types");
      control.report("compiling in several types", static_cast<double>(pieces_.size()), all);
      HEDDLE_RETURN_IF_ERROR(add_piece(ops));
    }
    return {};
  }

  Status set_sample(std::span<const TensorValue> inputs) override {
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      const TensorValue& to = tensors_[graph_.inputs()[i].index()].usual;
      std::memcpy(to.data.get(), inputs[i].data.get(), static_cast<size_t>(to.bytes));
    }
    for (Buffers& buffers : tensors_) buffers.is_changed = false;
    for (Piece& piece : pieces_) HEDDLE_RETURN_IF_ERROR(run_piece(piece, 0, false));
    return {};
  }

  Result<std::vector<TensorView>> run(std::span<const uint8_t> choice) override {
    for (Buffers& buffers : tensors_) buffers.is_changed = false;
    for (size_t p = 0; p < pieces_.size(); ++p) {
      bool again = choice[p] != 0;
      for (const TensorId t : pieces_[p].ports.inputs) again = again || tensors_[t.index()].is_changed;
      if (again) HEDDLE_RETURN_IF_ERROR(run_piece(pieces_[p], choice[p], true));
    }
    std::vector<TensorView> outputs;
    for (const TensorId t : graph_.outputs()) outputs.push_back(view(t));
    return outputs;
  }

 private:
  // A tensor that crosses a border: with choice 0 everywhere, and as the running choice changes it.
  struct Buffers {
    TensorValue usual, changed;
    bool is_changed = false;
  };
  struct Piece {
    SegmentPorts ports;
    std::vector<std::unique_ptr<CompiledSegment>> compiled;  // [device]
  };

  Status allocate(TensorId t) {
    const Tensor& tensor = graph_.tensor(t);
    Buffers& buffers = tensors_[t.index()];
    HEDDLE_ASSIGN_OR_RETURN(buffers.usual, make_tensor(tensor.dtype, tensor.shape));
    if (tensor.producer.valid()) {
      HEDDLE_ASSIGN_OR_RETURN(buffers.changed, make_tensor(tensor.dtype, tensor.shape));
    }
    return {};
  }

  Status add_piece(std::span<const OpId> ops) {
    HEDDLE_ASSIGN_OR_RETURN(auto segment,
                            segment_of_ops(model_, ops, "piece " + std::to_string(pieces_.size())));
    for (const TensorId t : segment.ports.outputs) HEDDLE_RETURN_IF_ERROR(allocate(t));
    Piece piece;
    for (const auto& device : devices_) {
      HEDDLE_ASSIGN_OR_RETURN(auto compiled, device->compile(segment.spec, 1));
      piece.compiled.push_back(std::move(compiled));
    }
    piece.ports = std::move(segment.ports);
    pieces_.push_back(std::move(piece));
    return {};
  }

  TensorView view(TensorId t) const {
    const Buffers& buffers = tensors_[t.index()];
    return (buffers.is_changed ? buffers.changed : buffers.usual).view();
  }

  Status run_piece(Piece& piece, size_t device, bool changes) {
    std::vector<TensorView> inputs, outputs;
    for (const TensorId t : piece.ports.inputs) inputs.push_back(view(t));
    for (const TensorId t : piece.ports.outputs) {
      tensors_[t.index()].is_changed = changes;
      outputs.push_back(view(t));
    }
    const AffinityGuard bound(devices_[device]->worker_cores());
    HEDDLE_RETURN_IF_ERROR(piece.compiled[device]->bind(0, inputs, outputs));
    return piece.compiled[device]->run(0);
  }

  std::shared_ptr<const Model> model_;
  const Graph& graph_;
  std::vector<std::unique_ptr<RuntimeDevice>> devices_;
  std::vector<Buffers> tensors_;
  std::vector<Piece> pieces_;
};

}  // namespace

Result<std::unique_ptr<MixedModel>> MixedModel::make(const std::shared_ptr<const Model>& model,
                                                     const std::vector<std::vector<OpId>>& pieces,
                                                     std::span<const Device> devices,
                                                     const Control& control) {
  auto made = std::make_unique<Pieces>(model);
  HEDDLE_RETURN_IF_ERROR(made->build(pieces, devices, control));
  return std::unique_ptr<MixedModel>(std::move(made));
}

}  // namespace heddle
