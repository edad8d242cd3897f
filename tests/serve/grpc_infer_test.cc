// How a server reads the messages of gRPC's clients: within its memory, and never more parts than a request may have.
#include "protocol/grpc_infer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

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

TEST(GrpcInfer, TakesMemoryUntilTheLastReaderIsGone) {
  const auto budget = std::make_shared<InferBudget>(3'000'000);
  auto bytes = buffer_of(large_request(1'000'000));
  auto read = read_infer_message(bytes, budget);
  ASSERT_NE(read.message, nullptr) << read.status.error_message();
  EXPECT_EQ(bytes.Length(), 0U);
  EXPECT_GE(budget->taken(), 1'000'000U);
  const auto request = infer_request_from_proto(*read.message);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->inputs.front().bytes, 1'000'000);

  auto more = buffer_of(large_request(2'000'000));
  const auto refused = read_infer_message(more, budget);
  EXPECT_EQ(refused.message, nullptr);
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  auto kept = std::exchange(read.message, nullptr);
  EXPECT_GE(budget->taken(), 1'000'000U);
  kept.reset();
  EXPECT_EQ(budget->taken(), 0U);
}

TEST(GrpcInfer, CountsWhatAMessageTakesOnceItIsParsed) {
  // A byte for each number becomes eight.
  inference::ModelInferRequest request;
  auto& numbers = *request.add_inputs()->mutable_contents()->mutable_int64_contents();
  numbers.Resize(500'000, 1);
  const auto text = request.SerializeAsString();
  ASSERT_LT(text.size(), 600'000U);
  auto bytes = buffer_of(text);
  EXPECT_EQ(read_infer_message(bytes, std::make_shared<InferBudget>(2'000'000)).status.error_code(),
            grpc::StatusCode::UNAVAILABLE);
  bytes = buffer_of(text);
  const auto budget = std::make_shared<InferBudget>(20'000'000);
  const auto read = read_infer_message(bytes, budget);
  ASSERT_NE(read.message, nullptr);
  EXPECT_GE(budget->taken(), 4'000'000U);
}

TEST(GrpcInfer, RefusesMessagesOfTooManyParts) {
  const auto budget = std::make_shared<InferBudget>(size_t{1} << 30);
  const auto code = [&budget](const std::string& text) {
    auto bytes = buffer_of(text);
    return read_infer_message(bytes, budget).status;
  };
  constexpr int kMany = 70'000;
  for (const auto& text :
       {repeated(field(5, ""), kMany), repeated(field(6, ""), kMany), repeated(field(7, ""), kMany),
        repeated(field(4, ""), kMany), repeated(field(15, ""), kMany),
        field(5, repeated(field(4, ""), kMany)), field(5, field(5, repeated(field(8, ""), kMany))),
        field(6, repeated(field(2, ""), kMany)),
        repeated(field(5, repeated(field(4, ""), 100)), kMany / 100)}) {
    const auto status = code(text);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("more than 65536"));
  }
  EXPECT_TRUE(code(repeated(field(5, field(1, "x") + field(2, "FP32")), 1000)).ok());
  EXPECT_TRUE(code("").ok());
  // A name with the bytes of tags in it has no parts.
  EXPECT_TRUE(code(field(1, repeated(field(5, ""), kMany))).ok());
  EXPECT_EQ(budget->taken(), 0U);
}

TEST(GrpcInfer, RefusesWhatIsNoMessage) {
  const auto budget = std::make_shared<InferBudget>(1000);
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
