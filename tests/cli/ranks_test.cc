// mpirun heddle run: several processes that run one plan, as a user starts them. Skipped where mpirun cannot
// start anything or Heddle was built without MPI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "heddle/base/json.h"
#include "run_program.h"
#include "support/rank_process.h"

namespace heddle {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<std::string> mpirun_command(int ranks) {
  return {"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
          "-n",     std::to_string(ranks)};
}

std::vector<std::string> with_heddle(std::vector<std::string> command,
                                     const std::vector<std::string>& arguments) {
  command.emplace_back(HEDDLE_PROGRAM);
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

Ran run_ranks(int ranks, const std::vector<std::string>& arguments, const std::string& folder) {
  return run_command(with_heddle(mpirun_command(ranks), arguments), folder);
}

// Two hosts of one core each, as they would be two machines.
constexpr const char* kTwoHosts = R"(name: two
hosts: [{name: h0}, {name: h1}]
devices:
  - {name: d0, kind: cpu, class: core, host: h0, cores: "0", flops: 50GFLOPS, memory_bandwidth: 5GB/s, BACKEND}
  - {name: d1, kind: cpu, class: core, host: h1, cores: "1", flops: 50GFLOPS, memory_bandwidth: 5GB/s, BACKEND}
links: [{from: h0, to: h1, bandwidth: 1GB/s, latency: 50us}]
)";

// Three hosts of one device each; `device` says what it is.
std::string three_hosts(const std::string& device) {
  std::string yaml = "name: three\nhosts: [{name: h0}, {name: h1}, {name: h2}]\ndevices:\n";
  for (const char* n : {"0", "1", "2"}) {
    yaml += std::string("  - {name: d") + n + ", host: h" + n +
            ", flops: 50GFLOPS, memory_bandwidth: 5GB/s, " + device + "}\n";
  }
  return yaml +
         "links: [{from: h0, to: h1, bandwidth: 1GB/s, latency: 50us}, {from: h1, to: h2, bandwidth: "
         "1GB/s, latency: 50us}]\n";
}

std::string two_hosts(bool real) {
  std::string yaml = kTwoHosts;
  for (size_t at = yaml.find("BACKEND"); at != std::string::npos; at = yaml.find("BACKEND"))
    yaml.replace(at, 7, real ? "backend: openvino, backend_device: CPU" : "backend: emulated");
  return yaml;
}

std::string light_model(const std::string& name) {
  return wheel_file("onnx/backend/test/data/light/light_" + name + ".onnx");
}

class RanksCli : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto probe = run_command(with_heddle(mpirun_command(2), {"run", "nothing.json"}), folder_.path());
    if (probe.err.find("nothing.json") == std::string::npos)
      GTEST_SKIP() << "mpirun starts no Heddle with MPI here: " << probe.err;
    folder_.write("two.yaml", two_hosts(true));
    folder_.write("emulated.yaml", two_hosts(false));
  }
  void plan(const std::vector<std::string>& arguments) {
    auto all = arguments;
    all.insert(all.begin(), "plan");
    all.insert(all.end(), {"--no-profile", "-o", "p.json"});
    const auto ran = run_heddle(all, folder_.path());
    ASSERT_EQ(ran.status, 0) << ran.err;
  }
  // Runs p.json, by so many ranks.
  void expect_equal_outputs(int ranks, const std::vector<std::string>& besides = {}) {
    std::vector<std::string> arguments = {"run", "p.json", "--repeat", "3", "--warmup", "1", "--json"};
    arguments.insert(arguments.end(), besides.begin(), besides.end());
    const auto ran = run_ranks(ranks, arguments, folder_.path());
    ASSERT_EQ(ran.status, 0) << ran.err;
    const auto json = parse_json(ran.out);  // one report: the other ranks are silent
    ASSERT_TRUE(json.ok()) << ran.out;
    EXPECT_TRUE((*json)["outputs_compared"].get<bool>());
    EXPECT_TRUE((*json)["outputs_equal"].get<bool>());
    EXPECT_EQ((*json)["repeats"], 3);
  }
  // Slow layers in a row: a run of many seconds.
  void plan_slow_graph() {
    ASSERT_EQ(run_heddle({"generate", "layered", "--ops", "60", "--layers", "20", "--devices-like",
                          "emulated.yaml", "-o", "g.json"},
                         folder_.path())
                  .status,
              0);
    plan({"g.json", "--cluster", "emulated.yaml", "--planner", "round-robin"});
  }
  TemporaryFolder folder_;
};

TEST_F(RanksCli, CutModelsGiveTheUnsplitModelsOutputs) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"squeezenet", "round-robin", "12"}, {"shufflenet", "round-robin", "7"}, {"squeezenet", "heft", "30"}};
  for (const auto& [name, planner, units] : cases) {
    const auto model = light_model(name);
    if (model.empty()) GTEST_SKIP() << "no light models here";
    plan({model, "--cluster", "two.yaml", "--planner", planner, "--units", units});
    const auto ran =
        run_ranks(2, {"run", "p.json", "--repeat", "2", "--warmup", "1", "--json"}, folder_.path());
    ASSERT_EQ(ran.status, 0) << ran.err;
    const auto json = parse_json(ran.out);  // one report: the other rank is silent
    ASSERT_TRUE(json.ok()) << ran.out;
    EXPECT_TRUE((*json)["outputs_compared"].get<bool>()) << name;
    EXPECT_TRUE((*json)["outputs_equal"].get<bool>()) << name;
    EXPECT_EQ((*json)["repeats"], 2);
  }
}

TEST_F(RanksCli, ThreeRanksGiveTheUnsplitModelsOutputs) {
  const auto model = light_model("squeezenet");
  if (model.empty()) GTEST_SKIP() << "no light models here";
  folder_.write("three.yaml", three_hosts("kind: cpu, cores: \"0\", backend: openvino, backend_device: CPU"));
  plan({model, "--cluster", "three.yaml", "--planner", "round-robin", "--units", "12"});
  expect_equal_outputs(3);
}

// Over a network a tensor goes in small pieces, of which MPI knows only some at a time.
TEST_F(RanksCli, TensorsGoOverTcpInPieces) {
  const auto model = light_model("squeezenet");
  if (model.empty()) GTEST_SKIP() << "no light models here";
  plan({model, "--cluster", "two.yaml", "--planner", "round-robin", "--units", "12"});
  for (const char* pieces : {"65536", "5000", "16000000"}) {
    auto command = mpirun_command(2);
    command.insert(command.end(), {"--mca", "btl", "tcp,self", "--mca", "btl_tcp_eager_limit", pieces});
    const auto ran = run_command(
        with_heddle(command, {"run", "p.json", "--repeat", "2", "--warmup", "1", "--json"}), folder_.path());
    ASSERT_EQ(ran.status, 0) << ran.err;
    const auto json = parse_json(ran.out);
    ASSERT_TRUE(json.ok()) << ran.out;
    EXPECT_TRUE((*json)["outputs_equal"].get<bool>()) << pieces;
  }
}

// Accelerators that are made up on the host, each in a process of its own (docs/torch.md).
TEST_F(RanksCli, AcceleratorsOnThreeRanksGiveTheUnsplitModelsOutputs) {
  if (run_heddle({"devices", "--backends"}, folder_.path()).out.find("torch") == std::string::npos)
    GTEST_SKIP() << "the backend torch is not built in";
  const auto model = light_model("shufflenet");
  if (model.empty()) GTEST_SKIP() << "no light models here";
  folder_.write("three.yaml", three_hosts("kind: gpu, memory: 64MiB, backend: torch, backend_device: cpu"));
  plan({model, "--cluster", "three.yaml", "--planner", "round-robin", "--units", "9"});
  expect_equal_outputs(3);
  expect_equal_outputs(3, {"--in-flight", "3"});
}

TEST_F(RanksCli, SeveralRequestsAreInFlight) {
  const auto model = light_model("shufflenet");
  if (model.empty()) GTEST_SKIP() << "no light models here";
  for (const char* objective : {"latency", "throughput"}) {
    plan({model, "--cluster", "two.yaml", "--planner", "round-robin", "--units", "8", "--objective",
          objective});
    const auto ran = run_ranks(
        2, {"run", "p.json", "--repeat", "9", "--warmup", "1", "--in-flight", "3", "--json"}, folder_.path());
    ASSERT_EQ(ran.status, 0) << ran.err;
    const auto json = parse_json(ran.out);
    ASSERT_TRUE(json.ok()) << ran.out;
    EXPECT_TRUE((*json)["outputs_equal"].get<bool>()) << objective;
    EXPECT_EQ((*json)["repeats"], 9);
    EXPECT_EQ((*json)["in_flight"], 3);
  }
  const auto unknown = run_ranks(2, {"run", "p.json", "--decisions", "nothing=argmax"}, folder_.path());
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("the output 'nothing'"));
}

TEST_F(RanksCli, OutputsThatDifferAreExitStatusOne) {
  const auto model = light_model("squeezenet");
  if (model.empty()) GTEST_SKIP() << "no light models here";
  plan({model, "--cluster", "two.yaml", "--planner", "round-robin", "--units", "8"});
  // Without any tolerance it depends on the order of additions whether they are equal: the status says which.
  const auto ran = run_ranks(2, {"run", "p.json", "--repeat", "1", "--rtol", "0", "--atol", "0", "--json"},
                             folder_.path());
  const auto json = parse_json(ran.out);
  ASSERT_TRUE(json.ok()) << ran.out << ran.err;
  EXPECT_EQ(ran.status, (*json)["outputs_equal"].get<bool>() ? 0 : 1);
}

TEST_F(RanksCli, AModelThatIsMissingOnOneRankEndsAllWithOneMessage) {
  const auto model = light_model("squeezenet");
  if (model.empty()) GTEST_SKIP() << "no light models here";
  std::filesystem::copy_file(model, folder_.file("m.onnx"));
  plan({"m.onnx", "--cluster", "two.yaml", "--planner", "round-robin", "--units", "8"});
  std::filesystem::create_directory(folder_.file("elsewhere"));
  auto command = with_heddle(mpirun_command(1), {"run", "p.json"});
  command.insert(command.end(),
                 {":", "-n", "1", "--wdir", folder_.file("elsewhere"), HEDDLE_PROGRAM, "run", "p.json"});
  const auto ran = run_command(command, folder_.path());
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("heddle: rank 1 ("), HasSubstr("m.onnx")));
  EXPECT_EQ(ran.err.find("heddle: "), ran.err.rfind("heddle: ")) << ran.err;  // once
}

// Of the two processes of a rank the one that works: what the kernel kills when memory runs out. Its parent
// tells of it; nobody tells of the parent but mpirun.
TEST_F(RanksCli, AKilledRankEndsAll) {
  plan_slow_graph();
  for (const bool worker : {true, false}) {
    const auto kill_rank_one = [worker](int mpirun) {
      for (int tries = 0; tries < 1000; ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        const int rank = test::rank_below(mpirun, 1);
        const int pid = worker && rank > 0 ? test::rank_below(rank, 1) : rank;
        if (pid == 0) continue;
        std::this_thread::sleep_for(std::chrono::seconds(1));  // in the midst of its work
        kill(pid, SIGKILL);
        return;
      }
    };
    const auto ran = run_command(with_heddle(mpirun_command(2), {"run", "p.json", "--repeat", "1000000"}),
                                 folder_.path(), kill_rank_one, 60);
    EXPECT_EQ(ran.status, worker ? 1 : 137) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(worker ? "heddle: rank 1: its process" : "signal 9"));
    EXPECT_THAT(ran.err, HasSubstr("signal 9"));
    EXPECT_EQ(ran.err.find("heddle: "), worker ? ran.err.rfind("heddle: ") : std::string::npos) << ran.err;
    EXPECT_EQ(ran.out, "");
  }
}

TEST_F(RanksCli, WhatRanksCannotDoIsSaidOnce) {
  plan_slow_graph();
  const std::tuple<std::vector<std::string>, int, const char*> cases[] = {
      {{"run", "p.json", "--recheck"}, 2, "--recheck: not over several ranks"},
      {{"run", "p.json", "--rank-devices", "d0;d9"}, 2, "the cluster has no device 'd9'"},
      {{"run", "nothing.json"}, 2, "nothing.json"}};
  for (const auto& [arguments, status, message] : cases) {
    const auto ran = run_ranks(2, arguments, folder_.path());
    EXPECT_EQ(ran.status, status) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(message));
    EXPECT_EQ(ran.err.find("heddle: "), ran.err.rfind("heddle: ")) << ran.err;
  }
  const auto three = run_ranks(3, {"run", "p.json"}, folder_.path());
  EXPECT_EQ(three.status, 2);
  EXPECT_THAT(three.err, HasSubstr("start mpirun with -n 2"));
}

// mpirun kills all ranks when one has ended with an error. Rank 0 prints before that, however slow it is.
TEST_F(RanksCli, TheMessageOfASlowRankIsNotLost) {
  plan_slow_graph();
  const std::tuple<std::vector<std::string>, const char*> cases[] = {
      {{"run", "p.json"}, "start mpirun with -n 2"},
      {{"run", "p.json", "--adapt"}, "--adapt: not over several ranks"},
      {{"serve", "x.onnx"}, "only a plan file"},
      {{"devices", "--copies"}, "--copies: measures one machine"}};
  for (const auto& [arguments, message] : cases) {
    auto command = mpirun_command(3);
    command.insert(command.end(), {"-x", std::string("LD_PRELOAD=") + HEDDLE_LATE_END});
    const auto ran = run_command(with_heddle(std::move(command), arguments), folder_.path());
    EXPECT_EQ(ran.status, 2) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(message));
  }
}

// A schedule in IOS's form and an instance of HIOS's simulation, on ranks of emulated devices.
TEST_F(RanksCli, PublishedSchedulesRun) {
  const char* shared = std::getenv("HEDDLE_SHARED");
  const auto data = std::string(shared == nullptr ? "" : shared) + "/data/hios";
  if (shared == nullptr || !std::filesystem::exists(data)) GTEST_SKIP() << "no public data here";
  const std::vector<std::string> plans[] = {
      {data + "/sim/sim_2001.json", "--devices", "4", "--planner", "hios-lp"},
      {data + "/ios_schedules/inception_v3_v100_bs1.json", "--cluster", "preset:v100", "--devices", "gpu1",
       "--as-scheduled"}};
  for (const auto& arguments : plans) {
    plan(arguments);
    const auto ran =
        run_ranks(4, {"run", "p.json", "--repeat", "3", "--warmup", "1", "--json"}, folder_.path());
    ASSERT_EQ(ran.status, 0) << ran.err;
    const auto json = parse_json(ran.out);
    ASSERT_TRUE(json.ok()) << ran.out;
    EXPECT_GE((*json)["measured_us"].get<double>(), (*json)["predicted_us"].get<double>() * 0.999);
    std::printf("%s: predicted %.0f us, measured %.0f us\n", arguments[0].c_str(),
                (*json)["predicted_us"].get<double>(), (*json)["measured_us"].get<double>());
    const auto stream = run_ranks(
        4, {"run", "p.json", "--repeat", "8", "--warmup", "1", "--in-flight", "3", "--json"}, folder_.path());
    ASSERT_EQ(stream.status, 0) << stream.err;
    EXPECT_EQ((*parse_json(stream.out))["repeats"], 8);
  }
}

TEST_F(RanksCli, LinksAreMeasuredIntoAClusterFile) {
  const auto ran = run_ranks(2, {"devices", "-o", "ranks.yaml"}, folder_.path());
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("One message, by its size"));
  const auto shown = run_heddle({"devices", "--cluster", "ranks.yaml", "--json"}, folder_.path());
  ASSERT_EQ(shown.status, 0) << shown.err;
  const auto json = parse_json(shown.out);
  ASSERT_TRUE(json.ok());
  ASSERT_EQ((*json)["hosts"].size(), 2U);
  const auto& link = (*json)["links"].back();
  EXPECT_EQ(link["from"], (*json)["hosts"][0]["name"]);
  EXPECT_EQ(link["to"], (*json)["hosts"][1]["name"]);
  EXPECT_GT(link["bytes_per_s"].get<double>(), 1e6);
  EXPECT_GT(link["latency_us"].get<double>(), 0);
  EXPECT_THAT(ran.out, HasSubstr("both ways"));

  const auto of_three = run_ranks(3, {"devices", "-o", "three.yaml"}, folder_.path());
  ASSERT_EQ(of_three.status, 0) << of_three.err;
  EXPECT_THAT(of_three.out, HasSubstr("to or from all others at once"));
  EXPECT_EQ(run_heddle({"devices", "--cluster", "three.yaml"}, folder_.path()).status, 0);
}

// Prediction against measurement over a shaped link is printed; how close they are is the machine's matter.
TEST_F(RanksCli, TwoNamespacesAreTwoHosts) {
  const auto ran =
      run_command({HEDDLE_SOURCE_DIR "/scripts/try_two_hosts.sh", HEDDLE_PROGRAM}, folder_.path());
  if (ran.status == 77) GTEST_SKIP() << ran.err;
  EXPECT_TRUE(ran.status == 0 || ran.status == 1) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("er: "), HasSubstr("ws: "), HasSubstr("predicted")));
  std::printf("%s", ran.out.c_str());
}

TEST_F(RanksCli, TheCostOfAMessageIsMeasuredBesideMpi) {
  const auto ran = run_ranks(2, {"bench", "transport", "--repeat", "1", "--json"}, folder_.path());
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto json = parse_json(ran.out);
  ASSERT_TRUE(json.ok()) << ran.out;
  ASSERT_EQ(json->size(), 15U);
  for (const auto& row : *json) {
    if (row["metric"] == "one message") {
      EXPECT_GT(row["baseline_value"].get<double>(), 0);
    }
  }
}

}  // namespace
}  // namespace heddle
