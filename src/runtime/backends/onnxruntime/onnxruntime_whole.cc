// Runs the unsplit model with ONNX Runtime alone, for comparisons: its CPU provider, from the model's file.
//
// Latency: a session as it comes, with a thread per core. Throughput: a thread of our own per core, each in a Run
// of one session that has no threads of its own, which is how ONNX Runtime serves most requests on a CPU.
#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "heddle/base/errors.h"
#include "heddle/base/own_cores.h"
#include "heddle/graph/model.h"
#include "heddle/graph/onnxruntime_session.h"
#include "run/whole_engine.h"

namespace heddle {
namespace {

using onnxruntime::Api;
using onnxruntime::checked;
using onnxruntime::kElementTypes;
using onnxruntime::Values;

class OnnxRuntimeWhole final : public WholeEngine {
 public:
  explicit OnnxRuntimeWhole(const Api& api) : api_(api), inputs_(api), outputs_(api) {}

  Status build(const Model& model, bool throughput, std::span<const TensorValue> inputs) {
    requests_ = throughput ? static_cast<int>(std::max<size_t>(1, own_cores().size())) : 1;
    HEDDLE_RETURN_IF_ERROR(make_session(model.path(), throughput));
    HEDDLE_RETURN_IF_ERROR(read_names());
    values_.assign(inputs.begin(), inputs.end());
    // In the order of the graph's inputs, which the session names in its own.
    const Graph& graph = *model.graph();
    for (const std::string& name : input_names_) {
      size_t at = 0;
      while (at < graph.inputs().size() && graph.tensor(graph.inputs()[at]).name != name) ++at;
      if (at == graph.inputs().size())
        return unsupported("ONNX Runtime wants the input '" + name +
                           "', which the imported model does not have");
      const TensorValue& value = values_[at];
      HEDDLE_RETURN_IF_ERROR(inputs_.add(value.dtype, value.shape, value.data.get(), value.bytes));
    }
    return {};
  }

  int requests() const override { return requests_; }

  Status infer() override { return run(outputs_); }

  Status infer_many(int count) override {
    std::atomic<int> left = count;
    std::vector<Status> outcomes(static_cast<size_t>(requests_));
    std::vector<std::thread> threads;
    for (Status& outcome : outcomes) {
      threads.emplace_back([this, &left, &outcome] {
        Values outputs(api_);
        while (outcome.ok() && left.fetch_sub(1) > 0) outcome = run(outputs);
      });
    }
    for (auto& thread : threads) thread.join();
    for (Status& outcome : outcomes) HEDDLE_RETURN_IF_ERROR(std::move(outcome));
    return {};
  }

  Result<std::vector<TensorValue>> outputs() override {
    std::vector<TensorValue> values;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      HEDDLE_ASSIGN_OR_RETURN(auto value, copy_of(outputs_[i]));
      values.push_back(std::move(value));
    }
    return values;
  }

 private:
  Status make_session(const std::string& path, bool throughput) {
    if (!path.ends_with(".onnx")) return unsupported(path + ": ONNX Runtime reads .onnx files only");
    HEDDLE_ASSIGN_OR_RETURN(
        session_, with_context(onnxruntime::open_session(
                                   api_,
                                   [&](onnxruntime::SessionOptions* options) -> Status {
                                     if (!throughput) return {};
                                     return checked(api_, api_.set_intra_op_threads(options, 1),
                                                    "setting threads");
                                   },
                                   [&](onnxruntime::SessionOptions* options, onnxruntime::Session** session) {
                                     return api_.create_session(api_.env, path.c_str(), options, session);
                                   }),
                               path));
    return {};
  }

  template <class Count, class Name>
  Status read_names(const Count& count, const Name& name, std::vector<std::string>& names) {
    onnxruntime::Allocator* allocator = nullptr;
    HEDDLE_RETURN_IF_ERROR(checked(api_, api_.default_allocator(&allocator), "finding its allocator"));
    size_t number = 0;
    HEDDLE_RETURN_IF_ERROR(checked(api_, count(session_.get(), &number), "counting inputs and outputs"));
    for (size_t i = 0; i < number; ++i) {
      char* text = nullptr;
      HEDDLE_RETURN_IF_ERROR(
          checked(api_, name(session_.get(), i, allocator, &text), "naming inputs and outputs"));
      names.emplace_back(text);
      HEDDLE_RETURN_IF_ERROR(checked(api_, api_.free(allocator, text), "freeing a name"));
    }
    return {};
  }
  Status read_names() {
    HEDDLE_RETURN_IF_ERROR(read_names(api_.input_count, api_.input_name, input_names_));
    HEDDLE_RETURN_IF_ERROR(read_names(api_.output_count, api_.output_name, output_names_));
    for (const auto& name : input_names_) input_texts_.push_back(name.c_str());
    for (const auto& name : output_names_) output_texts_.push_back(name.c_str());
    return {};
  }

  // Const: several threads run one session at once.
  Status run(Values& outputs) const {
    outputs.expect(output_texts_.size());
    return checked(api_,
                   api_.run(session_.get(), nullptr, input_texts_.data(), inputs_.inputs(), inputs_.size(),
                            output_texts_.data(), outputs.size(), outputs.outputs()),
                   "running the whole model");
  }

  Result<TensorValue> copy_of(onnxruntime::Value* value) const {
    HEDDLE_ASSIGN_OR_RETURN(const auto tensor, onnxruntime::tensor_info(api_, value));
    if (tensor.type == 0) return unsupported("an output of ONNX Runtime is no tensor");
    for (const auto& [dtype, number] : kElementTypes) {
      if (number != tensor.type) continue;
      HEDDLE_ASSIGN_OR_RETURN(TensorValue copy, make_tensor(dtype, tensor.shape));
      std::memcpy(copy.data.get(), tensor.data, static_cast<size_t>(copy.bytes));
      return copy;
    }
    return unsupported("an output of ONNX Runtime has the unknown element type " +
                       std::to_string(tensor.type));
  }

  const Api& api_;
  int requests_ = 1;
  onnxruntime::SessionPtr session_{nullptr, api_.release_session};
  std::vector<std::string> input_names_, output_names_;
  std::vector<const char*> input_texts_, output_texts_;
  std::vector<TensorValue> values_;  // own the inputs' memory
  Values inputs_, outputs_;
};

}  // namespace

Result<std::unique_ptr<WholeEngine>> open_whole_onnxruntime(const Model& model, bool throughput,
                                                            std::span<const TensorValue> inputs) {
  HEDDLE_ASSIGN_OR_RETURN(const Api* api, onnxruntime::library());
  auto whole = std::make_unique<OnnxRuntimeWhole>(*api);
  HEDDLE_RETURN_IF_ERROR(whole->build(model, throughput, inputs));
  return std::unique_ptr<WholeEngine>(std::move(whole));
}

}  // namespace heddle
