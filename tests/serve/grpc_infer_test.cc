// How a server reads the messages of gRPC's clients and writes its answers, within its memory.
#include "protocol/grpc_infer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "open_inference.grpc.pb.h"
#include "protocol/grpc_message.h"

namespace heddle {
namespace {

using testing::HasSubstr;

grpc::ByteBuffer buffer_of(const std::string& text) {
  const grpc::Slice slice(text);
  return {&slice, 1};
}

std::string repeated(const std::string& part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

// A field of a message or string, with its tag's byte.
std::string field(char number, const std::string& content) {
  std::string text(1, static_cast<char>(number * 8 + 2));
  size_t size = content.size();
  for (; size >= 128; size /= 128) text += static_cast<char>(size % 128 + 128);
  return text + static_cast<char>(size) + content;
}

std::string large_request(size_t bytes) {
  inference::ModelInferRequest request;
  request.set_model_name("m");
  auto& input = *request.add_inputs();
  input.set_name("x");
  input.set_datatype("UINT8");
  input.add_shape(static_cast<int64_t>(bytes));
  request.add_raw_input_contents(std::string(bytes, 'x'));
  return request.SerializeAsString();
}

grpc::Status status_of(const std::string& text, size_t most) {
  auto bytes = buffer_of(text);
  return read_infer_message(bytes, std::make_shared<MemoryBudget>(most)).status;
}

TEST(GrpcInfer, TakesMemoryUntilTheLastReaderIsGone) {
  const auto budget = std::make_shared<MemoryBudget>(5'000'000);
  auto bytes = buffer_of(large_request(1'000'000));
  auto read = read_infer_message(bytes, budget);
  ASSERT_NE(read.message, nullptr) << read.status.error_message();
  EXPECT_EQ(bytes.Length(), 0U);
  EXPECT_GE(budget->taken(), 1'000'000U);
  EXPECT_LT(budget->taken(), 1'100'000U);
  auto request = infer_request_of(std::exchange(read.message, nullptr));
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->inputs.front().bytes, 1'000'000);

  auto more = buffer_of(large_request(2'200'000));
  EXPECT_EQ(read_infer_message(more, budget).status.error_code(), grpc::StatusCode::UNAVAILABLE);
  more = buffer_of(large_request(3'000'000));  // twice while it is read
  EXPECT_EQ(read_infer_message(more, budget).status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  auto sent = request->inputs.front().owner;  // to a worker, perhaps
  *request = {};
  EXPECT_GE(budget->taken(), 1'000'000U);
  sent.reset();
  EXPECT_EQ(budget->taken(), 0U);
}

// Tensors are made of typed contents. A request without any may have a long id.
TEST(GrpcInfer, TakesMemoryForTypedContentsAndWithoutInputs) {
  const auto budget = std::make_shared<MemoryBudget>(size_t{1} << 26);
  inference::ModelInferRequest message;
  auto& input = *message.add_inputs();
  input.set_name("x");
  input.set_datatype("UINT8");
  input.add_shape(200'000);
  input.mutable_contents()->mutable_uint_contents()->Resize(200'000, 7);
  auto bytes = buffer_of(message.SerializeAsString());
  std::optional<InferRequest> request = *infer_request_of(read_infer_message(bytes, budget).message);
  EXPECT_GE(budget->taken(), 1'000'000U);  // four bytes each, and one in the tensor
  request->owner = nullptr;
  EXPECT_GE(budget->taken(), 1'000'000U);
  request.reset();
  EXPECT_EQ(budget->taken(), 0U);

  message.Clear();
  message.set_id(std::string(4096, 'i'));
  bytes = buffer_of(message.SerializeAsString());
  request = *infer_request_of(read_infer_message(bytes, budget).message);
  EXPECT_GE(budget->taken(), 4096U);
  request.reset();
  EXPECT_EQ(budget->taken(), 0U);
  message.set_id(std::string(5000, 'i'));
  EXPECT_FALSE(infer_request_from_proto(message).ok());
}

TEST(GrpcInfer, CountsWhatAMessageTakesBeforeItIsParsed) {
  // A byte for each number becomes eight.
  inference::ModelInferRequest request;
  request.add_inputs()->mutable_contents()->mutable_int64_contents()->Resize(500'000, 1);
  const auto text = request.SerializeAsString();
  ASSERT_LT(text.size(), 600'000U);
  EXPECT_EQ(status_of(text, 4'000'000).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(status_of(text, 20'000'000).ok());

  // Parsed, an empty part takes up to a hundred times its two bytes.
  constexpr int kMany = 70'000;
  const std::string group = "\x7b\x7c";
  for (const auto& parts :
       {repeated(field(5, ""), kMany), repeated(field(6, ""), kMany), repeated(field(7, ""), kMany),
        repeated(field(4, ""), kMany), repeated(field(15, ""), kMany), repeated(group, kMany),
        repeated("\x78\x01", kMany), field(5, repeated(field(4, ""), kMany)),
        field(5, field(5, repeated(field(8, ""), kMany))), field(6, repeated(field(2, ""), kMany)),
        field(4, field(2, repeated(field(15, ""), kMany))), "\x7b" + repeated(group, kMany) + "\x7c",
        repeated(field(5, repeated(field(4, ""), 100)), kMany / 100)}) {
    const auto status = status_of(parts, 20'000'000);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << parts.substr(0, 8);
    EXPECT_THAT(status.error_message(), HasSubstr("--max-memory"));
    const auto budget = std::make_shared<MemoryBudget>(size_t{1} << 30);
    auto bytes = buffer_of(parts);
    const auto read = read_infer_message(bytes, budget);
    ASSERT_NE(read.message, nullptr) << parts.substr(0, 8);
    EXPECT_GE(budget->taken(), read.message->SpaceUsedLong()) << parts.substr(0, 8);
  }
  EXPECT_TRUE(status_of(repeated(field(5, field(1, "x") + field(2, "FP32")), 1000), 20'000'000).ok());
  EXPECT_TRUE(status_of("", 2000).ok());
  // A name with the bytes of tags in it has no parts.
  EXPECT_TRUE(status_of(field(1, repeated(field(5, ""), kMany)), 20'000'000).ok());
}

TEST(GrpcInfer, AnswersTakeMemoryUntilTheyAreSent) {
  const auto budget = std::make_shared<MemoryBudget>(1000);
  const std::vector<std::byte> values(5000);
  InferResponse answer;
  answer.model = "m";
  answer.outputs.push_back({"y", DType::kU8, {5000}, values.data(), 5000, nullptr});
  grpc::ByteBuffer bytes;
  ASSERT_TRUE(write_infer_answer(answer, budget, bytes).ok());
  EXPECT_EQ(budget->taken(), bytes.Length());
  EXPECT_FALSE(budget->take(1));
  inference::ModelInferResponse message;
  ASSERT_TRUE(grpc::SerializationTraits<inference::ModelInferResponse>::Deserialize(&bytes, &message).ok());
  EXPECT_EQ(message.raw_output_contents(0).size(), 5000U);
  EXPECT_EQ(budget->taken(), 0U);
}

TEST(GrpcInfer, RefusesWhatIsNoMessage) {
  const auto budget = std::make_shared<MemoryBudget>(100'000);
  for (const std::string& text :
       {std::string("\x2a"), std::string("\x2a\x05"),
        std::string("\x2a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), std::string("\x2a\x03\x2a\x05\x01"),
        std::string("\xff\xff\xff\xff\xff"), std::string("\x07"), std::string("\x2b\x2b\x2b")}) {
    auto bytes = buffer_of(text);
    const auto read = read_infer_message(bytes, budget);
    EXPECT_EQ(read.message, nullptr);
    EXPECT_EQ(read.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  EXPECT_EQ(budget->taken(), 0U);
}

}  // namespace
}  // namespace heddle
