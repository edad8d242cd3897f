// Runs segments by ONNX Runtime's CPU provider.
//
// Cores. A run computes on the calling thread, which the executor binds to the device's cores (worker_cores()), and
// on the session's own threads, one fewer than the device has cores; each of them is bound to all these cores.
// They spin during a run only: between runs the cores may belong to another device.
#include <algorithm>
#include <memory>

#include "backends/segment_cut.h"
#include "heddle/base/errors.h"
#include "heddle/base/spelling.h"
#include "heddle/graph/model.h"
#include "heddle/graph/onnx_cut.h"
#include "heddle/graph/onnxruntime_session.h"
#include "threads/mailbox.h"

namespace heddle {
namespace {

using onnxruntime::Api;
using onnxruntime::checked;
using onnxruntime::SessionPtr;
using onnxruntime::Values;

constexpr int kNoOptimization = 0;

// The op's output whose size depends on data; null if there is none.
const Tensor* sized_output_of(const Model& model, OpId op) {
  const Graph& graph = *model.graph();
  for (const SizedOutput& sized : model.sized_outputs()) {
    const Tensor& output = graph.tensor(graph.outputs()[sized.output]);
    if (output.producer == op) return &output;
  }
  return nullptr;
}

// `trial`: only to learn whether the library can run the nodes.
Result<SessionPtr> make_session(const Api& api, const std::string& bytes, const Device& device, bool trial) {
  return onnxruntime::open_session(
      api,
      [&](onnxruntime::SessionOptions* options) -> Status {
        if (!trial) return onnxruntime::use_cores(api, options, device.cores);
        HEDDLE_RETURN_IF_ERROR(checked(api, api.set_intra_op_threads(options, 1), "setting threads"));
        return checked(api, api.set_optimization(options, kNoOptimization), "setting options");
      },
      [&](onnxruntime::SessionOptions* options, onnxruntime::Session** session) {
        return api.create_session_from_bytes(api.env, bytes.data(), bytes.size(), options, session);
      });
}

class OnnxRuntimeSegment final : public CompiledSegment {
 public:
  OnnxRuntimeSegment(const Api& api, std::string name, OnnxCut cut, SessionPtr session, int slots,
                     double load_us)
      : api_(api),
        name_(std::move(name)),
        cut_(std::move(cut)),
        session_(std::move(session)),
        load_us_(load_us) {
    cut_.bytes = {};  // the session has its own copy
    for (const auto& input : cut_.inputs) input_names_.push_back(input.name.c_str());
    for (const auto& output : cut_.outputs) output_names_.push_back(output.c_str());
    for (int i = 0; i < slots; ++i) slots_.emplace_back(Values(api), Values(api));
  }

  SegmentOrigin origin() const override { return {load_us_, false}; }

  // Producer and consumer are bound to the same memory, so a tensor is passed on without a copy.
  Status bind(int slot, std::span<const TensorView> inputs, std::span<const TensorView> outputs) override {
    auto& [bound_inputs, bound_outputs] = slots_[static_cast<size_t>(slot)];
    bound_inputs.clear();
    bound_outputs.clear();
    for (const auto& input : cut_.inputs)
      HEDDLE_RETURN_IF_ERROR(with_context(add(bound_inputs, inputs[input.index]), where()));
    for (const TensorView& output : outputs)
      HEDDLE_RETURN_IF_ERROR(with_context(add(bound_outputs, output), where()));
    return {};
  }

  Status run(int slot) override {
    auto& [inputs, outputs] = slots_[static_cast<size_t>(slot)];
    return checked(api_,
                   api_.run(session_.get(), nullptr, input_names_.data(), inputs.inputs(), inputs.size(),
                            output_names_.data(), outputs.size(), outputs.outputs()),
                   "running " + where());
  }

 private:
  static Status add(Values& values, const TensorView& view) {
    return values.add(view.dtype, view.shape, view.data, view.bytes);
  }
  std::string where() const { return "segment '" + name_ + "'"; }

  const Api& api_;
  std::string name_;
  OnnxCut cut_;
  SessionPtr session_;
  double load_us_;
  std::vector<const char*> input_names_, output_names_;
  std::vector<std::pair<Values, Values>> slots_;
};

// The tensors of the spec in the model's graph.
Result<std::vector<TensorId>> tensors_of(const std::vector<SegmentTensor>& wanted,
                                         const std::vector<TensorId>& ports, const std::vector<int>& match) {
  std::vector<TensorId> tensors(wanted.size());
  for (size_t p = 0; p < ports.size(); ++p)
    if (match[p] >= 0) tensors[static_cast<size_t>(match[p])] = ports[p];
  for (size_t i = 0; i < tensors.size(); ++i)
    if (!tensors[i].valid())
      return internal_error("the cut does not have tensor '" + wanted[i].name + "' of the plan");
  return tensors;
}

class OnnxRuntimeDevice final : public RuntimeDevice {
 public:
  OnnxRuntimeDevice(const Api& api, const Device& device) : api_(api), device_(device) {}

  Result<std::unique_ptr<CompiledSegment>> compile(const SegmentSpec& spec, int slots) override {
    const int64_t begin = now_ns();
    HEDDLE_ASSIGN_OR_RETURN(const SegmentCut cut, cut_segment(spec, device_.name));
    HEDDLE_ASSIGN_OR_RETURN(const auto inputs, tensors_of(spec.inputs, cut.part.inputs, cut.inputs));
    HEDDLE_ASSIGN_OR_RETURN(const auto outputs, tensors_of(spec.outputs, cut.part.outputs, cut.outputs));
    HEDDLE_ASSIGN_OR_RETURN(const OnnxParts* parts, cut.model->onnx_parts());
    HEDDLE_ASSIGN_OR_RETURN(OnnxCut part, parts->cut(inputs, outputs));
    const double load_us = static_cast<double>(now_ns() - begin) / 1000;
    HEDDLE_ASSIGN_OR_RETURN(SessionPtr session, make_session(api_, part.bytes, device_, false));
    return std::unique_ptr<CompiledSegment>(std::make_unique<OnnxRuntimeSegment>(
        api_, spec.name, std::move(part), std::move(session), slots, load_us));
  }

  std::vector<int> worker_cores() const override { return device_.cores; }

 private:
  const Api& api_;
  Device device_;
};

std::string provider_names(const Api& api) {
  char** names = nullptr;
  int count = 0;
  if (!checked(api, api.available_providers(&names, &count), "listing providers").ok()) return "none";
  std::string text;
  for (int i = 0; i < count; ++i) text += (text.empty() ? "" : ", ") + std::string(names[i]);
  (void)checked(api, api.release_available_providers(names, count), "listing providers");
  return text;
}

class OnnxRuntimeBackend final : public Backend {
 public:
  std::string name() const override { return "onnxruntime"; }
  std::string description() const override { return "ONNX Runtime's CPU provider (bound to core sets)"; }
  std::string release() const override { return onnxruntime::release(); }

  // An op alone, if it is a whole node of the file. Parts of nodes run only together, so they are not refused.
  std::vector<std::optional<Error>> refusals(const Device& device, const Model& model) const override {
    std::vector<std::optional<Error>> list(model.graph()->num_ops());
    const auto api = onnxruntime::library();
    const auto parts = model.onnx_parts();
    for (size_t i = 0; i < list.size(); ++i) {
      if (!api.ok()) {
        list[i] = api.error();
      } else if (!parts.ok()) {
        list[i] = parts.error();
      } else if (const auto* output = sized_output_of(model, OpId(i))) {
        list[i] = unsupported("op " + quote_text(model.graph()->op(OpId(i)).name) +
                              ": the size of its output " + quote_text(output->name) +
                              " depends on data, which devices of ONNX Runtime do not take");
      } else {
        const auto& op = model.graph()->op(OpId(i));
        std::vector<TensorId> inputs(op.inputs.begin(), op.inputs.end());
        std::sort(inputs.begin(), inputs.end());
        inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
        const auto cut = (*parts)->cut(inputs, op.outputs);
        if (!cut.ok()) continue;
        const auto session = make_session(**api, cut->bytes, device, true);
        if (!session.ok()) list[i] = session.error();
      }
    }
    return list;
  }

  Result<std::unique_ptr<RuntimeDevice>> open(const Device& device) override {
    const std::string what = "device '" + device.name + "'";
    HEDDLE_ASSIGN_OR_RETURN(const Api* api, with_context(onnxruntime::library(), what));
    if (device.backend_device != "CPU" && !device.backend_device.empty())
      return unsupported(what + " asks ONNX Runtime for '" + device.backend_device +
                         "'; expected 'CPU' (the library has " + provider_names(*api) + ")");
    return std::unique_ptr<RuntimeDevice>(std::make_unique<OnnxRuntimeDevice>(*api, device));
  }
};

}  // namespace

std::unique_ptr<Backend> make_onnxruntime_backend() { return std::make_unique<OnnxRuntimeBackend>(); }

}  // namespace heddle
