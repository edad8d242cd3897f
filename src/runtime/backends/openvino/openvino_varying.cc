// Whole models with open dimensions on OpenVINO's devices.
#include <cstring>

#include "heddle/runtime/varying_engine.h"
#include "openvino_session.h"

namespace heddle {
namespace {

using openvino::current_error;

class OpenVinoVaryingRequest final : public VaryingRequest {
 public:
  OpenVinoVaryingRequest(std::shared_ptr<const VaryingEngine> engine, ov::InferRequest request)
      : engine_(std::move(engine)), request_(std::move(request)) {}

  Status run(std::span<const TensorView> inputs, std::span<const TensorView> outputs) override {
    try {
      for (size_t i = 0; i < inputs.size(); ++i) {
        ov::Tensor target = request_.get_input_tensor(i);
        target.set_shape(ov::Shape(inputs[i].shape.begin(), inputs[i].shape.end()));
        if (target.get_byte_size() != static_cast<size_t>(inputs[i].bytes))
          return internal_error("an input's size differs from the model's");
        std::memcpy(target.data(), inputs[i].data, target.get_byte_size());
      }
      HEDDLE_RETURN_IF_ERROR(openvino::infer(request_));
      for (size_t i = 0; i < outputs.size(); ++i) {
        const ov::Tensor source = request_.get_output_tensor(i);
        const ov::Shape& shape = source.get_shape();
        if (Shape(shape.begin(), shape.end()) != outputs[i].shape ||
            source.get_byte_size() != static_cast<size_t>(outputs[i].bytes))
          return internal_error("output " + std::to_string(i) + " came in the shape " +
                                shape_text(Shape(shape.begin(), shape.end())) + ", expected " +
                                shape_text(outputs[i].shape));
        if (outputs[i].data != nullptr) std::memcpy(outputs[i].data, source.data(), source.get_byte_size());
      }
      return {};
    } catch (...) {
      return current_error("running the whole model");
    }
  }

 private:
  const std::shared_ptr<const VaryingEngine> engine_;
  ov::InferRequest request_;
};

class OpenVinoVarying final : public VaryingEngine, public std::enable_shared_from_this<OpenVinoVarying> {
 public:
  OpenVinoVarying(std::shared_ptr<const VaryingModel> model, ov::CompiledModel compiled)
      : model_(std::move(model)), compiled_(std::move(compiled)) {}

  Result<std::unique_ptr<VaryingRequest>> request() override {
    try {
      return std::unique_ptr<VaryingRequest>(
          std::make_unique<OpenVinoVaryingRequest>(shared_from_this(), compiled_.create_infer_request()));
    } catch (...) {
      return current_error("making a request");
    }
  }

 private:
  const std::shared_ptr<const VaryingModel> model_;  // whose weights the compiled model may use
  ov::CompiledModel compiled_;
};

}  // namespace

Result<std::shared_ptr<VaryingEngine>> open_varying(std::shared_ptr<const VaryingModel> model,
                                                    const Device& device) {
  if (device.backend != "openvino")
    return unsupported("device '" + device.name + "' runs by " + device.backend +
                       "; only OpenVINO compiles models with open dimensions");
  try {
    auto compiled = openvino::core().compile_model(model->model(), openvino::device_name(device),
                                                   openvino::latency_config(device, 1));
    return std::shared_ptr<VaryingEngine>(
        std::make_shared<OpenVinoVarying>(std::move(model), std::move(compiled)));
  } catch (...) {
    return current_error("compiling with open dimensions for " + openvino::device_name(device));
  }
}

}  // namespace heddle
