// Priorities of requests over HTTP and gRPC: what waits for a model is served by them.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "data_plane_support.h"
#include "heddle/serve/grpc_server.h"
#include "heddle/serve/http_server.h"
#include "heddle/serve/infer_service.h"
#include "heddle/serve/model_source.h"
#include "heddle/serve/rest_api.h"
#include "model_files.h"
#include "open_inference.grpc.pb.h"
#include "serve_support.h"

namespace heddle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Notes the requests' numbers in the order in which they run; the first run waits to be let go.
class Notebook final : public DeviceRunner {
 public:
  Status run(std::span<LiveRequest* const> batch) override {
    std::unique_lock lock(mutex_);
    for (auto* r : batch) {
      int64_t number = 0;
      std::memcpy(&number, static_cast<TensorRow*>(r)->inputs[0], sizeof number);
      order_.push_back(number);
    }
    changed_.wait(lock, [this] { return !held_; });
    return {};
  }
  void let_go() {
    {
      const std::lock_guard lock(mutex_);
      held_ = false;
    }
    changed_.notify_all();
  }
  std::vector<int64_t> order() {
    const std::lock_guard lock(mutex_);
    return order_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int64_t> order_;
  bool held_ = true;
};

class RequestPriorities : public testing::Test {
 protected:
  void serve(int levels, int by_default) {
    auto model = std::make_shared<ServedModel>();
    model->name = "m";
    model->version = "1";
    model->inputs = {{"x", DType::kI64, {1}, 8}};
    model->outputs = {{"y", DType::kI64, {1}, 8}};
    model->slo_us = 60e6;
    model->priority_levels = levels;
    model->default_priority = by_default;
    auto next = std::make_unique<Generation>();
    next->models = {model};
    LivePlaneOptions options;
    options.scheduler = SchedulerKind::kReactive;
    auto plane = LivePlane::create(small_deployment(TimeNs{60} * kNsPerSecond, {{{1, {1000}, {}}}}), options,
                                   {notebook_});
    ASSERT_TRUE(plane.ok()) << plane.error().to_string();
    plane_ = plane->get();
    next->plane = std::move(*plane);
    service_.serve(std::move(next));
    auto http = start_rest(service_);
    auto grpc = GrpcServer::start({}, service_);
    ASSERT_TRUE(http.ok() && grpc.ok());
    http_ = std::move(*http);
    grpc_ = std::move(*grpc);
  }
  void TearDown() override {
    notebook_->let_go();
    for (auto& t : clients_) t.join();
    http_->stop(5);
    grpc_->stop(5);
    service_.stop(5);
  }
  // Sends it and waits until it is in the plane.
  void by_http(int64_t number, int64_t priority) {
    begin([this, number, priority] {
      const Json request = {
          {"parameters", {{"priority", priority}}},
          {"inputs", {{{"name", "x"}, {"shape", {1}}, {"datatype", "INT64"}, {"data", {number}}}}}};
      EXPECT_EQ(RawClient(http_->port()).ask("POST", "/v2/models/m/infer", request.dump()).status, 200);
    });
  }
  void by_grpc(int64_t number, int64_t priority) {
    begin([this, number, priority] {
      const auto stub = inference::GRPCInferenceService::NewStub(grpc::CreateChannel(
          "127.0.0.1:" + std::to_string(grpc_->port()), grpc::InsecureChannelCredentials()));
      inference::ModelInferRequest request;
      request.set_model_name("m");
      (*request.mutable_parameters())["priority"].set_int64_param(priority);
      auto& x = *request.add_inputs();
      x.set_name("x");
      x.set_datatype("INT64");
      x.add_shape(1);
      request.add_raw_input_contents(&number, sizeof number);
      inference::ModelInferResponse response;
      grpc::ClientContext context;
      EXPECT_TRUE(stub->ModelInfer(&context, request, &response).ok());
    });
  }
  void expect_order(const std::vector<int64_t>& order) {
    notebook_->let_go();
    EXPECT_TRUE(eventually([&] { return notebook_->order().size() == order.size(); }));
    EXPECT_EQ(notebook_->order(), order);
  }

 private:
  void begin(std::function<void()> send) {
    ++sent_;
    clients_.emplace_back(std::move(send));
    ASSERT_TRUE(eventually(
        [this] { return plane_->counters().models[0].in_plane == sent_ && !notebook_->order().empty(); }));
  }

  const std::shared_ptr<Notebook> notebook_ = std::make_shared<Notebook>();
  InferService service_;
  LivePlane* plane_ = nullptr;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<GrpcServer> grpc_;
  std::vector<std::thread> clients_;
  uint64_t sent_ = 0;
};

TEST_F(RequestPriorities, OrderWhatWaitsAndWhoAsksForNoneIsLast) {
  serve(0, 0);
  by_http(100, 0);  // runs at once
  by_http(1, 0);
  by_grpc(2, 3);
  by_http(3, 1);
  by_grpc(4, 2);
  by_http(5, 1);
  expect_order({100, 3, 5, 4, 2, 1});
}

TEST_F(RequestPriorities, TheModelsLevelsHaveADefault) {
  serve(3, 2);
  by_http(100, 0);
  by_http(1, 3);
  by_grpc(2, 0);   // 2
  by_http(3, 99);  // no such level: 2
  by_grpc(4, 1);
  expect_order({100, 4, 2, 3, 1});
}

TEST(PrioritySettings, AreReadFromTheModelsFolder) {
  TestFolder folder;
  const auto model = std::filesystem::path(folder.path("m"));
  std::filesystem::create_directories(model / "1");
  folder.write("m/1/model.onnx", "");
  const auto settings = [&] { return find_models(std::vector<std::string>{folder.path("")}, {}); };
  folder.write("m/config.pbtxt", "dynamic_batching { priority_levels: 4 default_priority_level: 2 }");
  auto found = settings();
  ASSERT_TRUE(found.ok()) << found.error().to_string();
  EXPECT_EQ(found->front().settings.priority_levels, 4);
  EXPECT_EQ(found->front().settings.default_priority, 2);
  folder.write("m/config.json", R"({"priority_levels": 6, "default_priority_level": 6})");
  found = settings();
  ASSERT_TRUE(found.ok()) << found.error().to_string();
  EXPECT_EQ(found->front().settings.priority_levels, 6);
  folder.write("m/config.json", R"({"priority_levels": 1})");
  EXPECT_FALSE(settings().ok()) << "the default of 2 is no level any more";
  std::filesystem::remove(model / "config.json");
  folder.write("m/config.pbtxt", "dynamic_batching { priority_levels: 4 }");
  found = settings();
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error().to_string(), HasSubstr("default_priority_level 0"));
}

}  // namespace
}  // namespace heddle
