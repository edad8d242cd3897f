#include "grpc_infer.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "grpc_message.h"
#include "heddle/base/units.h"
#include "open_inference.grpc.pb.h"

namespace heddle {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using inference::InferTensorContents;
using inference::ModelInferRequest;
using Input = ModelInferRequest::InferInputTensor;
using Output = ModelInferRequest::InferRequestedOutputTensor;

// A field's share of what is parsed, besides its text: a place in a list twice as long as it need be, a string's, a
// message's or a map entry's own size.
constexpr size_t kPartBytes = 320;
constexpr size_t kOwnBytes = 4 * kPartBytes;  // of a request without fields
constexpr size_t kNumberBytes = 32;           // of a list whose numbers come one by one
constexpr int kDeepest = 100;                 // groups in groups; the parser refuses more

// What a message is: its fields are known, or those of a stranger.
enum class Level { kRequest, kInput, kOutput, kContents, kEntry, kParameter, kStranger, kNone };

Level below(Level level, int field) {
  switch (level) {
    case Level::kRequest:
      return field == ModelInferRequest::kInputsFieldNumber       ? Level::kInput
             : field == ModelInferRequest::kOutputsFieldNumber    ? Level::kOutput
             : field == ModelInferRequest::kParametersFieldNumber ? Level::kEntry
                                                                  : Level::kNone;
    case Level::kInput:
      return field == Input::kContentsFieldNumber     ? Level::kContents
             : field == Input::kParametersFieldNumber ? Level::kEntry
                                                      : Level::kNone;
    case Level::kOutput:
      return field == Output::kParametersFieldNumber ? Level::kEntry : Level::kNone;
    case Level::kEntry:
      return field == 2 ? Level::kParameter : Level::kNone;  // a map's value
    default:
      return Level::kNone;
  }
}

// Bytes for each byte of the field: numbers of a byte become numbers of eight, in a list twice as long as need be, and
// then a tensor.
size_t growth(Level level, int field) {
  if (level == Level::kInput && field == Input::kShapeFieldNumber) return 24;
  if (level != Level::kContents) return 1;
  switch (field) {
    case InferTensorContents::kInt64ContentsFieldNumber:
    case InferTensorContents::kUint64ContentsFieldNumber:
      return 24;
    case InferTensorContents::kIntContentsFieldNumber:
    case InferTensorContents::kUintContentsFieldNumber:
      return 12;
    default:
      return 3;
  }
}

// Adds the most that the message in the stream takes once it is parsed, up to the stream's end or limit. Ends at what
// is malformed, as the parser does; false: it is.
bool add_memory(CodedInputStream& in, Level level, int depth, size_t& bytes) {
  while (const uint32_t tag = in.ReadTag()) {
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    const auto type = WireFormatLite::GetTagWireType(tag);
    if (type == WireFormatLite::WIRETYPE_END_GROUP) return level == Level::kStranger;
    const bool nests =
        type == WireFormatLite::WIRETYPE_LENGTH_DELIMITED || type == WireFormatLite::WIRETYPE_START_GROUP;
    bytes += level == Level::kContents && !nests ? kNumberBytes : kPartBytes;
    uint64_t number = 0;
    uint32_t size = 0;
    switch (type) {
      case WireFormatLite::WIRETYPE_VARINT:
        if (!in.ReadVarint64(&number)) return false;
        break;
      case WireFormatLite::WIRETYPE_FIXED64:
        if (!in.ReadLittleEndian64(&number)) return false;
        break;
      case WireFormatLite::WIRETYPE_FIXED32:
        if (!in.ReadLittleEndian32(&size)) return false;
        break;
      case WireFormatLite::WIRETYPE_START_GROUP:
        if (depth == kDeepest || !add_memory(in, Level::kStranger, depth + 1, bytes)) return false;
        break;
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED: {
        if (!in.ReadVarint32(&size) || size > INT32_MAX) return false;
        const Level nested = below(level, field);
        if (nested == Level::kNone) {
          bytes += size * growth(level, field);
          if (!in.Skip(static_cast<int>(size))) return false;
          break;
        }
        const auto limit = in.PushLimit(static_cast<int>(size));
        if (!add_memory(in, nested, depth, bytes) || in.BytesUntilLimit() != 0) return false;
        in.PopLimit(limit);
        break;
      }
      default:
        return false;
    }
  }
  return true;
}

struct Charged {
  explicit Charged(std::shared_ptr<MemoryBudget> budget) : memory(std::move(budget)) {}
  MemoryCharge memory;
  ModelInferRequest message;
};

// An answer's bytes, which gRPC holds.
struct ChargedText {
  explicit ChargedText(std::shared_ptr<MemoryBudget> budget) : memory(std::move(budget)) {}
  MemoryCharge memory;
  std::string text;
};

}  // namespace

ReadInferMessage read_infer_message(grpc::ByteBuffer& bytes, const std::shared_ptr<MemoryBudget>& budget) {
  const auto charged = std::make_shared<Charged>(budget);
  size_t most = bytes.Length() + kOwnBytes;  // the text is there until it is parsed
  {
    grpc::ProtoBufferReader reader(&bytes);
    CodedInputStream in(&reader);
    add_memory(in, Level::kRequest, 0, most);
  }
  if (most > budget->most())
    return {{grpc::StatusCode::RESOURCE_EXHAUSTED,
             "the request may take " + format_bytes(static_cast<int64_t>(most)) +
                 " once it is read, more than all requests may (--max-memory); raw contents take least"},
            nullptr};
  if (!charged->memory.take(most))
    return {{grpc::StatusCode::UNAVAILABLE,
             "the requests that wait take all memory that they may; try again later"},
            nullptr};
  if (!grpc::SerializationTraits<ModelInferRequest>::Deserialize(&bytes, &charged->message).ok())
    return {{grpc::StatusCode::INVALID_ARGUMENT, "this is no ModelInferRequest"}, nullptr};
  // Typed contents become tensors besides, which are no larger.
  const auto& inputs = charged->message.inputs();
  const bool typed = std::ranges::any_of(inputs, [](const auto& input) { return input.has_contents(); });
  charged->memory.keep(charged->message.SpaceUsedLong() * (typed ? 2 : 1));
  return {grpc::Status::OK, {charged, &charged->message}};
}

Result<InferRequest> infer_request_of(const InferMessage& message) {
  HEDDLE_ASSIGN_OR_RETURN(InferRequest request, infer_request_from_proto(*message));
  using Owners = std::pair<std::shared_ptr<const void>, InferMessage>;
  for (auto& input : request.inputs) {
    if (input.owner)
      input.owner = std::make_shared<Owners>(std::move(input.owner), message);
    else
      input.owner = message;
  }
  request.owner = message;
  return request;
}

grpc::Status write_infer_answer(const InferResponse& answer, const std::shared_ptr<MemoryBudget>& budget,
                                grpc::ByteBuffer& bytes) {
  // On a device's thread: nothing may escape.
  try {
    auto charged = std::make_unique<ChargedText>(budget);
    {
      inference::ModelInferResponse message;
      infer_response_to_proto(answer, message);
      charged->memory.count(message.ByteSizeLong());
      if (!message.SerializeToString(&charged->text))
        return {grpc::StatusCode::INTERNAL, "the answer is larger than a message of gRPC may be"};
    }
    std::string& text = charged->text;
    const grpc::Slice slice(
        text.data(), text.size(), [](void* its) { delete static_cast<ChargedText*>(its); }, charged.get());
    // The slice owns it from here on. NOLINTNEXTLINE(bugprone-unused-return-value)
    charged.release();
    bytes = grpc::ByteBuffer(&slice, 1);
    return grpc::Status::OK;
  } catch (const std::exception& e) {
    return {grpc::StatusCode::INTERNAL, e.what()};
  }
}

}  // namespace heddle
