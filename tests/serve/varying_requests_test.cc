// Requests of varying shape by gRPC, and in sessions of models with state.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heddle/serve/grpc_server.h"
#include "heddle/serve/load.h"
#include "open_inference.grpc.pb.h"
#include "varying_support.h"

namespace heddle {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;
namespace ow = onnx_writer;

// Requests of these shapes within a tenth of a second: each is answered by 200.
void expect_load_answered(const LoadTarget& target, const std::string& trace, int requests) {
  const auto shapes = parse_shape_trace(trace);
  ASSERT_TRUE(shapes.ok());
  const auto models = load_models(target, {}, {.payload_bytes = 0, .shapes = *shapes, .seed = 1});
  ASSERT_TRUE(models.ok()) << models.error().to_string();
  std::vector<Arrival> arrivals;
  for (int i = 0; i < requests; ++i) arrivals.push_back({i * (kNsPerSecond / 10 / requests), 0});
  const auto result = run_load(target, *models, arrivals, {});
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(result->statuses.at(200), static_cast<uint64_t>(requests)) << load_text(*result, 1);
}

class VaryingByGrpc : public Varying {
 protected:
  void listen() {
    auto server = GrpcServer::start({}, service_);
    ASSERT_TRUE(server.ok());
    grpc_ = std::move(*server);
    stub_ = inference::GRPCInferenceService::NewStub(grpc::CreateChannel(
        "127.0.0.1:" + std::to_string(grpc_->port()), grpc::InsecureChannelCredentials()));
  }
  void TearDown() override {
    if (grpc_) grpc_->stop(5);
    Varying::TearDown();
  }
  // Of x, as raw bytes or as typed values.
  std::pair<grpc::Status, inference::ModelInferResponse> ask(const Shape& shape, const std::vector<float>& x,
                                                             bool raw) {
    inference::ModelInferRequest request;
    request.set_model_name("net");
    auto& input = *request.add_inputs();
    input.set_name("x");
    input.set_datatype("FP32");
    for (const auto d : shape) input.add_shape(d);
    if (raw)
      request.add_raw_input_contents(ow::raw_of(x));
    else
      input.mutable_contents()->mutable_fp32_contents()->Add(x.begin(), x.end());
    grpc::ClientContext context;
    std::pair<grpc::Status, inference::ModelInferResponse> answer;
    answer.first = stub_->ModelInfer(&context, request, &answer.second);
    return answer;
  }
  void expect_output(const Shape& shape, const std::vector<float>& x, bool raw, const std::vector<float>& y) {
    const auto [status, answer] = ask(shape, x, raw);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_EQ(answer.outputs_size(), 1);
    const auto& of = answer.outputs(0).shape();
    EXPECT_EQ(Shape(of.begin(), of.end()), shape);
    ASSERT_EQ(answer.raw_output_contents_size(), 1);
    ASSERT_EQ(answer.raw_output_contents(0).size(), y.size() * sizeof(float));
    std::vector<float> values(y.size());
    std::memcpy(values.data(), answer.raw_output_contents(0).data(), answer.raw_output_contents(0).size());
    EXPECT_THAT(values, Pointwise(FloatNear(1e-5F), y)) << shape_text(shape);
  }

  std::unique_ptr<GrpcServer> grpc_;
  std::unique_ptr<inference::GRPCInferenceService::Stub> stub_;
};

TEST_F(VaryingByGrpc, PaddedAnswersAreThoseOfTheUnpaddedModel) {
  start(column_model(), buckets({"x=1,3,{4,8,16}"}), 4);
  ASSERT_EQ(smaller(), SmallerRuns::kPadded) << note();
  listen();
  for (int64_t width = 1; width <= 16; ++width) {
    const Shape shape = {width % 3 + 1, 3, width};
    const auto x = some_numbers(shape, static_cast<float>(width));
    std::vector<float> y;
    for (size_t i = 0; i < x.size(); ++i)
      y.push_back(std::max(0.F, x[i] + static_cast<float>(i / static_cast<size_t>(width) % 3 + 1)));
    expect_output(shape, x, width % 2 == 0, y);
  }
}

TEST_F(VaryingByGrpc, RequestsRunAtTheirOwnShapeWherePaddingIsWrong) {
  start(softmax_model(), buckets({"x=1,3,{4,8,16}"}));
  ASSERT_EQ(smaller(), SmallerRuns::kAtOwn) << note();
  listen();
  for (int64_t width = 1; width <= 16; ++width) {
    const Shape shape = {1, 3, width};
    const auto x = some_numbers(shape, 0);
    expect_output(shape, x, width % 2 == 0, softmax(x, static_cast<size_t>(width)));
  }
}

TEST_F(VaryingByGrpc, MetadataErrorsAndLoadsAreThoseOfHttp) {
  start(column_model(), buckets({"x=1,3,{4,8}"}), 2);
  listen();
  inference::ModelMetadataRequest question;
  inference::ModelMetadataResponse metadata;
  question.set_name("net");
  grpc::ClientContext context;
  ASSERT_TRUE(stub_->ModelMetadata(&context, question, &metadata).ok());
  EXPECT_THAT(metadata.inputs(0).shape(), testing::ElementsAre(-1, 3, -1));
  for (const bool raw : {false, true}) {
    const auto refused = ask({1, 3, 9}, some_numbers({1, 3, 9}, 0), raw).first;
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(refused.error_message(),
                HasSubstr("'x' of shape 1x3x9 fits in none of its buckets: 1x3x4, 1x3x8"));
    EXPECT_EQ(ask({1, 3, 4}, {1, 2}, raw).first.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  LoadTarget target;
  target.grpc = true;
  target.port = grpc_->port();
  expect_load_answered(target, "1,3,2 *5\n1,3,4\n1,3,7 *3\n", 200);
  const auto sent = service_.statistics("net").buckets;
  EXPECT_EQ(sent.at("1x3x4") + sent.at("1x3x8"), 200U);
  EXPECT_GT(sent.at("1x3x8"), 20U);
}

// y = x + s, and the next s is s and the sum of f(x) over the width.
std::string running_model(bool exponential) {
  std::vector<std::string> nodes = {ow::node("Add", {"x", "s"}, {"y"}, "out"),
                                    ow::node("ReduceSum", {exponential ? "e" : "x", "axes"}, {"sum"}, "sum"),
                                    ow::node("Add", {"s", "sum"}, {"next"}, "keep")};
  if (exponential) nodes.insert(nodes.begin(), ow::node("Exp", {"x"}, {"e"}, "exp"));
  return ow::model({nodes,
                    {ow::value("x", {-1, -1}), ow::value("s", {-1, 1})},
                    {ow::value("y", {-1, -1}), ow::value("next", {-1, 1})},
                    {ow::int_tensor("axes", {1}, {1})}});
}

class VaryingWithState : public Varying {
 protected:
  // Two sessions whose requests differ in size, one after the other.
  void expect_running_sums(bool exponential) {
    float sums[2] = {0, 0};
    for (int step = 0; step < 12; ++step)
      for (int s = 0; s < 2; ++s) {
        const int64_t width = 1 + (5 * step + 3 * s) % 16;
        auto x = some_numbers({1, width}, static_cast<float>(s));
        for (auto& v : x) v /= 8;
        std::vector<float> expected;
        for (const float v : x) expected.push_back(v + sums[s]);
        for (const float v : x) sums[s] += exponential ? std::exp(v) : v;
        const auto answer = infer({{"x", {1, width}, x}}, {std::to_string(s + 1), step == 0, step == 11});
        ASSERT_TRUE(answer.ok()) << answer.error().to_string();
        EXPECT_EQ(answer->outputs[0].shape, (Shape{1, width}));
        EXPECT_THAT(values_of(answer->outputs[0]), Pointwise(FloatNear(1e-3F), expected)) << step;
      }
    EXPECT_EQ(service_.sessions()["net"].open, 0U);
    EXPECT_EQ(service_.sessions()["net"].ended, 2U);
  }
};

TEST_F(VaryingWithState, SessionsGoOnFromBucketToBucket) {
  state_ = {{"s", "next"}};
  start(running_model(false), buckets({"x=1,{4,8,16}"}), 4);
  ASSERT_EQ(smaller(), SmallerRuns::kPadded) << note();
  expect_running_sums(false);
  // What clients sent, without the state.
  const auto metrics = RawClient(server_->port()).ask("GET", "/metrics").body;
  int64_t sent = 0;
  for (int step = 0; step < 12; ++step)
    for (int s = 0; s < 2; ++s) sent += 4 * (1 + (5 * step + 3 * s) % 16);
  EXPECT_THAT(metrics,
              HasSubstr("heddle_input_bytes_total{model=\"net\",kind=\"sent\"} " + std::to_string(sent)));
}

TEST_F(VaryingWithState, PaddingThatChangesTheStateIsFound) {
  state_ = {{"s", "next"}};
  start(running_model(true), buckets({"x=1,{4,8,16}"}));
  ASSERT_EQ(smaller(), SmallerRuns::kAtOwn) << note();
  expect_running_sums(true);
}

TEST_F(VaryingWithState, TheirLoadHasSessionsOfSeveralSizes) {
  state_ = {{"s", "next"}};
  start(running_model(true), buckets({"x=1,{4,8,16}"}));
  LoadTarget target;
  target.port = server_->port();
  expect_load_answered(target, "1,3 *5\n1,4\n1,13 *3\n", 100);
}

TEST_F(VaryingWithState, AStateOfAnotherShapeInEachBucketIsRefused) {
  state_ = {{"s", "next"}};
  const auto model =
      ow::model({{ow::node("Add", {"x", "s"}, {"next"}, "add"), ow::node("Relu", {"next"}, {"y"}, "out")},
                 {ow::value("x", {-1, -1}), ow::value("s", {-1, -1})},
                 {ow::value("y", {-1, -1}), ow::value("next", {-1, -1})},
                 {}});
  EXPECT_THAT(
      try_start(model, buckets({"x=1,{4,8}", "s=1,{4,8}"})),
      HasSubstr(
          "the state 's' has another shape at s=1x4 x=1x4 than at s=1x8 x=1x8; expected one shape in all "
          "buckets"));
}

}  // namespace
}  // namespace heddle
