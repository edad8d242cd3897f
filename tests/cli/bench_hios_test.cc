// Simulation instances and IOS's files, as a user has them: heddle plan and heddle bench hios.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "heddle/base/json.h"
#include "run_program.h"

namespace heddle {
namespace {

using testing::HasSubstr;

// A fork of two ops that pay for no second device: 1 + the pair at once.
constexpr char kFork[] = R"({"name": "fork", "ops": 3, "deps": 2, "nodes": [
  {"id": 0, "layer": 0, "time_ms": 1, "gpu_utilization": 1},
  {"id": 1, "layer": 1, "time_ms": 2, "gpu_utilization": 0.5},
  {"id": 2, "layer": 1, "time_ms": 2, "gpu_utilization": 0.5}], "edges": [
  {"src": 0, "dst": 1, "transfer_ms": 5, "transfer_ms_code": 0.5},
  {"src": 0, "dst": 2, "transfer_ms": 5, "transfer_ms_code": 0.5}]})";

constexpr char kGraph[] = R"({"name": "pair", "input_shape": [1, 8, 8], "nodes": [
  {"id": 0, "name": "a", "op": "conv", "macs": 100000000, "weight_bytes": 0, "in_bytes": 256,
   "out_shape": [1, 8, 8], "out_bytes": 256},
  {"id": 1, "name": "b", "op": "conv", "macs": 100000000, "weight_bytes": 0, "in_bytes": 256,
   "out_shape": [1, 8, 8], "out_bytes": 256}], "edges": [], "graph_inputs": [
  {"dst": 0, "channels": [0, 1], "bytes": 256}, {"dst": 1, "channels": [0, 1], "bytes": 256}],
  "stages": [{"block": 0, "groups": [[0], [1]]}]})";

class Hios : public testing::Test {
 protected:
  Hios() {
    folder_.write("fork.json", kFork);
    folder_.write("pair.json", kGraph);
    folder_.write(
        "reference.jsonl",
        R"({"instance":"fork","transfer":"transfer_ms","gpus":2,"sequential":5,"hios_lp":4,"lower_bound":3})"
        "\n"
        R"({"instance":"fork","transfer":"transfer_ms_code","gpus":2,"hios_lp":3.5})"
        "\n");
    std::filesystem::create_directories(folder_.file("in"));
  }
  Json json_of(const std::vector<std::string>& arguments) {
    const auto ran = run_heddle(arguments, folder_.path());
    EXPECT_EQ(ran.status, 0) << ran.err;
    const auto json = parse_json(ran.out);
    EXPECT_TRUE(json.ok()) << ran.out;
    return json.ok() ? *json : Json();
  }
  TemporaryFolder folder_;
};

TEST_F(Hios, SimulationInstancesArePlannedOnSoManyDevices) {
  auto plan =
      json_of({"plan", "fork.json", "--devices", "2", "--planner", "hios-lp", "-o", "p.plan.json", "--json"});
  EXPECT_EQ(plan["value_us"], 4000);  // 1 + (half of 4 and half of 2)
  EXPECT_TRUE(plan["verified"].get<bool>());
  EXPECT_EQ(run_heddle({"verify", "p.plan.json"}, folder_.path()).status, 0);
  plan = json_of(
      {"plan", "fork.json", "--devices", "2", "--transfer", "reader", "--planner", "hios-lp", "--json"});
  EXPECT_EQ(plan["value_us"], 3500);  // 1 + 0.5 + 2 on the other device
  plan = json_of({"plan", "fork.json", "--planner", "sequential", "--json"});
  EXPECT_EQ(plan["value_us"], 5000);
  const auto mistaken = run_heddle({"plan", "fork.json", "--devices", "gpu1"}, folder_.path());
  EXPECT_EQ(mistaken.status, 2);
  EXPECT_THAT(mistaken.err, HasSubstr("brings equal devices; give their number, 1 to 64"));
  EXPECT_THAT(run_heddle({"plan", "fork.json", "--cluster", "preset:v100"}, folder_.path()).err,
              HasSubstr("brings its own devices"));
  EXPECT_THAT(run_heddle({"plan", "fork.json", "--transfer", "sink"}, folder_.path()).err,
              HasSubstr("--transfer sink: expected source or reader"));
}

TEST_F(Hios, SchedulesOfFilesAreImportedAndWritten) {
  const std::vector<std::string> common = {"--cluster", "preset:hios-a40", "--devices", "gpu1", "--json"};
  auto arguments = std::vector<std::string>{"plan", "pair.json", "--as-scheduled"};
  arguments.insert(arguments.end(), common.begin(), common.end());
  const auto imported = json_of(arguments);
  EXPECT_EQ(imported["planner"], "file");
  arguments = {"plan", "pair.json", "--stages", "2", "--planner", "ios", "--schedule", "out.json"};
  arguments.insert(arguments.end(), common.begin(), common.end());
  const auto planned = json_of(arguments);
  EXPECT_EQ(planned["value_us"], imported["value_us"]);
  arguments = {"plan", "out.json", "--as-scheduled"};
  arguments.insert(arguments.end(), common.begin(), common.end());
  EXPECT_EQ(json_of(arguments)["value_us"], imported["value_us"]);
  const auto none = run_heddle({"plan", "fork.json", "--as-scheduled"}, folder_.path());
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, HasSubstr("--as-scheduled needs a schedule"));
}

TEST_F(Hios, BenchComparesInstanceByInstance) {
  const auto rows = json_of({"bench", "hios", "--input", ".", "--json"});
  int found = 0;
  for (const auto& row : rows) {
    EXPECT_EQ(row["suite"], "hios");
    if (row["planner"] != "hios-lp") continue;
    if (row["instance"] == "fork, 2 devices, transfer by source") {
      EXPECT_EQ(row["value"], 4);
      EXPECT_EQ(row["reference"], 4);
      EXPECT_EQ(row["baseline_value"], 3);
      ++found;
    } else if (row["instance"] == "fork, 2 devices, transfer by reader") {
      EXPECT_EQ(row["value"], 3.5);
      ++found;
    } else {
      EXPECT_EQ(row["metric"], "hios-lp: mean latency over reference");
      EXPECT_EQ(row["value"], 1);
      ++found;
    }
  }
  EXPECT_EQ(found, 3);
}

TEST_F(Hios, BenchSweepsGeneratedInstances) {
  const auto rows =
      json_of({"bench", "hios", "--only", "default", "--instances", "2", "--each-instance", "--json"});
  int singles = 0;
  for (const auto& row : rows) {
    EXPECT_GT(row["value"].get<double>(), 0);
    if (row["metric"] == "hios-lp: latency") ++singles;
    if (row["metric"] == "hios-lp: speed-up over sequential") {
      EXPECT_GT(row["value"].get<double>(), 2);
      EXPECT_EQ(row["reference"], 2.06);
    }
    if (!row["bound"].is_null()) {
      EXPECT_LE(row["bound"], row["value"]);
    }
  }
  EXPECT_EQ(singles, 2);
}

TEST_F(Hios, MalformedReferencesAreNamed) {
  folder_.write("reference.jsonl", "{\"instance\": \"fork\"}\n{\"instance\": \"../fork\"}\n");
  auto ran = run_heddle({"bench", "hios", "--input", "."}, folder_.path());
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.err, HasSubstr("reference.jsonl: line 2: $.instance"));
  folder_.write("reference.jsonl", "{\"instance\": \"fork\", \"hios_lp\": 0}\n");
  ran = run_heddle({"bench", "hios", "--input", "."}, folder_.path());
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.err, HasSubstr("hios_lp is 0, expected a makespan in ms above 0"));
  folder_.write("reference.jsonl", "{\"instance\": \"absent\"}\n");
  ran = run_heddle({"bench", "hios", "--input", "."}, folder_.path());
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.err, HasSubstr("absent.json"));
  EXPECT_THAT(run_heddle({"bench", "hios", "--input", "in"}, folder_.path()).err,
              HasSubstr("holds no instance"));
  EXPECT_EQ(run_heddle({"bench", "hios", "--input", "nowhere"}, folder_.path()).status, 2);
}

}  // namespace
}  // namespace heddle
