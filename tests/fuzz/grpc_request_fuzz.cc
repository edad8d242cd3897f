// What gRPC's clients and model repositories say (open_inference.proto, model_config.proto). Frames (proto_mutator.h):
//   i  a request for an inference: refused with a message, or every tensor has the bytes that its shape says; what a
//      model accepts of them can be answered, by gRPC and as JSON
//   m  a model's configuration, written as the text of a config.pbtxt    c  such a text: refused with a message, or the
//      settings are in range
#include <google/protobuf/text_format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "answer.h"
#include "heddle/base/temporary_file.h"
#include "heddle/serve/served_model.h"
#include "input_file.h"
#include "proto_mutator.h"
#include "protocol/grpc_infer.h"
#include "protocol/grpc_message.h"
#include "protocol/infer_check.h"
#include "protocol/infer_json.h"
#include "protocol/model_config.h"
#include "require.h"

extern const std::string_view kFrameTags = "iiimc";

std::unique_ptr<google::protobuf::Message> message_of(char tag) {
  if (tag == 'i') return std::make_unique<inference::ModelInferRequest>();
  if (tag == 'm') return std::make_unique<inference::ModelConfig>();
  return nullptr;
}

namespace {

using namespace heddle;

TensorInfo tensor(const char* name, DType dtype, const Shape& row, bool state = false) {
  TensorInfo info;
  info.name = name;
  info.dtype = dtype;
  info.row = row;
  info.row_bytes = tensor_bytes(dtype, row).value();
  info.state = state;
  return info;
}

// In batches with levels of priority; with a session's state; of varying shapes; without a file.
std::vector<std::shared_ptr<ServedModel>> make_models() {
  std::vector<std::shared_ptr<ServedModel>> models;
  const auto plain = std::make_shared<ServedModel>();
  plain->name = "plain";
  plain->version = "1";
  plain->inputs = {tensor("x", DType::kF32, {3}), tensor("k", DType::kI64, {2, 2})};
  plain->outputs = {tensor("y", DType::kF16, {2}), tensor("z", DType::kBool, {1})};
  plain->batched = true;
  plain->max_rows = 4;
  plain->priority_levels = 3;
  plain->default_priority = 2;
  models.push_back(plain);
  const auto session = std::make_shared<ServedModel>(*plain);
  session->batched = false;
  session->inputs.push_back(tensor("s", DType::kF32, {1}, true));
  session->outputs.push_back(tensor("t", DType::kF32, {1}, true));
  const auto state = std::make_shared<SessionState>();
  state->tensors = {{.input = 2, .output = 2, .row_bytes = 4, .initial = {}}};
  state->idle_ns = 1'000'000'000;
  session->state = state;
  models.push_back(session);
  const auto varying = std::make_shared<ServedModel>(*plain);
  varying->inputs[0].open = {-1};
  const auto shapes = std::make_shared<VaryingShapes>();
  shapes->buckets = {{"3", {{3}, {2, 2}}, {{2}, {1}}}};
  varying->varying = shapes;
  models.push_back(varying);
  models.push_back(timed_model("timed", 1000, true));
  return models;
}

void check_inference(const inference::ModelInferRequest& message) {
  const auto request = infer_request_from_proto(message);
  if (!request.ok()) {
    const auto status = grpc_status(request.error());
    return require(!status.ok() && !status.error_message().empty());
  }
  require(request->priority >= 0 && request->timeout_us >= 0 && request->inputs.size() <= kMostTensors);
  const auto response = answer_to(*request);
  static const auto kModels = make_models();
  for (const auto& model : kModels) {
    const auto checked = check_request(*model, *request);
    if (!checked.ok()) {
      require(!checked.error().message().empty());
      continue;
    }
    require(checked->rows >= 1 && checked->rows <= model->max_rows &&
            checked->inputs.size() == model->inputs.size());
    for (const size_t o : checked->outputs) require(o < model->outputs.size());
    (void)triton_config(*model, 1);
  }
  inference::ModelInferResponse answer;
  infer_response_to_proto(response, answer);
  require(answer.raw_output_contents_size() == answer.outputs_size());
  check_body_of(response);
}

void check_config(const std::string& text) {
  static const TemporaryFile kFile("config.pbtxt");
  write_input(kFile.path(), text);
  ModelSettings settings;
  const auto status = read_triton_config(kFile.path(), settings);
  if (!status.ok()) return require(!status.error().message().empty());
  require(settings.max_batch >= 1 && settings.max_batch <= kMostServedBatch);
  require(settings.default_priority <= settings.priority_levels && settings.priority_levels < kLastPriority);
  require(settings.session_idle_us > 0);
  for (const auto& [name, shape] : settings.shapes)
    for (const auto d : shape) require(d >= 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const auto& frame : frames_of({reinterpret_cast<const char*>(data), size})) {
    if (frame.tag == 'i') {
      static const auto kBudget = std::make_shared<MemoryBudget>(size_t{1} << 30);
      const grpc::Slice slice(frame.bytes);
      grpc::ByteBuffer bytes(&slice, 1);
      if (const auto read = read_infer_message(bytes, kBudget); read.message) {
        require(kBudget->taken() >= read.message->SpaceUsedLong());
        check_inference(*read.message);
      } else {
        require(!read.status.ok() && !read.status.error_message().empty());
      }
      require(kBudget->taken() == 0);
    } else if (frame.tag == 'm') {
      std::string text;
      if (inference::ModelConfig m;
          m.ParseFromString(frame.bytes) && google::protobuf::TextFormat::PrintToString(m, &text))
        check_config(text);
    } else if (frame.tag == 'c') {
      check_config(frame.bytes);
    }
  }
  return 0;
}
