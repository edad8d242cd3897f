#include "grpc_infer.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "open_inference.grpc.pb.h"

namespace heddle {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Names, tensors, parameters, lists: a request of a thousand inputs has some thousands. Parsed, an empty one takes up
// to a hundred times its two bytes.
constexpr int kMostParts = 1 << 16;
// A smaller message takes no memory that is worth counting exactly.
constexpr size_t kWorthCounting = size_t{64} << 10;

// Messages whose parts count.
enum class Level { kRequest, kInput, kOutput, kContents };

// Of a field's message; nullopt: its parts do not count.
std::optional<Level> below(Level level, int field) {
  using inference::ModelInferRequest;
  if (level == Level::kRequest && field == ModelInferRequest::kInputsFieldNumber) return Level::kInput;
  if (level == Level::kRequest && field == ModelInferRequest::kOutputsFieldNumber) return Level::kOutput;
  if (level == Level::kInput && field == ModelInferRequest::InferInputTensor::kContentsFieldNumber)
    return Level::kContents;
  return std::nullopt;
}

// Whether the fields of variable size up to the stream's end are at most `left`, which it lowers. What is malformed
// is left to the parser.
bool has_few_parts(CodedInputStream& in, Level level, int& left) {
  while (const uint32_t tag = in.ReadTag()) {
    if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(&in, tag)) return true;
      continue;
    }
    if (--left < 0) return false;
    uint32_t size = 0;
    if (!in.ReadVarint32(&size) || size > INT32_MAX) return true;
    const auto nested = below(level, WireFormatLite::GetTagFieldNumber(tag));
    if (!nested) {
      if (!in.Skip(static_cast<int>(size))) return true;
      continue;
    }
    const auto limit = in.PushLimit(static_cast<int>(size));
    if (!has_few_parts(in, *nested, left)) return false;
    if (in.BytesUntilLimit() != 0) return true;
    in.PopLimit(limit);
  }
  return true;
}

// A message, and what it takes of the budget.
struct Charged {
  explicit Charged(std::shared_ptr<InferBudget> its_budget) : budget(std::move(its_budget)) {}
  ~Charged() { budget->give_back(bytes); }
  Charged(const Charged&) = delete;
  Charged& operator=(const Charged&) = delete;
  bool charge(size_t more) {
    if (!budget->take(more)) return false;
    bytes += more;
    return true;
  }

  const std::shared_ptr<InferBudget> budget;
  size_t bytes = 0;
  inference::ModelInferRequest message;
};

}  // namespace

bool InferBudget::take(size_t bytes) {
  size_t now = taken_;
  do {
    if (bytes > most_ || now > most_ - bytes) return false;
  } while (!taken_.compare_exchange_weak(now, now + bytes));
  return true;
}

InferMessage read_infer_message(grpc::ByteBuffer& bytes, const std::shared_ptr<InferBudget>& budget) {
  const grpc::Status full(grpc::StatusCode::UNAVAILABLE,
                          "the requests that wait take all memory that they may; try again later");
  auto charged = std::make_shared<Charged>(budget);
  const size_t length = bytes.Length();
  if (!charged->charge(length)) return {full, nullptr};
  {
    grpc::ProtoBufferReader reader(&bytes);
    CodedInputStream in(&reader);
    int left = kMostParts;
    if (!has_few_parts(in, Level::kRequest, left))
      return {{grpc::StatusCode::INVALID_ARGUMENT,
               "more than " + std::to_string(kMostParts) + " names, tensors and parameters"},
              nullptr};
  }
  if (!grpc::SerializationTraits<inference::ModelInferRequest>::Deserialize(&bytes, &charged->message).ok())
    return {{grpc::StatusCode::INVALID_ARGUMENT, "this is no ModelInferRequest"}, nullptr};
  if (length > kWorthCounting) {
    const size_t all = charged->message.SpaceUsedLong();
    if (all > length && !charged->charge(all - length)) return {full, nullptr};
  }
  return {grpc::Status::OK, {charged, &charged->message}};
}

}  // namespace heddle
