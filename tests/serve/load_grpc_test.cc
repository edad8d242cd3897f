// The load generator by gRPC counts as it does by HTTP.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "certificate.h"
#include "data_plane_support.h"
#include "heddle/serve/grpc_server.h"
#include "heddle/serve/load.h"
#include "load_support.h"
#include "open_inference.grpc.pb.h"
#include "serve_process.h"

namespace heddle {
namespace {

using testing::HasSubstr;

constexpr TimeNs kMilli = 1'000'000;

std::vector<ModelUnderLoad> one_model() {
  inference::ModelInferRequest request;
  request.set_model_name("m");
  request.add_raw_input_contents(std::string(5000, 'x'));
  return {{.name = "m",
           .slo_us = 20e6,
           .planned_rate_per_s = 100,
           .bodies = {{.inputs_json = "", .tensors = "", .grpc_message = request.SerializeAsString()}},
           .turns = {}}};
}

// A server whose answers the test chooses.
class GrpcStub final : public inference::GRPCInferenceService::CallbackService {
 public:
  using Reactor = grpc::ServerUnaryReactor;
  using Answer =
      std::function<void(const inference::ModelInferRequest&, inference::ModelInferResponse&, Reactor&)>;

  explicit GrpcStub(Answer answer) : answer_(std::move(answer)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &target.port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    EXPECT_TRUE(server_);
    target.grpc = true;
  }
  ~GrpcStub() override { server_->Shutdown(std::chrono::system_clock::now()); }

  Reactor* ModelInfer(grpc::CallbackServerContext* context, const inference::ModelInferRequest* request,
                      inference::ModelInferResponse* response) override {
    auto* reactor = context->DefaultReactor();
    answer_(*request, *response, *reactor);
    return reactor;
  }

  LoadTarget target;

 private:
  const Answer answer_;
  std::unique_ptr<grpc::Server> server_;
};

TEST(LoadByGrpc, CountsEveryRequestOnce) {
  std::atomic<int> n{0};
  std::mutex mutex;
  std::set<std::string> ids;
  GrpcStub stub([&](const auto& request, auto& response, auto& reactor) {
    {
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(ids.insert(request.id()).second) << "sent twice: " << request.id();
    }
    EXPECT_EQ(request.model_name(), "m");
    EXPECT_EQ(request.raw_input_contents(0), std::string(5000, 'x'));
    const int i = n++;
    if (i % 5 == 1) return reactor.Finish({grpc::StatusCode::DEADLINE_EXCEEDED, "too late"});
    if (i % 5 == 2) return reactor.Finish({grpc::StatusCode::UNAVAILABLE, "full"});
    response.set_id(i % 5 == 3 ? "none" : request.id());
    (*response.mutable_parameters())["batch_size"].set_int64_param(2);
    (*response.mutable_parameters())["queue_us"].set_double_param(7);
    reactor.Finish(grpc::Status::OK);
  });
  const auto models = one_model();
  const auto result = run_load(stub.target, models, steady(100, kMilli), {});
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  const auto& total = result->counted.total;
  EXPECT_EQ(total.arrivals, 100U);
  EXPECT_EQ(total.in_time, 40U);
  EXPECT_EQ(total.dropped, 20U);
  EXPECT_EQ(total.failed, 40U);
  EXPECT_EQ(result->mismatched, 20U);
  EXPECT_EQ(result->statuses.at(200), 40U);
  EXPECT_EQ(result->statuses.at(503), 20U);
  EXPECT_EQ(result->statuses.at(504), 20U);
  EXPECT_EQ(result->errors.at("full"), 20U);
  EXPECT_EQ(n, 100);
  EXPECT_EQ(result->connections, 8U);
  EXPECT_EQ(result->counted.latency.count(), 40U);
  EXPECT_EQ(result->counted.models[0].batch_sizes, (std::vector<uint64_t>{0, 40}));
  EXPECT_EQ(result->counted.queueing.count(), 40U);
}

// With one call at a time the others wait for the first, and their latencies say so.
TEST(LoadByGrpc, LatencyCountsFromWhenARequestWasDue) {
  std::atomic<int> n{0};
  std::thread late;
  LoadOptions options;
  options.max_connections = 1;
  {
    GrpcStub stub([&](const auto& request, auto& response, auto& reactor) {
      response.set_id(request.id());
      if (n++ > 0) return reactor.Finish(grpc::Status::OK);
      late = std::thread([&reactor] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        reactor.Finish(grpc::Status::OK);
      });
    });
    const auto models = one_model();
    const auto result = run_load(stub.target, models, steady(10, kMilli), options);
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->counted.total.in_time, 10U);
    EXPECT_EQ(result->connections, 1U);
    EXPECT_GE(result->counted.latency.percentile(.05), 285 * kMilli);
    late.join();
  }
}

TEST(LoadByGrpc, AnswersThatNeverComeAreFailures) {
  std::atomic<int> n{0};
  std::mutex mutex;
  std::vector<GrpcStub::Reactor*> kept;
  LoadOptions options;
  options.timeout_s = .5;
  const auto models = one_model();
  {
    GrpcStub stub([&](const auto& request, auto& response, auto& reactor) {
      response.set_id(request.id());
      if (n++ % 2 == 1) return reactor.Finish(grpc::Status::OK);
      const std::lock_guard lock(mutex);
      kept.push_back(&reactor);
    });
    const auto result = run_load(stub.target, models, steady(20, kMilli), options);
    for (auto* reactor : kept) reactor->Finish(grpc::Status::OK);
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->counted.total.in_time, 10U);
    EXPECT_EQ(result->counted.total.failed, 10U);
    EXPECT_EQ(result->statuses.at(0), 10U);
    EXPECT_EQ(result->errors.at("no answer came in time"), 10U);
  }
  LoadTarget nobody;
  nobody.port = 1;
  nobody.grpc = true;
  const auto refused = run_load(nobody, models, steady(3, kMilli), options);
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(refused->counted.total.failed, 3U);
  const auto asked = load_models(nobody, {}, {.payload_bytes = 0, .shapes = {}, .seed = 1});
  ASSERT_FALSE(asked.ok());
  EXPECT_EQ(asked.error().code(), Code::kIo);
}

// A service with one timed model by gRPC, encrypted and with a token.
TEST(LoadByGrpc, AgreesWithTheServer) {
  const Certificate certificate;
  if (!certificate.made()) GTEST_SKIP() << "the openssl tool makes no certificate here";
  auto d = small_deployment(500 * kMilli, {{{4, {5 * kMilli}, {}}}});
  d.models[0].rate_per_s = 123.25;
  auto generation = payload_generation(d);
  ASSERT_TRUE(generation);
  InferService service;
  service.serve(std::move(generation));
  GrpcServerOptions options;
  options.tls = *read_tls_identity(certificate.file(), certificate.key());
  options.bearer_token = "a token";
  auto server = GrpcServer::start(options, service);
  ASSERT_TRUE(server.ok());
  LoadTarget target;
  target.grpc = true;
  target.port = (*server)->port();
  target.bearer_token = "another";
  target.tls = *TlsContext::client(certificate.file());
  std::ifstream file(certificate.file());
  target.grpc_trusted.assign(std::istreambuf_iterator<char>(file), {});
  const auto stranger = load_models(target, {}, {.payload_bytes = 1000, .shapes = {}, .seed = 1});
  ASSERT_FALSE(stranger.ok());
  EXPECT_THAT(stranger.error().to_string(), HasSubstr("Bearer TOKEN"));
  target.bearer_token = "a token";
  EXPECT_EQ(
      load_models(target, std::vector<std::string>{"none"}, {.payload_bytes = 0, .shapes = {}, .seed = 1})
          .error()
          .code(),
      Code::kNotFound);
  const auto models = load_models(target, {}, {.payload_bytes = 1000, .shapes = {}, .seed = 1});
  ASSERT_TRUE(models.ok()) << models.error().to_string();
  ASSERT_EQ(models->size(), 1U);
  EXPECT_EQ(models->front().slo_us, 500e3);
  EXPECT_EQ(models->front().planned_rate_per_s, 123.25);
  EXPECT_EQ(models->front().body(0).tensors.size(), 1000U);
  const auto arrivals = make_arrivals({}, std::vector<double>{300}, 1, 2);
  ASSERT_TRUE(arrivals.ok());
  const auto result = run_load(target, *models, *arrivals, {});
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  const auto& total = result->counted.total;
  EXPECT_EQ(total.arrivals, arrivals->size());
  EXPECT_EQ(total.in_time + total.late + total.dropped, arrivals->size());
  EXPECT_EQ(result->mismatched, 0U);
  const auto statistics = service.statistics("m");
  EXPECT_EQ(statistics.success.count, total.in_time + total.late);
  EXPECT_EQ(statistics.requests[static_cast<size_t>(Outcome::kDropped)], total.dropped);
  target.tls = nullptr;
  EXPECT_EQ(load_models(target, {}, {.payload_bytes = 0, .shapes = {}, .seed = 1}).error().code(), Code::kIo);
  (*server)->stop(1);
  service.stop(1);
}

#ifdef HEDDLE_PROGRAM
// The program's own flags and report.
TEST(LoadByGrpc, IsAFlagOfTheProgram) {
  ServedFleet fleet(front_and_back(2), {});
  ASSERT_TRUE(fleet.serves());
  const auto url = "grpc://127.0.0.1:" + std::to_string(fleet.grpc_port());
  Process load({HEDDLE_PROGRAM, "loadtest", url, "--rate", "20", "--duration", "1", "--payload", "1000",
                "--json", "--quiet"});
  std::string text;
  for (std::string line = load.line(); !line.empty(); line = load.line()) text += line + "\n";
  EXPECT_EQ(load.wait(), 0);
  const auto report = parse_json(text);
  ASSERT_TRUE(report.ok()) << text;
  EXPECT_GT((*report)["statuses"]["200"], 0) << text;
  EXPECT_EQ((*report)["mismatched"], 0);
  Process stateless({HEDDLE_PROGRAM, "loadtest", url, "--rate", "20", "--sessions", "3", "--quiet"});
  EXPECT_EQ(stateless.wait(), 2);
  Process status({HEDDLE_PROGRAM, "server", "status", url});
  EXPECT_NE(status.wait(), 0);
}
#endif

}  // namespace
}  // namespace heddle
