// Models with state: sessions over HTTP, gRPC and in the process, in order and side by side, and what is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <future>

#include "heddle/serve/grpc_server.h"
#include "heddle/serve/load.h"
#include "heddle/serve/local_server.h"
#include "heddle/serve/rest_api.h"
#include "onnx_writer.h"
#include "plane/fault.h"
#include "protocol/grpc_message.h"
#include "serve_support.h"
#include "variable_model.h"

namespace heddle {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace ow = onnx_writer;

// sum = s + x, and y = 2 sum.
std::string sum_model() {
  return ow::model(
      {{ow::node("Add", {"s", "x"}, {"sum"}, "add"), ow::node("Add", {"sum", "sum"}, {"y"}, "twice")},
       {ow::value("x", {-1, 2}), ow::value("s", {-1, 2})},
       {ow::value("y", {-1, 2}), ow::value("sum", {-1, 2})},
       {}});
}
std::string stateless_model() {
  return ow::model(
      {{ow::node("Relu", {"x"}, {"y"}, "relu")}, {ow::value("x", {-1, 2})}, {ow::value("y", {-1, 2})}, {}});
}

class SessionsOfAModel : public testing::Test {
 protected:
  void start(ModelSettings settings = {}, const std::vector<std::string>& others = {}) {
    ASSERT_EQ(try_start(std::move(settings), others), "");
    auto server = start_rest(service_);
    ASSERT_TRUE(server.ok());
    server_ = std::move(*server);
  }
  std::string try_start(ModelSettings settings, const std::vector<std::string>& others = {}) {
    if (settings.state.empty()) settings.state = {{"s", "sum"}};
    settings.slo_us = 60e6;
    auto sources = find_models(std::vector<std::string>{folder_.write("net.onnx", sum_model())}, settings);
    if (!sources.ok()) return sources.error().to_string();
    for (const auto& other : others) {
      auto more = find_models(std::vector<std::string>{other}, {.slo_us = 60e6});
      if (!more.ok()) return more.error().to_string();
      sources->push_back(more->front());
    }
    return serve(std::move(*sources));
  }
  std::string serve(std::vector<ModelSource> sources) {
    LocalServerOptions options;
    options.measure_s = .001;
    options.variants.precisions = {"f32"};
    auto local = LocalServer::create(service_, std::move(sources), options);
    if (!local.ok()) return local.error().to_string();
    local_ = std::move(*local);
    return "";
  }
  void TearDown() override {
    clear_fault();
    if (server_) server_->stop(5);
    service_.stop(5);
    local_.reset();
  }

  using Answer = Result<InferResponse>;
  std::future<Answer> send(const std::string& session, bool begin, bool end, std::vector<float> x,
                           const std::vector<std::string>& outputs = {}) {
    InferRequest request;
    request.model = "net";
    request.session = {session, begin, end};
    const auto values = std::make_shared<std::vector<float>>(std::move(x));
    request.inputs.push_back({"x",
                              DType::kF32,
                              {static_cast<int64_t>(values->size() / 2), 2},
                              reinterpret_cast<const std::byte*>(values->data()),
                              static_cast<int64_t>(values->size() * sizeof(float)),
                              values});
    for (const auto& o : outputs) request.outputs.push_back({o, true});
    return send(std::move(request));
  }
  std::future<Answer> send(InferRequest request) {
    const auto promise = std::make_shared<std::promise<Answer>>();
    service_.infer(std::move(request), [promise](Answer answer) { promise->set_value(std::move(answer)); });
    return promise->get_future();
  }
  static std::vector<float> values_of(const Answer& answer, size_t output = 0) {
    EXPECT_TRUE(answer.ok()) << answer.error().to_string();
    if (!answer.ok() || answer->outputs.size() <= output) return {};
    const auto& t = answer->outputs[output];
    std::vector<float> values(static_cast<size_t>(t.bytes) / sizeof(float));
    std::memcpy(values.data(), t.data, static_cast<size_t>(t.bytes));
    return values;
  }
  static Code code_of(const Answer& answer) { return answer.ok() ? Code::kInternal : answer.error().code(); }
  static std::string error_of(const Answer& answer) {
    EXPECT_FALSE(answer.ok());
    return answer.ok() ? "" : answer.error().to_string();
  }
  SessionCounters counters() const { return service_.sessions()["net"]; }

  RawClient::Answer post(const std::string& parameters, const std::string& inputs = "",
                         const std::string& model = "net") const {
    const std::string x = R"({"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]})";
    return RawClient(server_->port())
        .ask("POST", "/v2/models/" + model + "/infer",
             R"({"parameters": {)" + parameters + R"(}, "inputs": [)" + (inputs.empty() ? x : inputs) + "]}");
  }
  Json get(const std::string& path) const {
    const auto parsed = parse_json(RawClient(server_->port()).ask("GET", path).body);
    EXPECT_TRUE(parsed.ok());
    return parsed.ok() ? *parsed : Json();
  }

  TestFolder folder_;
  InferService service_;
  std::unique_ptr<LocalServer> local_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(SessionsOfAModel, InterleavedSequencesGiveWhatTheModelGivesStepByStep) {
  start();
  float a = 0, b = 0;
  for (int i = 0; i < 12; ++i) {
    const auto x = static_cast<float>(i);
    a += x;
    b += 10 * x;
    EXPECT_THAT(values_of(send("1", i == 0, i == 11, {x, -x}).get()), ElementsAre(2 * a, -2 * a));
    EXPECT_THAT(values_of(send("'1'", i == 0, i == 11, {10 * x, 1}).get()),
                ElementsAre(2 * b, 2 * static_cast<float>(i + 1)));
  }
  EXPECT_EQ(counters().open, 0U);
  EXPECT_EQ(counters().begun, 2U);
  EXPECT_EQ(counters().ended, 2U);
  EXPECT_EQ(counters().bytes, 0U);
}

TEST_F(SessionsOfAModel, RequestsOfASessionAtOnceRunInTheirOrder) {
  start();
  constexpr int kSessions = 4, kSteps = 30;
  std::vector<std::vector<std::future<Answer>>> answers(kSessions);
  for (int i = 0; i < kSteps; ++i)
    for (int s = 0; s < kSessions; ++s)
      answers[static_cast<size_t>(s)].push_back(send(std::to_string(s + 1), i == 0, i + 1 == kSteps,
                                                     {static_cast<float>(i), static_cast<float>(s)}));
  for (int s = 0; s < kSessions; ++s) {
    float sum = 0;
    for (int i = 0; i < kSteps; ++i) {
      sum += static_cast<float>(i);
      EXPECT_THAT(values_of(answers[static_cast<size_t>(s)][static_cast<size_t>(i)].get()),
                  ElementsAre(2 * sum, 2 * static_cast<float>(s * (i + 1))));
    }
  }
  EXPECT_EQ(counters().waiting, 0U);
}

TEST_F(SessionsOfAModel, ASessionKeepsItsNumberOfRows) {
  start();
  EXPECT_THAT(values_of(send("7", true, false, {1, 2, 3, 4}).get()), ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(error_of(send("7", false, false, {1, 2}).get()),
              HasSubstr("session 7: its inputs have 1 rows, and 2 in its first request"));
  EXPECT_THAT(values_of(send("7", false, false, {1, 1, 1, 1}).get()), ElementsAre(4, 6, 8, 10));
  EXPECT_EQ(counters().bytes, 16U);
  // A start begins anew, with any number of rows.
  EXPECT_THAT(values_of(send("7", true, true, {5, 6}).get()), ElementsAre(10, 12));
}

TEST_F(SessionsOfAModel, ARequestThatFailsLeavesTheStateAsItWas) {
  start();
  values_of(send("7", true, false, {1, 1}).get());
  InferRequest late;
  late.model = "net";
  late.session.id = "7";
  late.timeout_us = 1;
  const std::vector<float> x = {9, 9};
  late.inputs.push_back({"x", DType::kF32, {1, 2}, reinterpret_cast<const std::byte*>(x.data()), 8, nullptr});
  EXPECT_EQ(code_of(send(std::move(late)).get()), Code::kInfeasible);
  EXPECT_THAT(values_of(send("7", false, true, {1, 2}).get()), ElementsAre(4, 6));
}

// Without memory for its outputs, say. It had its turn on the sessions' own thread, where nobody else would answer it.
TEST_F(SessionsOfAModel, ARequestThatThrowsInItsTurnFailsAlone) {
  start();
  values_of(send("7", true, false, {1, 1}).get());
  set_fault({FaultPoint::kRun, FaultAction::kDelay, 1, 1'000'000});
  auto first = send("7", false, false, {1, 2});
  auto second = send("7", false, false, {1, 2});
  ASSERT_TRUE(eventually([&] { return counters().waiting == 1; }));
  ASSERT_TRUE(eventually([] { return fault_hits() == 1; }));
  set_fault({FaultPoint::kOutputs, FaultAction::kFail, 1, 0});
  values_of(first.get());
  EXPECT_THAT(error_of(second.get()), HasSubstr("bad_alloc"));
  clear_fault();
  EXPECT_THAT(values_of(send("7", false, true, {1, 2}).get()), ElementsAre(6, 10));
}

TEST_F(SessionsOfAModel, SpeaksTheSequenceExtensionOverHttp) {
  start();
  EXPECT_EQ(post(R"("sequence_id": 5, "sequence_start": true)").status, 200);
  const auto second = parse_json(post(R"("sequence_id": 5)").body);
  ASSERT_TRUE(second.ok());
  // The state is an output only for those who ask for it.
  ASSERT_EQ((*second)["outputs"].size(), 1U);
  EXPECT_EQ((*second)["outputs"][0]["data"], Json({4, 8}));
  // A text is another session than the number.
  const auto unknown = post(R"("sequence_id": "5")");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_THAT(unknown.body, HasSubstr("session '5' does not exist: it has not begun (sequence_start)"));
  EXPECT_EQ(post(R"("sequence_id": "5", "sequence_start": true)").status, 200);
  EXPECT_EQ(get("/v2/status")["models"][0]["sessions"]["open"], 2);
  const auto metrics = RawClient(server_->port()).ask("GET", "/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("heddle_sessions{model=\"net\"} 2\n"));
  EXPECT_THAT(metrics, HasSubstr("heddle_session_bytes{model=\"net\"} 16\n"));
  EXPECT_EQ(post(R"("sequence_id": 5, "sequence_end": true)").status, 200);
  EXPECT_EQ(post(R"("sequence_id": 5)").status, 404);
  EXPECT_THAT(RawClient(server_->port()).ask("GET", "/metrics").body,
              HasSubstr("heddle_sessions_ended_total{model=\"net\",by=\"client\"} 1\n"));

  EXPECT_THAT(get("/v2")["extensions"].dump(), HasSubstr("\"sequence\""));
  const auto metadata = get("/v2/models/net");
  ASSERT_EQ(metadata["inputs"].size(), 1U);
  EXPECT_EQ(metadata["inputs"][0]["name"], "x");
  ASSERT_EQ(metadata["outputs"].size(), 1U);
  EXPECT_EQ(get("/v2/models/net/config")["sequence_batching"]["state"][0]["output_name"], "sum");
}

TEST_F(SessionsOfAModel, TheStateCanBeAskedFor) {
  start();
  const auto answer = send("7", true, false, {1, 2}, {"sum", "y"}).get();
  EXPECT_THAT(values_of(answer), ElementsAre(1, 2));
  EXPECT_THAT(values_of(answer, 1), ElementsAre(2, 4));
  EXPECT_THAT(values_of(send("7", false, false, {1, 2}, {"sum"}).get()), ElementsAre(2, 4));
}

TEST_F(SessionsOfAModel, WrongParametersAreRefused) {
  start({}, {folder_.write("plain.onnx", stateless_model())});
  const auto refused = [this](const std::string& parameters, const std::string& why,
                              const std::string& inputs = "", const std::string& model = "net") {
    const auto answer = post(parameters, inputs, model);
    EXPECT_EQ(answer.status, 400) << parameters;
    EXPECT_THAT(answer.body, HasSubstr(why)) << parameters;
  };
  const std::string id = "sequence_id: expected a whole number from 0, or a text of at most 128 bytes";
  refused(R"("sequence_id": -1)", id);
  refused(R"("sequence_id": 1.5)", id);
  refused(R"("sequence_id": true)", id);
  refused(R"("sequence_id": "a\nb")", id);
  refused("\"sequence_id\": \"" + std::string(129, 'a') + "\"", id);
  refused(R"("sequence_id": 1, "sequence_start": 1)", "sequence_start");
  refused(R"("sequence_start": true)", "sequence_start and sequence_end need a sequence_id");
  refused(R"("sequence_id": 0, "sequence_end": true)", "need a sequence_id");
  refused("", "send the parameter sequence_id, with sequence_start in a session's first request");
  refused(R"("sequence_id": 1, "sequence_start": true)", "the input 's' is state that the server keeps",
          R"({"name": "s", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]})");
  const std::string x = R"({"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]})";
  refused(R"("sequence_id": 1, "sequence_start": true)", "an input is given twice", x + "," + x);
  refused(R"("sequence_id": 1)", "keeps no state between requests", "", "plain");
  EXPECT_EQ(post(R"("sequence_id": 0)", "", "plain").status, 200);
  EXPECT_EQ(counters().open, 0U);
}

TEST(SessionsByGrpc, ParametersAreThoseOfTheSequenceExtension) {
  inference::ModelInferRequest message;
  auto& parameters = *message.mutable_parameters();
  const auto step = [&message] { return infer_request_from_proto(message); };
  parameters["sequence_id"].set_int64_param(7);
  parameters["sequence_start"].set_bool_param(true);
  ASSERT_TRUE(step().ok());
  EXPECT_EQ(step()->session.id, "7");
  EXPECT_TRUE(step()->session.start);
  EXPECT_FALSE(step()->session.end);
  parameters["sequence_id"].set_uint64_param(UINT64_MAX);
  parameters["sequence_end"].set_bool_param(true);
  EXPECT_EQ(step()->session.id, "18446744073709551615");
  EXPECT_TRUE(step()->session.end);
  parameters["sequence_id"].set_string_param("7");
  EXPECT_EQ(step()->session.id, "'7'");
  parameters["sequence_id"].set_string_param("");
  EXPECT_EQ(step()->session.id, "");
  for (const auto& text : {std::string("a\nb"), std::string(129, 'a')}) {
    parameters["sequence_id"].set_string_param(text);
    EXPECT_THAT(step().error().message(), HasSubstr("'sequence_id': expected a whole number from 0"));
  }
  parameters["sequence_id"].set_int64_param(-1);
  EXPECT_THAT(step().error().message(), HasSubstr("'sequence_id': expected a whole number from 0"));
  parameters["sequence_id"].set_int64_param(1);
  parameters["sequence_end"].set_int64_param(1);
  EXPECT_THAT(step().error().message(), HasSubstr("'sequence_end' is neither true nor false"));
}

TEST_F(SessionsOfAModel, OneWithoutRequestsEnds) {
  start({.session_idle_us = 20e3});
  ASSERT_TRUE(send("7", true, false, {1, 2}).get().ok());
  ASSERT_TRUE(eventually([this] { return counters().open == 0; }));
  EXPECT_EQ(counters().expired, 1U);
  EXPECT_EQ(counters().bytes, 0U);
  const auto answer = send("7", false, false, {1, 2}).get();
  EXPECT_EQ(code_of(answer), Code::kNotFound);
  EXPECT_THAT(error_of(answer), HasSubstr("or had no request for 20.0 ms"));
}

TEST_F(SessionsOfAModel, AreLimitedInNumberAndBytes) {
  start();
  service_.set_session_limits({.sessions = 2, .bytes = 1 << 20});
  for (const char* id : {"1", "2"}) ASSERT_TRUE(send(id, true, false, {1, 2}).get().ok());
  const auto third = send("3", true, false, {1, 2}).get();
  EXPECT_EQ(code_of(third), Code::kCancelled);
  EXPECT_THAT(error_of(third),
              HasSubstr("no session can begin: 2 are open, the most that this server keeps"));
  EXPECT_TRUE(send("2", false, true, {1, 2}).get().ok());
  EXPECT_TRUE(send("3", true, false, {1, 2}).get().ok());
  service_.set_session_limits({.sessions = 9, .bytes = 20});
  EXPECT_THAT(error_of(send("4", true, false, {1, 2}).get()),
              HasSubstr("it needs 8 B, and open ones have 16 B of 20 B"));
  EXPECT_EQ(counters().refused, 2U);
}

TEST_F(SessionsOfAModel, EndWithTheirModelAndNotWithAnother) {
  start({}, {folder_.write("other.onnx", stateless_model())});
  ASSERT_TRUE(send("7", true, false, {1, 2}).get().ok());
  ASSERT_TRUE(local_->load("other").ok());
  EXPECT_THAT(values_of(send("7", false, false, {1, 2}).get()), ElementsAre(4, 8));
  ASSERT_TRUE(local_->load("net").ok());
  EXPECT_EQ(code_of(send("7", false, false, {1, 2}).get()), Code::kNotFound);
  EXPECT_EQ(counters().dropped, 1U);
}

// A voice detector with the state of its LSTM, beside the same model as a function of that state.
TEST_F(SessionsOfAModel, SileroHearsTheSameInASessionAsStepByStep) {
  const auto file = wheel_file("silero_vad/data/silero_vad_openvino_16k.onnx");
  if (file.empty()) GTEST_SKIP() << "the wheel silero-vad is not there";
  std::filesystem::copy_file(file, folder_.path("net.onnx"));
  std::filesystem::copy_file(file, folder_.path("plain.onnx"));
  auto sources = find_models(std::vector<std::string>{folder_.path("net.onnx")},
                             {.state = {{"state", "stateN"}}, .slo_us = 60e6});
  const auto plain = find_models(std::vector<std::string>{folder_.path("plain.onnx")}, {.slo_us = 60e6});
  ASSERT_TRUE(sources.ok() && plain.ok());
  sources->push_back(plain->front());
  ASSERT_EQ(serve(*sources), "");
  const auto add = [](InferRequest& request, const char* name, Shape shape, std::vector<float> values) {
    const auto owner = std::make_shared<std::vector<float>>(std::move(values));
    request.inputs.push_back({name, DType::kF32, std::move(shape),
                              reinterpret_cast<const std::byte*>(owner->data()),
                              static_cast<int64_t>(owner->size() * sizeof(float)), owner});
  };
  std::vector<std::vector<float>> states(2, std::vector<float>(256));
  for (int step = 0; step < 6; ++step)
    for (size_t s = 0; s < states.size(); ++s) {
      std::vector<float> sound(576);
      for (size_t i = 0; i < sound.size(); ++i)
        sound[i] = .4F * std::sin(static_cast<float>((s + 1) * i) * .01F + static_cast<float>(step));
      InferRequest in_session, by_hand;
      in_session.model = "net";
      in_session.session = {std::to_string(s + 1), step == 0, step == 5};
      add(in_session, "input", {1, 576}, sound);
      by_hand.model = "plain";
      add(by_hand, "input", {1, 576}, sound);
      add(by_hand, "state", {2, 1, 128}, states[s]);
      const auto expected = send(std::move(by_hand)).get();
      EXPECT_THAT(values_of(send(std::move(in_session)).get()),
                  testing::Pointwise(testing::FloatNear(1e-6F), values_of(expected)));
      states[s] = values_of(expected, 1);
    }
}

TEST_F(SessionsOfAModel, AVariableOfAFileIsStateByItself) {
  const auto sources =
      find_models(std::vector<std::string>{write_variable_model(folder_, "net")}, {.slo_us = 60e6});
  ASSERT_TRUE(sources.ok());
  ASSERT_EQ(serve(*sources), "");
  for (int i = 1; i <= 3; ++i)
    EXPECT_THAT(values_of(send("7", i == 1, i == 3, {1, 2}, {"y"}).get()),
                ElementsAre(3 + static_cast<float>(i), 3 + 2 * static_cast<float>(i)));
}

// What `heddle loadtest` sends, by either protocol: 8 sessions at once of 5 requests each.
TEST_F(SessionsOfAModel, ALoadHasSessionsByItself) {
  start({}, {folder_.write("plain.onnx", stateless_model())});
  auto grpc = GrpcServer::start({}, service_);
  ASSERT_TRUE(grpc.ok());
  for (const bool by_grpc : {false, true}) {
    LoadTarget target;
    target.grpc = by_grpc;
    target.port = by_grpc ? (*grpc)->port() : server_->port();
    const auto models = load_models(target, {}, {.payload_bytes = 0, .shapes = {}, .seed = 1});
    ASSERT_TRUE(models.ok()) << models.error().to_string();
    ASSERT_EQ(models->size(), 2U);
    EXPECT_TRUE((*models)[0].keeps_state);
    EXPECT_FALSE((*models)[1].keeps_state);
    std::vector<Arrival> arrivals;
    for (uint32_t i = 0; i < 400; ++i) arrivals.push_back({i * 1'000'000, i % 2});
    LoadOptions options;
    options.sessions = 8;
    options.session_requests = 5;
    const auto result = run_load(target, *models, arrivals, options);
    ASSERT_TRUE(result.ok()) << result.error().to_string();
    EXPECT_EQ(result->statuses.at(200), 400U) << load_text(*result, 1);
    EXPECT_EQ(result->sessions, 40U);
    EXPECT_THAT(load_text(*result, 1), HasSubstr("40 sessions begun, of models with state\n"));
    EXPECT_EQ(counters().begun, by_grpc ? 80U : 40U);
    EXPECT_EQ(counters().ended, by_grpc ? 80U : 40U);
    EXPECT_EQ(counters().open, 0U);
  }
  (*grpc)->stop(1);
}

TEST_F(SessionsOfAModel, StatesMustBeAnInputAndAnOutputOfOneKind) {
  EXPECT_THAT(try_start({.state = {{"t", "sum"}}}), HasSubstr("the model has no input 't' to keep as state"));
  EXPECT_THAT(try_start({.state = {{"s", "sun"}}}),
              HasSubstr("the model has no output 'sun' to keep as state (did you mean 'sum'?)"));
  EXPECT_THAT(try_start({.state = {{"s", "sum"}, {"s", "y"}}}), HasSubstr("kept as state twice"));
}

TEST_F(SessionsOfAModel, ARepositoryNamesThem) {
  for (const char* file : {"config.json", "config.pbtxt"}) {
    const std::filesystem::path model = folder_.path(file + std::string(".repository/net"));
    std::filesystem::create_directories(model / "1");
    std::ofstream(model / "1/model.onnx") << sum_model();
    std::ofstream(model / file)
        << (std::string_view(file) == "config.json"
                ? R"({"state": {"s": "sum"}, "session_idle": "5s"})"
                : "max_batch_size: 4 sequence_batching { max_sequence_idle_microseconds: 5000000 "
                  "state [ { input_name: 's' output_name: 'sum' initial_state: { zero_data: true } } ] }");
    const auto sources = find_models(std::vector<std::string>{model.parent_path()}, {.slo_us = 60e6});
    ASSERT_TRUE(sources.ok()) << sources.error().to_string();
    EXPECT_EQ(sources->front().settings.state,
              (std::vector<std::pair<std::string, std::string>>{{"s", "sum"}}));
    EXPECT_EQ(sources->front().settings.session_idle_us, 5e6);
    ASSERT_EQ(serve(*sources), "");
    EXPECT_THAT(values_of(send("7", true, true, {1, 2}).get()), ElementsAre(2, 4));
    local_.reset();
  }
}

}  // namespace
}  // namespace heddle
