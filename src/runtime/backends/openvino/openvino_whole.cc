// Runs the unsplit model with OpenVINO alone, for reference outputs and comparisons.
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>

#include "heddle/graph/model.h"
#include "openvino_session.h"
#include "run/whole_engine.h"

namespace heddle {
namespace {

using openvino::current_error;

// "HETERO:GPU,CPU": all devices that OpenVINO finds here, the CPU last, which runs what the others cannot.
std::string all_devices(const char* plugin) {
  auto devices = openvino::core().get_available_devices();
  std::stable_partition(devices.begin(), devices.end(),
                        [](const std::string& name) { return name != "CPU"; });
  std::string text = plugin;
  for (size_t i = 0; i < devices.size(); ++i) text += (i == 0 ? ":" : ",") + devices[i];
  return text;
}

ov::CompiledModel compile_whole(Engine engine, const Model& model, bool throughput) {
  using ov::hint::PerformanceMode;
  const auto hint = throughput ? PerformanceMode::THROUGHPUT : PerformanceMode::LATENCY;
  auto& core = openvino::core();
  const ov::AnyMap plain = {ov::hint::performance_mode(hint)};
  if (engine == Engine::kOpenVinoHetero)
    return core.compile_model(model.whole(), all_devices("HETERO"), plain);
  if (engine == Engine::kOpenVinoAuto) return core.compile_model(model.whole(), all_devices("AUTO"), plain);
  const auto precision = engine == Engine::kOpenVinoF32 ? std::optional(Precision::kF32) : std::nullopt;
  return core.compile_model(model.whole(), "CPU", openvino::whole_cpu_config(hint, precision));
}

// Copies of the request's outputs.
Result<std::vector<TensorValue>> outputs_of(ov::InferRequest& request) {
  std::vector<TensorValue> values;
  try {
    for (size_t i = 0; i < request.get_compiled_model().outputs().size(); ++i) {
      const ov::Tensor tensor = request.get_output_tensor(i);
      const ov::Shape& shape = tensor.get_shape();
      const auto dtype = openvino::dtype_of(tensor.get_element_type());
      if (!dtype)
        return unsupported("an output's element type cannot be compared: " +
                           tensor.get_element_type().get_type_name());
      HEDDLE_ASSIGN_OR_RETURN(TensorValue value, make_tensor(*dtype, Shape(shape.begin(), shape.end())));
      std::memcpy(value.data.get(), tensor.data(), static_cast<size_t>(value.bytes));
      values.push_back(std::move(value));
    }
  } catch (...) {
    return current_error("reading outputs");
  }
  return values;
}

// Requests that follow each other, some at once.
struct Burst {
  std::mutex mutex;
  std::condition_variable changed;
  int issued = 0, left = 0;
  bool failed = false;

  // One has ended. Whether another is to begin in its place.
  bool goes_on(int count, bool with_error) {
    const std::lock_guard lock(mutex);
    failed |= with_error;
    --left;
    const bool again = issued < count && !failed;
    issued += again ? 1 : 0;
    if (left == 0 || failed) changed.notify_one();
    return again;
  }
  void fail() {
    const std::lock_guard lock(mutex);
    failed = true;
    changed.notify_one();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return left == 0 || failed; });
  }
};

void start(ov::InferRequest& request, Burst& burst) {
  try {
    request.start_async();
  } catch (...) {
    burst.fail();  // nothing may leave a callback
  }
}

class OpenVinoWhole final : public WholeEngine {
 public:
  Status build(Engine engine, const Model& model, bool throughput, std::span<const TensorValue> inputs) {
    try {
      compiled_ = compile_whole(engine, model, throughput);
      const uint32_t count = throughput ? compiled_.get_property(ov::optimal_number_of_infer_requests) : 1;
      for (uint32_t i = 0; i < std::max(count, 1U); ++i) {
        requests_.push_back(compiled_.create_infer_request());
        HEDDLE_RETURN_IF_ERROR(openvino::copy_inputs(requests_.back(), inputs));
      }
      return {};
    } catch (...) {
      return current_error("compiling the whole model");
    }
  }

  int requests() const override { return static_cast<int>(requests_.size()); }

  Status infer() override {
    try {
      return openvino::infer(requests_.front());
    } catch (...) {
      return current_error("running the whole model");
    }
  }

  Status infer_many(int count) override {
    // Shared with the callbacks, of which one may come after a failure.
    const auto burst = std::make_shared<Burst>();
    burst->left = count;
    try {
      for (auto& request : requests_) {
        request.set_callback([burst, count, &own = request](const std::exception_ptr& error) {
          if (burst->goes_on(count, error != nullptr)) start(own, *burst);
        });
      }
      burst->issued = std::min(count, requests());
      for (int i = 0, first = burst->issued; i < first; ++i) start(requests_[static_cast<size_t>(i)], *burst);
    } catch (...) {
      burst->fail();
    }
    burst->wait();
    Status ended = burst->failed ? unsupported("OpenVINO failed at running the whole model") : Status();
    // Each has come to rest before the next burst, also if another failed.
    for (auto& request : requests_) {
      try {
        request.wait();
        request.set_callback([](const std::exception_ptr&) {});
      } catch (...) {
        ended = current_error("running the whole model");
      }
    }
    return ended;
  }

  Result<std::vector<TensorValue>> outputs() override { return outputs_of(requests_.front()); }

 private:
  ov::CompiledModel compiled_;
  std::vector<ov::InferRequest> requests_;
};

}  // namespace

Result<std::unique_ptr<WholeEngine>> open_whole_openvino(Engine engine, const Model& model, bool throughput,
                                                         std::span<const TensorValue> inputs) {
  auto whole = std::make_unique<OpenVinoWhole>();
  HEDDLE_RETURN_IF_ERROR(whole->build(engine, model, throughput, inputs));
  return std::unique_ptr<WholeEngine>(std::move(whole));
}

Result<std::vector<std::vector<TensorValue>>> unsplit_outputs(
    const Model& model, Precision precision, std::span<const std::vector<TensorValue>> samples) {
  std::vector<std::vector<TensorValue>> all;
  try {
    const auto has = openvino::device_precisions("CPU");
    if (std::find(has.begin(), has.end(), precision) == has.end())
      return unsupported(std::string("OpenVINO's CPU does not compute in ") + precision_name(precision) +
                         " here");
    auto compiled = openvino::core().compile_model(
        model.whole(), "CPU", openvino::whole_cpu_config(ov::hint::PerformanceMode::LATENCY, precision));
    ov::InferRequest request = compiled.create_infer_request();
    for (const auto& inputs : samples) {
      HEDDLE_RETURN_IF_ERROR(openvino::copy_inputs(request, inputs));
      HEDDLE_RETURN_IF_ERROR(openvino::infer(request));
      HEDDLE_ASSIGN_OR_RETURN(auto outputs, outputs_of(request));
      all.push_back(std::move(outputs));
    }
  } catch (...) {
    return current_error("running the whole model");
  }
  return all;
}

}  // namespace heddle
