// mpirun heddle serve PLAN: ranks that are processes serve one plan. Skipped where mpirun cannot start anything
// or Heddle was built without MPI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

#include "heddle/base/json.h"
#include "serve_process.h"
#include "skip_model.h"
#include "support/rank_process.h"

namespace heddle {
namespace {

using testing::HasSubstr;

std::vector<std::string> on_two_ranks(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {
      "mpirun", "-q", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
      "-n",     "2",  HEDDLE_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

// Two hosts of one core each, as they would be two machines.
std::string two_hosts(const std::string& backend) {
  std::string yaml = "name: two\nhosts: [{name: h0}, {name: h1}]\ndevices:\n";
  for (const char* n : {"0", "1"})
    yaml += std::string("  - {name: d") + n + ", kind: cpu, host: h" + n + ", cores: \"" + n +
            "\", flops: 50GFLOPS, memory_bandwidth: 5GB/s, " + backend + "}\n";
  return yaml + "links: [{from: h0, to: h1, bandwidth: 1GB/s, latency: 50us}]\n";
}

class RankProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (single_cores().size() < 2) GTEST_SKIP() << "this machine has no two cores";
    std::string command;
    for (const auto& word : on_two_ranks({"run", folder_.file("nothing.json"), "2>&1"}))
      command += word + " ";
    const Process probe({"sh", "-c", command});
    std::string said;
    for (auto line = probe.line(); !line.empty(); line = probe.line()) said += line;
    if (said.find("nothing.json:") == std::string::npos)
      GTEST_SKIP() << "mpirun starts no Heddle with MPI here: " << said;
    std::ofstream(folder_.file("skip.onnx"), std::ios::binary) << skip_model();
  }
  void plan(const std::string& model, const std::string& backend, const std::vector<std::string>& more = {}) {
    std::ofstream(folder_.file("two.yaml")) << two_hosts(backend);
    std::vector<std::string> command = {HEDDLE_PROGRAM,
                                        "plan",
                                        folder_.file(model),
                                        "--cluster",
                                        folder_.file("two.yaml"),
                                        "--planner",
                                        "round-robin",
                                        "--no-profile",
                                        "--quiet",
                                        "-o",
                                        folder_.file("plan.json")};
    command.insert(command.end(), more.begin(), more.end());
    Process made(command);
    while (!made.line().empty()) continue;
    ASSERT_EQ(made.wait(), 0);
  }
  std::vector<std::string> serve_command() const {
    return on_two_ranks({"serve", folder_.file("plan.json"), "--port", "0", "--grpc-port", "0", "--in-flight",
                         "2", "--slo", "100s", "--json", "--quiet"});
  }
  static int port_of(const Process& server) {
    const auto started = parse_json(server.line());
    return started.ok() ? started->value("port", 0) : 0;
  }

  const ServeFolder folder_;
};

TEST_F(RankProgram, TwoRanksServeAPlanUntilRankZeroIsStopped) {
  plan("skip.onnx", "backend: openvino, backend_device: CPU", {"--batch", "1"});
  Process server(serve_command());
  const int port = port_of(server);
  ASSERT_GT(port, 0);
  for (int i = 0; i < 5; ++i) {
    const auto answer = RawClient(port).ask("POST", "/v2/models/skip/infer",
                                            R"({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32",
                                   "data": [1, 2, 3]}], "outputs": [{"name": "z"}]})");
    ASSERT_EQ(answer.status, 200) << answer.body;
    const auto json = parse_json(answer.body);
    ASSERT_TRUE(json.ok());
    for (size_t k = 0; k < 3; ++k)
      EXPECT_NEAR((*json)["outputs"][0]["data"][k].get<double>(), z_of(static_cast<float>(k + 1), k), 1e-4);
  }
  const auto load = RawClient(port).ask("POST", "/v2/repository/models/skip/load", "{}");
  EXPECT_NE(load.status, 200);
  EXPECT_THAT(load.body, HasSubstr("several ranks"));
  const int rank = test::rank_below(server.pid(), 0);
  ASSERT_GT(rank, 0);
  ::kill(rank, SIGTERM);
  EXPECT_EQ(server.wait(), 0);
}

// Two clients always have a request in flight, until one fails.
TEST_F(RankProgram, AKilledRankFailsTheRequestsInFlightAndEndsTheProgram) {
  std::ofstream(folder_.file("two.yaml")) << two_hosts("backend: emulated");
  Process made({HEDDLE_PROGRAM, "generate", "layered", "--ops", "60", "--layers", "20", "--devices-like",
                folder_.file("two.yaml"), "-o", folder_.file("g.json")});
  while (!made.line().empty()) continue;
  ASSERT_EQ(made.wait(), 0);
  plan("g.json", "backend: emulated");
  Process server(serve_command());
  const auto started = parse_json(server.line());
  ASSERT_TRUE(started.ok());
  const int port = (*started)["port"];
  const std::string path = "/v2/models/" + (*started)["models"][0]["name"].get<std::string>() + "/infer";
  const auto first_failure = [&] {
    while (true) {
      auto answer = RawClient(port).ask(
          "POST", path,
          R"({"inputs": [{"name": "payload", "shape": [1], "datatype": "UINT8", "data": [1]}]})");
      if (answer.status != 200) return answer.status == 500 ? answer.body : std::string();
    }
  };
  auto one = std::async(std::launch::async, first_failure);
  auto other = std::async(std::launch::async, first_failure);
  EXPECT_TRUE(eventually([&] {
    const auto status = parse_json(RawClient(port).ask("GET", "/v2/status").body);
    return status.ok() && (*status)["models"][0]["requests"]["in_time"] > 2;
  }));
  const int rank = test::rank_below(server.pid(), 1);
  const int worker = rank > 0 ? test::rank_below(rank, 1) : 0;
  if (worker > 0) ::kill(worker, SIGKILL);
  EXPECT_GT(worker, 0);
  EXPECT_THAT(one.get() + other.get(), HasSubstr("rank 1 does not answer any more"));
  EXPECT_EQ(server.wait(), 1);
}

}  // namespace
}  // namespace heddle
