// Models whose inputs vary in shape, and a server of one.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <future>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "heddle/serve/local_server.h"
#include "heddle/serve/rest_api.h"
#include "model_files.h"
#include "onnx_writer.h"
#include "serve_support.h"

namespace heddle {

// y = relu(x + w) by column: columns do not depend on each other.
inline std::string column_model() {
  return onnx_writer::model(
      {{onnx_writer::node("Add", {"x", "w"}, {"a"}, "add"), onnx_writer::node("Relu", {"a"}, {"y"}, "relu")},
       {onnx_writer::value("x", {-1, 3, -1})},
       {onnx_writer::value("y", {-1, 3, -1})},
       {onnx_writer::float_tensor("w", {3, 1}, {1, 2, 3})}});
}
// Softmax over the columns, so that padding takes a part of the sum.
inline std::string softmax_model() {
  return onnx_writer::model(
      {{onnx_writer::node("Softmax", {"x"}, {"y"}, "softmax", {onnx_writer::attribute_int("axis", 2)})},
       {onnx_writer::value("x", {-1, 3, -1})},
       {onnx_writer::value("y", {-1, 3, -1})},
       {}});
}
struct SentInput {
  std::string name;
  Shape shape;
  std::vector<float> values;
};

inline std::vector<float> some_numbers(const Shape& shape, float from) {
  std::vector<float> values(
      static_cast<size_t>(std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>())));
  for (size_t i = 0; i < values.size(); ++i) values[i] = from + static_cast<float>((i * 7) % 11) - 5;
  return values;
}

class Varying : public testing::Test {
 protected:
  void start(const std::string& model, VaryingSettings varying, int max_batch = 1) {
    ASSERT_EQ(try_start(model, std::move(varying), max_batch), "");
    auto server = start_rest(service_);
    ASSERT_TRUE(server.ok());
    server_ = std::move(*server);
  }
  std::string try_start(const std::string& model, VaryingSettings varying, int max_batch = 1) {
    return try_start_file(folder_.write("net.onnx", model), std::move(varying), max_batch);
  }
  std::string try_start_file(const std::string& path, VaryingSettings varying, int max_batch = 1) {
    ModelSettings settings{.slo_us = 60e6, .max_batch = max_batch};
    settings.varying = std::move(varying);
    settings.state = state_;
    auto sources = find_models(std::vector<std::string>{path}, settings);
    if (!sources.ok()) return sources.error().to_string();
    LocalServerOptions options;
    options.measure_s = .001;
    options.variants.precisions = {"f32"};
    auto local = LocalServer::create(service_, std::move(*sources), options);
    if (!local.ok()) return local.error().to_string();
    local_ = std::move(*local);
    return "";
  }
  static VaryingSettings buckets(const std::vector<std::string>& texts) {
    VaryingSettings varying;
    auto parsed = parse_buckets(texts);
    EXPECT_TRUE(parsed.ok()) << parsed.error().to_string();
    varying.buckets = *parsed;
    return varying;
  }
  void TearDown() override {
    if (server_) server_->stop(5);
    service_.stop(5);
    local_.reset();
  }
  std::string note() const { return service_.models().front()->note; }
  SmallerRuns smaller() const { return service_.models().front()->varying->smaller; }

  Result<InferResponse> infer(const std::vector<SentInput>& inputs, const SessionStep& session = {}) {
    InferRequest request;
    request.model = "net";
    request.session = session;
    for (const auto& in : inputs)
      request.inputs.push_back({in.name, DType::kF32, in.shape,
                                reinterpret_cast<const std::byte*>(in.values.data()),
                                static_cast<int64_t>(in.values.size() * sizeof(float)), nullptr});
    std::promise<Result<InferResponse>> promise;
    auto future = promise.get_future();
    service_.infer(std::move(request),
                   [&promise](Result<InferResponse> answer) { promise.set_value(std::move(answer)); });
    return future.get();
  }
  std::string refusal(const std::vector<SentInput>& inputs) {
    const auto answer = infer(inputs);
    EXPECT_FALSE(answer.ok());
    if (answer.ok()) return "";
    EXPECT_EQ(http_status(answer.error().code()), 400);
    return answer.error().message();
  }
  static std::vector<float> values_of(const InferTensor& t) {
    std::vector<float> values(static_cast<size_t>(t.bytes) / sizeof(float));
    std::memcpy(values.data(), t.data, static_cast<size_t>(t.bytes));
    return values;
  }
  Json get(const std::string& path) {
    const auto parsed = parse_json(RawClient(server_->port()).ask("GET", path).body);
    EXPECT_TRUE(parsed.ok());
    return parsed.ok() ? *parsed : Json();
  }

  // The softmax of each row of `width`.
  static std::vector<float> softmax(const std::vector<float>& x, size_t width) {
    std::vector<float> y(x.size());
    for (size_t row = 0; row < x.size(); row += width) {
      double sum = 0;
      for (size_t i = 0; i < width; ++i) sum += std::exp(x[row + i]);
      for (size_t i = 0; i < width; ++i) y[row + i] = static_cast<float>(std::exp(x[row + i]) / sum);
    }
    return y;
  }

  std::vector<std::pair<std::string, std::string>> state_;  // inputs and outputs that a session keeps
  TestFolder folder_;
  InferService service_;
  std::unique_ptr<LocalServer> local_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace heddle
