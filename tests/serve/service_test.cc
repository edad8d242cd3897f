// A server of small models on this machine, in the test's own process: its answers, its refusals, and that
// nothing that is sent to it makes it fail.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "heddle/base/random.h"
#include "heddle/serve/fleet_server.h"
#include "heddle/serve/grpc_server.h"
#include "heddle/serve/local_server.h"
#include "heddle/serve/rest_api.h"
#include "model_files.h"
#include "onnx_writer.h"
#include "open_inference.grpc.pb.h"
#include "protocol/infer_json.h"
#include "serve_support.h"

namespace heddle {
namespace {

using testing::HasSubstr;
namespace ow = onnx_writer;

// y = x + [1, 2, 3], for any number of rows; z = y + y.
std::string add_model() {
  return ow::model({{ow::node("Add", {"x", "w"}, {"y"}, "add"), ow::node("Add", {"y", "y"}, {"z"}, "twice")},
                    {ow::value("x", {-1, 3})},
                    {ow::value("y", {-1, 3}), ow::value("z", {-1, 3})},
                    {ow::float_tensor("w", {3}, {1, 2, 3})}});
}
// The rows' softmax over the batch: rows depend on each other.
std::string mixing_model() {
  return ow::model({{ow::node("Softmax", {"x"}, {"y"}, "mix", {ow::attribute_int("axis", 0)})},
                    {ow::value("x", {-1, 3})},
                    {ow::value("y", {-1, 3})},
                    {}});
}

class Service : public testing::Test {
 protected:
  static constexpr const char* kInfer = "/v2/models/add/infer";

  void start(const std::vector<std::string>& paths,
             const ModelSettings& defaults = {.slo_us = 60e6, .max_batch = 4}, bool adapt = false) {
    auto sources = find_models(paths, defaults);
    ASSERT_TRUE(sources.ok()) << sources.error().to_string();
    LocalServerOptions options;
    options.measure_s = .001;
    options.adapt = adapt;
    auto local = LocalServer::create(service_, std::move(*sources), options);
    ASSERT_TRUE(local.ok()) << local.error().to_string();
    local_ = std::move(*local);
    listen();
  }
  void listen() {
    auto server = start_rest(service_);
    ASSERT_TRUE(server.ok());
    server_ = std::move(*server);
  }
  void TearDown() override {
    if (server_) server_->stop(5);
    service_.stop(5);
    local_.reset();
  }
  RawClient::Answer ask(const std::string& method, const std::string& path, const std::string& body = "",
                        const std::string& headers = "") const {
    return RawClient(server_->port()).ask(method, path, body, headers);
  }
  static Json json(const RawClient::Answer& answer) {
    auto parsed = parse_json(answer.body);
    EXPECT_TRUE(parsed.ok()) << answer.status << " " << answer.body;
    return parsed.ok() ? *parsed : Json();
  }

  TestFolder folder_;
  InferService service_;
  std::unique_ptr<LocalServer> local_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(Service, ComputesWhatTheModelComputes) {
  start({folder_.write("add.onnx", add_model())});
  const auto answer = json(ask("POST", kInfer, R"({"id": "7", "inputs": [
    {"name": "x", "shape": [2, 3], "datatype": "FP32", "data": [[1, 2, 3], [10, 20, 30]]}]})"));
  EXPECT_EQ(answer["id"], "7");
  EXPECT_EQ(answer["model_name"], "add");
  ASSERT_EQ(answer["outputs"].size(), 2U);
  EXPECT_EQ(answer["outputs"][0]["name"], "y");
  EXPECT_EQ(answer["outputs"][0]["shape"], Json({2, 3}));
  EXPECT_EQ(answer["outputs"][0]["data"], Json({2, 4, 6, 11, 22, 33}));
  EXPECT_EQ(answer["outputs"][1]["data"], Json({4, 8, 12, 22, 44, 66}));
  EXPECT_GE(answer["parameters"]["total_us"], answer["parameters"]["compute_us"]);
  // Every row of many requests at once comes back to whom it belongs.
  std::vector<std::thread> clients;
  std::atomic<int> right{0};
  for (int c = 0; c < 8; ++c)
    clients.emplace_back([this, c, &right] {
      RawClient client(server_->port());
      for (int i = 0; i < 20; ++i) {
        const int v = 100 * c + i;
        const auto got =
            json(client.ask("POST", kInfer,
                            R"({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [)" +
                                std::to_string(v) + R"(, 0, 0]}], "outputs": [{"name": "z"}]})"));
        right += got["outputs"].size() == 1 && got["outputs"][0]["data"] == Json({2 * (v + 1), 4, 6});
      }
    });
  for (auto& t : clients) t.join();
  EXPECT_EQ(right, 160);
}

// Every set of cores has its turns, and a model that is loaded again keeps what is compiled for them.
TEST_F(Service, AdaptsToFreeCores) {
  start({folder_.write("add.onnx", add_model())}, {.slo_us = 60e6, .max_batch = 2}, true);
  for (int round = 0; round < 2; ++round) {
    RawClient client(server_->port());
    for (int i = 0; i < 120; ++i) {
      const auto got =
          json(client.ask("POST", kInfer,
                          R"({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [)" +
                              std::to_string(i) + R"(, 0, 0]}], "outputs": [{"name": "z"}]})"));
      ASSERT_EQ(got["outputs"].size(), 1U);
      ASSERT_EQ(got["outputs"][0]["data"], Json({2 * (i + 1), 4, 6}));
    }
    ASSERT_TRUE(local_->load("add").ok());
  }
}

TEST_F(Service, SpeaksTheBinaryExtension) {
  start({folder_.write("add.onnx", add_model())});
  const float x[] = {1, 2, 3};
  const std::string head = R"({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32",
    "parameters": {"binary_data_size": 12}}], "outputs": [
    {"name": "z", "parameters": {"binary_data": true}}, {"name": "y"}]})";
  const auto length = "Inference-Header-Content-Length: " + std::to_string(head.size()) + "\r\n";
  const auto tensor = std::string(reinterpret_cast<const char*>(x), 12);
  const auto answer = ask("POST", kInfer, head + tensor, length);
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto json_bytes = std::stoul(answer.header("inference-header-content-length"));
  const auto parsed = parse_json(std::string_view(answer.body).substr(0, json_bytes));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ((*parsed)["outputs"][0]["parameters"]["binary_data_size"], 12);
  EXPECT_EQ((*parsed)["outputs"][1]["data"], Json({2, 4, 6}));
  float z[3];
  ASSERT_EQ(answer.body.size(), json_bytes + 12);
  std::memcpy(z, answer.body.data() + json_bytes, 12);
  EXPECT_THAT(z, testing::ElementsAre(4, 8, 12));
  // Too few and too many bytes behind the JSON, and lengths that are none.
  EXPECT_EQ(ask("POST", kInfer, head + tensor.substr(1), length).status, 400);
  EXPECT_EQ(ask("POST", kInfer, head + tensor + "x", length).status, 400);
  EXPECT_EQ(ask("POST", kInfer, head, length).status, 400);
  EXPECT_EQ(ask("POST", kInfer, head, "Inference-Header-Content-Length: 99999\r\n").status, 400);
  EXPECT_EQ(ask("POST", kInfer, head, "Inference-Header-Content-Length: x\r\n").status, 400);
}

TEST_F(Service, SaysWhatIsWrongWithARequest) {
  start({folder_.write("add.onnx", add_model())});
  struct Case {
    const char* body;
    const char* says;
  };
  const Case kCases[] = {
      {"", "empty"},
      {"{", "line 1"},
      {"[]", "expected an object"},
      {"{}", "inputs"},
      {R"({"inputs": []})", "the input 'x' is missing"},
      {R"({"inputs": [{"name": "a", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}]})",
       "no input 'a'"},
      {R"({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "INT32", "data": [1, 2, 3]}]})",
       "is INT32 of shape 1x3, expected FP32 of shape Nx3 with N from 1 to 4"},
      {R"({"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}]})", "1x4"},
      {R"({"inputs": [{"name": "x", "shape": [5, 3], "datatype": "FP32",
          "data": [1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3]}]})",
       "N from 1 to 4"},
      {R"({"inputs": [{"name": "x", "shape": [0, 3], "datatype": "FP32", "data": []}]})", "0x3"},
      {R"({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2]}]})", "2 elements"},
      {R"({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3, 4]}]})",
       "more than"},
      {R"({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, "a"]}]})",
       "element 2"},
      {R"({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 1e39]}]})",
       "element 2"},
      {R"({"inputs": [{"name": "x", "shape": [1, -3], "datatype": "FP32", "data": [1]}]})", "shape"},
      {R"({"inputs": [{"name": "x", "shape": [1099511627776, 1099511627776], "datatype": "FP32", "data": [1]}]})",
       "larger than any memory"},
      {R"({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "BYTES", "data": ["a", "b", "c"]}]})",
       "BYTES"},
      {R"({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP16", "data": [1, 2, 3]}]})", "binary"},
      {R"({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32",
          "parameters": {"binary_data_size": 11}}]})",
       "takes 12 bytes"},
      {R"({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32",
          "parameters": {"shared_memory_region": "r"}}]})",
       "shared memory"},
      {R"({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}],
          "outputs": [{"name": "w"}]})",
       "no output 'w'"},
      {R"({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}],
          "outputs": [{"name": "y"}, {"name": "y"}]})",
       "twice"},
      {R"({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]},
          {"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}]})",
       "twice"},
      {R"({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}],
          "parameters": {"timeout": -1}})",
       "timeout"},
  };
  for (const auto& c : kCases) {
    const auto answer = ask("POST", kInfer, c.body);
    EXPECT_EQ(answer.status, 400) << c.body;
    EXPECT_THAT(json(answer)["error"].get<std::string>(), HasSubstr(c.says)) << c.body;
  }
  EXPECT_THAT(ask("GET", "/metrics").body,
              HasSubstr(R"(heddle_requests_total{model="add",outcome="invalid"} )" +
                        std::to_string(std::size(kCases)) + "\n"));
  EXPECT_EQ(service_.statistics("add").success.count, 0U);
}

TEST_F(Service, DropsWhatCannotMeetItsDeadline) {
  start({folder_.write("add.onnx", add_model())});
  // The model takes longer than a microsecond, so the request is refused before it runs.
  const auto late = ask("POST", kInfer, R"({"parameters": {"timeout": 1}, "inputs": [
    {"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}]})");
  EXPECT_EQ(late.status, 504) << late.body;
  EXPECT_THAT(json(late)["error"].get<std::string>(), HasSubstr("1 us after arrival"));
  EXPECT_THAT(ask("GET", "/metrics").body,
              HasSubstr(R"(heddle_requests_total{model="add",outcome="dropped"} 1)"));
}

TEST_F(Service, RowsThatDependOnEachOtherAreNotMixed) {
  start({folder_.write("mix.onnx", mixing_model())});
  const auto status = json(ask("GET", "/v2/status"));
  EXPECT_EQ(status["models"][0]["max_rows"], 1);
  EXPECT_THAT(status["models"][0]["note"].get<std::string>(), HasSubstr("differs from what it is alone"));
  EXPECT_EQ(json(ask("GET", "/v2/models/mix"))["inputs"][0]["shape"], Json({1, 3}));
}

TEST_F(Service, LoadsAndUnloadsModelsOfARepository) {
  namespace fs = std::filesystem;
  fs::create_directories(folder_.path("repo/add/1"));
  fs::create_directories(folder_.path("repo/add/3"));
  fs::create_directories(folder_.path("repo/mix/1"));
  for (const char* name : {"repo/add/1/model.onnx", "repo/add/3/model.onnx", "repo/mix/1/model.onnx"})
    folder_.write(name, add_model());
  folder_.write("repo/mix/config.json", R"({"slo": "9s", "max_batch": 2, "weight": 3})");
  folder_.write("repo/add/config.pbtxt", R"(name: "add"
platform: "onnxruntime_onnx"
max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]
dynamic_batching { preferred_batch_size: [ 2, 4 ] }
instance_group [ { kind: KIND_CPU count: 1 } ]
)");
  folder_.write("repo/mix/config.pbtxt", "max_batch_size: 4");
  start({folder_.path("repo")}, {.slo_us = 60e6, .max_batch = 1});
  const auto index = json(ask("POST", "/v2/repository/index"));
  ASSERT_EQ(index.size(), 2U);
  EXPECT_EQ(index[0]["name"], "add");
  EXPECT_EQ(index[0]["version"], "3");
  EXPECT_EQ(index[0]["state"], "READY");
  EXPECT_EQ(json(ask("GET", "/v2/models/mix"))["parameters"]["slo_us"], 9e6);
  EXPECT_EQ(json(ask("GET", "/v2/models/mix"))["parameters"]["max_rows"], 2);
  EXPECT_EQ(json(ask("GET", "/v2/models/add"))["parameters"]["max_rows"], 4);
  EXPECT_EQ(ask("GET", "/v2/models/add/versions/3/ready").status, 200);
  EXPECT_EQ(ask("GET", "/v2/models/add/versions/1/ready").status, 404);
  const std::string body =
      R"({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}]})";
  // Requests go on while the other model comes and goes.
  std::atomic<bool> stop{false};
  std::atomic<int> answered{0}, other{0};
  std::thread client([&] {
    RawClient c(server_->port());
    while (!stop) (c.ask("POST", kInfer, body).status == 200 ? answered : other)++;
  });
  EXPECT_EQ(ask("POST", "/v2/repository/models/mix/unload").status, 200);
  EXPECT_EQ(ask("POST", "/v2/models/mix/infer", body).status, 404);
  EXPECT_EQ(json(ask("POST", "/v2/repository/index"))[1]["state"], "UNAVAILABLE");
  EXPECT_EQ(ask("POST", "/v2/repository/models/mix/load").status, 200);
  EXPECT_EQ(ask("POST", "/v2/models/mix/infer", body).status, 200);
  stop = true;
  client.join();
  EXPECT_GT(answered, 0);
  EXPECT_EQ(other, 0);
  const auto unknown = ask("POST", "/v2/repository/models/adds/load");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_THAT(unknown.body, HasSubstr("did you mean 'add'?"));
}

TEST_F(Service, EveryPathAndMethodHasAnAnswer) {
  start({folder_.write("add.onnx", add_model())});
  const char* kPaths[] = {"/",
                          "/v2",
                          "/v2/",
                          "/v2/health/live",
                          "/v2/health/ready",
                          "/v2/health/dead",
                          "/v2/models",
                          "/v2/models/",
                          "/v2/models/add",
                          "/v2/models/none",
                          "/v2/models/add/infer",
                          "/v2/models/add/versions/1/infer",
                          "/v2/models/add/versions",
                          "/v2/models/add/stats",
                          "/v2/models/stats",
                          "/v2/models/add/config",
                          "/v2/repository/index",
                          "/v2/repository/models/none/load",
                          "/v2/repository/models",
                          "/metrics",
                          "/v2/status",
                          "/../etc/passwd",
                          "/v2/models/%2e%2e/infer",
                          "/%ff%fe",
                          "*"};
  const char* kMethods[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"};
  Random random(5);
  for (const char* path : kPaths)
    for (const char* method : kMethods) {
      std::string body;
      for (int64_t i = random.between(0, 40); i > 0; --i) body += static_cast<char>(random.between(0, 255));
      const auto answer = ask(method, path, body);
      EXPECT_GE(answer.status, 200) << method << " " << path;
      EXPECT_NE(answer.status, 500) << method << " " << path << " " << answer.body;
      if (answer.status >= 400 && std::string(method) != "HEAD" && !answer.body.empty()) {
        EXPECT_FALSE(json(answer)["error"].get<std::string>().empty()) << method << " " << path;
      }
    }
  // Requests that are cut anywhere, and any bytes.
  const std::string good =
      "POST /v2/models/add/infer HTTP/1.1\r\nContent-Length: 80\r\n\r\n"
      R"({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}]})";
  for (size_t cut = 0; cut < good.size(); cut += 3) {
    const RawClient client(server_->port());
    client.send(good.substr(0, cut));
  }
  for (int i = 0; i < 60; ++i) {
    auto bytes = good;
    for (int k = 0; k < 4; ++k)
      bytes[static_cast<size_t>(random.between(0, static_cast<int64_t>(bytes.size()) - 1))] =
          static_cast<char>(random.between(0, 255));
    RawClient client(server_->port());
    client.send(bytes);
    client.finish_sending();
    client.receive();
  }
  EXPECT_EQ(ask("GET", "/v2/health/ready").status, 200);
  EXPECT_TRUE(eventually([this] { return server_->counters().body_bytes == 0; }));
}

TEST_F(Service, AFleetIsServedByTimedDevices) {
  Fleet fleet;
  fleet.name = "two";
  fleet.classes = {{.name = "fast", .count = 1, .nic_bytes_per_s = 1e9},
                   {.name = "slow", .count = 3, .nic_bytes_per_s = 1e9}};
  FleetModel net;
  net.name = "net";
  net.blocks = 2;
  net.cut_bytes = {1000, 1000, 1000};
  net.slo_us = 60e3;
  net.latency_us = {{{{2000, 2000}, {3000, 3000}}}, {{{6000, 9000}, {9000, 14000}}}};
  fleet.models = {net};
  FleetPlan plan;
  plan.fleet = "two";
  plan.planner = "test";
  plan.models = {{.pipelines = {{.partitions = {{0, 1, 1, 1, 3}, {1, 2, 0, 1, 1}}, .batch = 2}}}};
  evaluate_fleet_plan(fleet, plan);
  plan.bound = plan.value;
  LivePlaneOptions options;
  options.wake_early_ns = 30'000'000;  // for machines with much else to do
  auto generation = timed_generation(fleet, plan, options);
  ASSERT_TRUE(generation.ok()) << generation.error().to_string();
  service_.serve(std::move(*generation));
  listen();
  const auto got =
      ask("POST", "/v2/models/net/infer",
          R"({"inputs": [{"name": "payload", "shape": [3], "datatype": "UINT8", "data": [1, 2, 3]}]})");
  ASSERT_EQ(got.status, 200) << got.body;
  const auto answer = json(got);
  EXPECT_EQ(answer["outputs"][0]["data"][0], 1);
  // One request waits for a second one as long as it can.
  EXPECT_GE(answer["parameters"]["compute_us"].get<double>(), 8000);
  EXPECT_EQ(ask("POST", "/v2/repository/models/net/unload").status, 501);
  const auto status = json(ask("GET", "/v2/status"));
  EXPECT_EQ(status["pools"].size(), 2U);
  EXPECT_EQ(status["pools"][0]["runs"], 1);
  EXPECT_FALSE(timed_generation(fleet, plan, {}, 1e3).ok());
  plan.models[0].rate_per_s *= 2;
  EXPECT_EQ(timed_generation(fleet, plan, {}).error().code(), Code::kVerificationFailed);
}

TEST(Models, AreFoundOrRefused) {
  const TestFolder folder;
  const auto refuse = [](const std::vector<std::string>& paths) {
    const auto found = find_models(paths, {});
    EXPECT_FALSE(found.ok());
    return found.ok() ? std::string() : found.error().to_string();
  };
  EXPECT_THAT(refuse({folder.path("none.onnx")}), HasSubstr("no such file"));
  std::filesystem::create_directories(folder.path("empty"));
  EXPECT_THAT(refuse({folder.path("empty")}), HasSubstr("holds no models"));
  std::filesystem::create_directories(folder.path("repo/net/01"));
  EXPECT_THAT(refuse({folder.path("repo")}), HasSubstr("VERSION/model.onnx"));
  const auto a = folder.write("a.onnx", "");
  EXPECT_THAT(refuse({a, a}), HasSubstr("two models are named 'a'"));
  EXPECT_THAT(refuse({folder.write("a b.onnx", "")}), HasSubstr("URL"));
  std::filesystem::create_directories(folder.path("repo/net/2"));
  folder.write("repo/net/2/model.onnx", "");
  folder.write("repo/net/config.json", R"({"slo": "soon"})");
  EXPECT_THAT(refuse({folder.path("repo")}), HasSubstr("$.slo"));
  for (const auto& [text, said] :
       {std::pair<const char*, const char*>{"max_batch_size: many", "line 1, column"},
        {"max_batch_size: -1", "max_batch_size is -1"},
        {"input [{ name: 'x' dims: [ 0 ] }]", "input 'x' has the dimension 0"}}) {
    folder.write("repo/net/config.pbtxt", text);
    EXPECT_THAT(refuse({folder.path("repo")}), HasSubstr(said));
  }
}

// The public clients, as their users write them. They need a Python with tritonclient[http,grpc]: the local
// environment's, or the one that HEDDLE_TRITON_PYTHON names.
void run_script(const std::string& script, const std::string& module, int port) {
  const char* python = std::getenv("HEDDLE_TRITON_PYTHON");
  // Paths may have blanks.
  const std::string interpreter = "'" + std::string(python != nullptr ? python : HEDDLE_VENV_PYTHON) + "'";
  if (std::system((interpreter + " -c 'import " + module + "' 2>/dev/null").c_str()) != 0)
    GTEST_SKIP() << interpreter << " has no " << module << ": run `make setup`";
  const auto command = interpreter + " '" + HEDDLE_SOURCE_DIR + "/tests/serve/clients/" + script +
                       "' localhost:" + std::to_string(port) + " add";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
}

TEST_F(Service, TritonclientWorksUnchangedOverHttp) {
  start({folder_.write("add.onnx", add_model())});
  run_script("triton_http.py", "tritonclient.http.aio", server_->port());
}

TEST_F(Service, TritonclientWorksUnchangedOverGrpc) {
  start({folder_.write("add.onnx", add_model())});
  auto grpc = GrpcServer::start({}, service_);
  ASSERT_TRUE(grpc.ok()) << grpc.error().to_string();
  run_script("triton_grpc.py", "tritonclient.grpc.aio", (*grpc)->port());
  GrpcServerOptions taken;
  taken.port = (*grpc)->port();
  const auto second = GrpcServer::start(taken, service_);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().to_string(), HasSubstr("127.0.0.1:" + std::to_string(taken.port)));
  (*grpc)->stop(1);
}

// A stranger's message could take far more memory than its bytes.
TEST_F(Service, NoMessageIsReadBeforeItsCallIsPermitted) {
  start({folder_.write("add.onnx", add_model())});
  GrpcServerOptions options;
  options.bearer_token = "a token";
  auto grpc = GrpcServer::start(options, service_);
  ASSERT_TRUE(grpc.ok()) << grpc.error().to_string();
  const auto stub = inference::GRPCInferenceService::NewStub(grpc::CreateChannel(
      "127.0.0.1:" + std::to_string((*grpc)->port()), grpc::InsecureChannelCredentials()));
  const auto ready = [&stub](const std::string& name, bool permitted) {
    grpc::ClientContext context;
    if (permitted) context.AddMetadata("authorization", "Bearer a token");
    inference::ModelReadyRequest request;
    request.set_name(name);
    inference::ModelReadyResponse response;
    const auto status = stub->ModelReady(&context, request, &response);
    EXPECT_EQ(response.ready(), status.ok() && name == "add");
    return status.error_code();
  };
  const std::string large(100'000, 'm'), no_text = "\xff";
  EXPECT_EQ(ready("add", true), grpc::StatusCode::OK);
  EXPECT_EQ(ready("none", true), grpc::StatusCode::OK);
  EXPECT_EQ(ready(large, true), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ready(no_text, true), grpc::StatusCode::INVALID_ARGUMENT);
  for (const auto& name : {std::string("add"), large, no_text})
    EXPECT_EQ(ready(name, false), grpc::StatusCode::UNAUTHENTICATED);
}

}  // namespace
}  // namespace heddle
