// Segments on OpenVINO's devices.
//
// Cores. With one stream and pinning off, a synchronous inference runs on the calling thread, and on TBB
// workers beside it when the device has more than one thread. The executor binds that calling thread to the
// device's cores (worker_cores()), so a device of one core runs there and nowhere else, and creates no other
// thread. TBB workers keep the affinity of the thread that first needed them; compiling happens on an unbound
// thread, so they may use all of the process's cores, and the scheduler puts them on the idle ones: those
// that the plan gave to this device.
#include <map>
#include <memory>

#include "backends/openvino/openvino_session.h"
#include "heddle/graph/model.h"
#include "heddle/runtime/backend.h"

namespace heddle {
namespace {

using openvino::current_error;

// Which of the spec's tensors each port of the compiled model is; -1: nobody asked for this output.
Result<std::vector<int>> match_ports(const Graph& graph, std::span<const TensorId> ports,
                                     std::span<const SegmentTensor> wanted, bool inputs) {
  std::map<std::string_view, int> by_name;
  for (size_t i = 0; i < wanted.size(); ++i) by_name[wanted[i].name] = static_cast<int>(i);
  std::vector<int> match;
  size_t found = 0;
  for (TensorId port : ports) {
    const auto it = by_name.find(graph.tensor(port).name);
    if (it == by_name.end() && inputs) {
      return Error(Code::kInternal,
                   "the cut reads tensor '" + graph.tensor(port).name + "', which the plan does not feed");
    }
    match.push_back(it == by_name.end() ? -1 : it->second);
    found += it == by_name.end() ? 0 : 1;
  }
  if (!inputs && found < wanted.size()) {
    return Error(Code::kInternal, "the cut makes " + std::to_string(found) + " of the " +
                                      std::to_string(wanted.size()) + " tensors that the plan expects of it");
  }
  return match;
}

class OpenVinoSegment final : public CompiledSegment {
 public:
  OpenVinoSegment(ov::CompiledModel compiled, std::vector<int> inputs, std::vector<int> outputs)
      : compiled_(std::move(compiled)), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}

  void add_request() { requests_.push_back(compiled_.create_infer_request()); }

  // Producer and consumer are bound to the same memory, so a tensor is handed over without a copy.
  Status bind(int slot, std::span<const TensorView> inputs, std::span<const TensorView> outputs) override {
    try {
      ov::InferRequest& request = requests_[static_cast<size_t>(slot)];
      for (size_t i = 0; i < inputs_.size(); ++i) {
        HEDDLE_ASSIGN_OR_RETURN(const ov::Tensor tensor,
                                openvino::wrap(inputs[static_cast<size_t>(inputs_[i])]));
        request.set_input_tensor(i, tensor);
      }
      for (size_t i = 0; i < outputs_.size(); ++i) {
        if (outputs_[i] < 0) continue;
        HEDDLE_ASSIGN_OR_RETURN(const ov::Tensor tensor,
                                openvino::wrap(outputs[static_cast<size_t>(outputs_[i])]));
        request.set_output_tensor(i, tensor);
      }
      return {};
    } catch (...) {
      return current_error("binding tensors");
    }
  }

  Status run(int slot) override {
    try {
      requests_[static_cast<size_t>(slot)].infer();
      return {};
    } catch (...) {
      return current_error("running");
    }
  }

 private:
  ov::CompiledModel compiled_;
  std::vector<int> inputs_, outputs_;
  std::vector<ov::InferRequest> requests_;
};

class OpenVinoDevice final : public RuntimeDevice {
 public:
  explicit OpenVinoDevice(const Device& device) : device_(device) {}

  Result<std::unique_ptr<CompiledSegment>> compile(const SegmentSpec& spec, int slots) override {
    if (!spec.model) {
      return Error(Code::kInvalidInput, "device '" + device_.name +
                                            "' runs real models only; this plan's graph has none behind it "
                                            "(give the model, or a cluster with emulated devices)");
    }
    HEDDLE_ASSIGN_OR_RETURN(SegmentModel cut, spec.model->cut(spec.finest_ops));
    const Graph& graph = *spec.model->graph();
    HEDDLE_ASSIGN_OR_RETURN(auto inputs, match_ports(graph, cut.inputs, spec.inputs, true));
    HEDDLE_ASSIGN_OR_RETURN(auto outputs, match_ports(graph, cut.outputs, spec.outputs, false));
    try {
      ov::CompiledModel compiled = openvino::core().compile_model(cut.model, openvino::device_name(device_),
                                                                  openvino::latency_config(device_));
      auto segment =
          std::make_unique<OpenVinoSegment>(std::move(compiled), std::move(inputs), std::move(outputs));
      for (int i = 0; i < slots; ++i) segment->add_request();
      return std::unique_ptr<CompiledSegment>(std::move(segment));
    } catch (...) {
      return current_error("compiling for " + openvino::device_name(device_));
    }
  }

  std::vector<int> worker_cores() const override { return device_.cores; }

 private:
  Device device_;
};

class OpenVinoBackend final : public Backend {
 public:
  std::string name() const override { return "openvino"; }
  std::string description() const override {
    return "OpenVINO's CPU (bound to core sets), GPU and NPU devices";
  }
  bool supports(const Device& device) const override { return device.backend == "openvino"; }

  Result<std::unique_ptr<RuntimeDevice>> open(const Device& device) override {
    try {
      const std::string wanted = openvino::device_name(device);
      std::string present;
      for (const std::string& name : openvino::core().get_available_devices()) {
        if (name == wanted || name == wanted + ".0" || wanted == name + ".0") {
          return std::unique_ptr<RuntimeDevice>(std::make_unique<OpenVinoDevice>(device));
        }
        present += (present.empty() ? "" : ", ") + name;
      }
      return Error(Code::kUnsupported, "device '" + device.name + "' needs OpenVINO's " + wanted +
                                           ", which this machine does not have; it has " + present);
    } catch (...) {
      return current_error("listing devices");
    }
  }
};

}  // namespace

std::unique_ptr<Backend> make_openvino_backend() { return std::make_unique<OpenVinoBackend>(); }

}  // namespace heddle
