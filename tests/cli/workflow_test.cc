// What a user does from day to day, end to end with the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "graph/onnx_writer.h"
#include "heddle/base/json.h"
#include "run_program.h"

namespace heddle {
namespace {

using testing::HasSubstr;

Json json_of(const Ran& ran) {
  auto json = parse_json(ran.out);
  EXPECT_TRUE(json.ok()) << ran.out << ran.err;
  return json.ok() ? *json : Json();
}

TEST(Workflow, GraphIsPlannedVerifiedExplainedAndDrawn) {
  const TemporaryFolder folder;
  const auto& at = folder.path();
  ASSERT_EQ(
      run_heddle({"generate", "layered", "--ops", "60", "--layers", "6", "--seed", "7", "-o", "g.json"}, at)
          .status,
      0);
  const auto plan = json_of(run_heddle(
      {"plan", "g.json", "--cluster", "preset:hios-sim", "--time-limit", "1", "-o", "p.json", "--json"}, at));
  EXPECT_EQ(plan["planner"], "auto");
  EXPECT_EQ(plan["objective"], "latency");
  EXPECT_TRUE(plan["verified"].get<bool>());
  EXPECT_GE(plan["value_us"].get<double>(), plan["bound"].get<double>());
  EXPECT_NEAR(plan["gap"].get<double>(), plan["value_us"].get<double>() / plan["bound"].get<double>() - 1,
              1e-9);
  EXPECT_GE(plan["planning_s"].get<double>(), 0);
  const auto verified = run_heddle({"verify", "p.json"}, at);
  EXPECT_EQ(verified.status, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("valid"));
  EXPECT_THAT(run_heddle({"explain", "p.json"}, at).out, HasSubstr("Critical path"));
  for (const auto* picture : {"p.svg", "p.html", "p.trace.json"}) {
    EXPECT_EQ(run_heddle({"report", "p.json", "-o", picture}, at).status, 0) << picture;
    EXPECT_GT(std::filesystem::file_size(folder.file(picture)), 1000U);
  }
}

// Two nodes of 4 and 6 on two accelerators, one tensor that costs 1 on either side.
TEST(Workflow, PlacementWorkloadsBringTheirOwnDevices) {
  const TemporaryFolder folder;
  const auto& at = folder.path();
  std::ofstream(folder.file("w.json")) << R"({"maxFPGAs": 2, "maxCPUs": 1, "maxSizePerFPGA": 100, "nodes": [
    {"id": 1, "supportedOnFpga": 1, "cpuLatency": 50, "fpgaLatency": 4, "isBackwardNode": 0, "size": 1},
    {"id": 2, "supportedOnFpga": 1, "cpuLatency": 50, "fpgaLatency": 6, "isBackwardNode": 0, "size": 1}],
    "edges": [{"sourceId": 1, "destId": 2, "cost": 1}]})";
  const auto load =
      json_of(run_heddle({"plan", "w.json", "--objective", "throughput", "--time-limit", "2", "--json"}, at));
  EXPECT_DOUBLE_EQ(load["value_per_s"].get<double>(), 1e3 / 7);
  EXPECT_GE(load["bound"].get<double>(), 1e3 / 7 * (1 - 1e-9));
  const auto latency = json_of(run_heddle({"plan", "w.json", "--time-limit", "2", "--json"}, at));
  EXPECT_DOUBLE_EQ(latency["value_us"].get<double>(), 10000);
  const auto mistaken = run_heddle({"plan", "w.json", "--cluster", "preset:v100"}, at);
  EXPECT_EQ(mistaken.status, 2);
  EXPECT_THAT(mistaken.err, HasSubstr("brings its own devices"));
}

// Better hardware is never said to be slower, worse never faster, and no effect exceeds what the bound
// allows.
TEST(Workflow, WhatifHoldsEveryChangeAgainstTheOthers) {
  const TemporaryFolder folder;
  const auto& at = folder.path();
  ASSERT_EQ(
      run_heddle({"generate", "layered", "--ops", "30", "--layers", "5", "--seed", "3", "-o", "g.json"}, at)
          .status,
      0);
  for (const char* objective : {"latency", "cold-latency", "throughput"}) {
    const auto rows = json_of(run_heddle(
        {"whatif", "g.json", "--cluster", "preset:v100", "--objective", objective, "--time-limit", "0.4",
         "--add", "gpu1", "--remove", "gpu2", "--scale", "gpu1=2", "--scale", "gpu1=0.5", "--json"},
        at));
    ASSERT_EQ(rows.size(), 5U) << objective;
    EXPECT_DOUBLE_EQ(rows[0]["speedup"].get<double>(), 1);
    EXPECT_GE(rows[1]["speedup"].get<double>(), 1 - 1e-9) << objective;
    EXPECT_LE(rows[2]["speedup"].get<double>(), 1 + 1e-9) << objective;
    EXPECT_GE(rows[3]["speedup"].get<double>(), 1 - 1e-9) << objective;
    EXPECT_LE(rows[4]["speedup"].get<double>(), 1 + 1e-9) << objective;
    for (const auto& row : rows) {
      EXPECT_GE(row["gap"].get<double>(), 0);
      EXPECT_LE(row["speedup"].get<double>(), row["speedup_at_most"].get<double>() * (1 + 1e-9));
    }
  }
}

TEST(Workflow, WhatifChangesThePartsOfPlacementWorkloads) {
  const TemporaryFolder folder;
  const auto& at = folder.path();
  std::ofstream(folder.file("w.json")) << R"({"maxFPGAs": 2, "maxCPUs": 1, "maxSizePerFPGA": 100, "nodes": [
    {"id": 1, "supportedOnFpga": 1, "cpuLatency": 50, "fpgaLatency": 4, "isBackwardNode": 0, "size": 1},
    {"id": 2, "supportedOnFpga": 1, "cpuLatency": 50, "fpgaLatency": 6, "isBackwardNode": 0, "size": 1}],
    "edges": [{"sourceId": 1, "destId": 2, "cost": 1}]})";
  const auto rows = json_of(run_heddle(
      {"whatif", "w.json", "--objective", "throughput", "--time-limit", "1", "--add", "accelerator",
       "--remove", "accelerator", "--scale", "accelerator=2", "--scale", "transfers=2", "--json"},
      at));
  ASSERT_EQ(rows.size(), 5U);
  const double loads[] = {7, 7, 10, 4, 6.5};
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(rows[i]["value_per_s"].get<double>(), 1e3 / loads[i], 1e-9) << i;
  const auto mistaken = run_heddle({"whatif", "w.json", "--add", "gpu"}, at);
  EXPECT_EQ(mistaken.status, 2);
  EXPECT_THAT(
      mistaken.err,
      HasSubstr("devices: 'accelerator0', 'accelerator1' and 'cpus'; classes: 'accelerator' and 'cpu'"));
  EXPECT_EQ(run_heddle({"whatif", "w.json", "--scale", "memory=0"}, at).status, 2);
}

// What plan writes is a plan file, whatever the workload: every verb of plan files works on it.
TEST(Workflow, EveryVerbWorksOnPlansOfWorkloads) {
  const TemporaryFolder folder;
  const auto& at = folder.path();
  folder.write("placement.json", R"({"maxFPGAs": 2, "maxCPUs": 1, "maxSizePerFPGA": 100, "nodes": [
    {"id": 1, "supportedOnFpga": 1, "cpuLatency": 50, "fpgaLatency": 4, "isBackwardNode": 0, "size": 1},
    {"id": 2, "supportedOnFpga": 1, "cpuLatency": 50, "fpgaLatency": 6, "isBackwardNode": 0, "size": 1}],
    "edges": [{"sourceId": 1, "destId": 2, "cost": 1}]})");
  folder.write("flows.json", R"({"name": "flows", "units": {"time": "ms"},
    "devices": [{"id": 0, "memory": 8}, {"id": 1, "memory": 8}],
    "ops": [{"id": 0, "time": [1.5, 2], "memory": 3}, {"id": 2, "time": [1, 1], "memory": 3},
            {"id": 4, "time": [2, 2.25], "memory": 3}],
    "edges": [{"src": 0, "dst": 2, "flow": 1, "time": [[0, 0.5], [0.75, 0]]},
              {"src": 2, "dst": 4, "flow": 3, "time": [[0, 1], [1, 0]]}]})");
  const std::vector<std::vector<std::string>> workloads = {
      {"flows.json"},
      {"placement.json"},
      {"placement.json", "--pieces", "2"},
      {"placement.json", "--objective", "throughput"},
      {"placement.json", "--objective", "throughput", "--contiguous"}};
  for (const auto& workload : workloads) {
    std::vector<std::string> plan = {"plan", "--time-limit", "1", "-o", "p.json"};
    plan.insert(plan.end(), workload.begin(), workload.end());
    const auto planned = run_heddle(plan, at);
    ASSERT_EQ(planned.status, 0) << planned.err;
    EXPECT_THAT(run_heddle({"verify", "p.json"}, at).out, HasSubstr("valid"));
    EXPECT_THAT(run_heddle({"explain", "p.json"}, at).out, HasSubstr("Critical path"));
    EXPECT_EQ(run_heddle({"report", "p.json", "-o", "p.html"}, at).status, 0);
    const auto compared = json_of(run_heddle({"compare", "p.json", "--time-limit", "0.5", "--json"}, at));
    EXPECT_EQ(compared.size(), 2U) << workload[0];
    for (const auto& row : compared) EXPECT_TRUE(row["verified"].get<bool>()) << row.dump();
    const auto rows = json_of(run_heddle({"whatif", "p.json", "--time-limit", "0.5", "--scale", "memory=2",
                                          "--scale", "transfers=2", "--json"},
                                         at));
    ASSERT_EQ(rows.size(), 3U) << workload[0];
    for (const auto& row : rows) EXPECT_GE(row["speedup"].get<double>(), 1 - 1e-9) << row.dump();
  }
}

TEST(Workflow, BrokenPlanIsRejectedWithStatusOne) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_heddle({"generate", "layered", "--ops", "20", "--layers", "4", "-o", "g.json"}, folder.path())
                .status,
            0);
  ASSERT_EQ(
      run_heddle({"plan", "g.json", "--cluster", "preset:hios-sim", "--planner", "heft", "-o", "p.json"},
                 folder.path())
          .status,
      0);
  auto json = parse_json(folder.read("p.json"));
  ASSERT_TRUE(json.ok());
  auto& finish = (*json)["plan"]["steps"][0]["finish_us"];
  ASSERT_TRUE(finish.is_number());
  finish = finish.get<double>() + 1000;
  folder.write("p.json", json->dump());
  const auto ran = run_heddle({"verify", "p.json"}, folder.path());
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.out, HasSubstr("NOT valid"));
}

TEST(Workflow, SameSeedGivesTheSamePlan) {
  const TemporaryFolder folder;
  const auto& at = folder.path();
  ASSERT_EQ(run_heddle({"generate", "layered", "--ops", "40", "--layers", "5", "-o", "g.json"}, at).status,
            0);
  for (const auto* name : {"a.json", "b.json"}) {
    ASSERT_EQ(run_heddle({"plan", "g.json", "--cluster", "preset:hios-sim", "--planner", "heft-links",
                          "--seed", "3", "-o", name},
                         at)
                  .status,
              0);
  }
  auto a = parse_json(folder.read("a.json")), b = parse_json(folder.read("b.json"));
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ((*a)["plan"].dump(), (*b)["plan"].dump());
}

// A verb that would plan a large graph, g.json, for long, and is interrupted while it does.
Ran interrupted_on_a_large_graph(const TemporaryFolder& folder, std::vector<std::string> arguments) {
  const auto made =
      run_heddle({"generate", "layered", "--ops", "400", "--layers", "20", "-o", "g.json"}, folder.path());
  EXPECT_EQ(made.status, 0) << made.err;
  for (const char* more : {"--cluster", "preset:hios-sim", "--time-limit", "100", "--json"})
    arguments.emplace_back(more);
  auto ran = run_heddle(arguments, folder.path(), /*interrupt_after_s=*/1.5);
  EXPECT_EQ(ran.status, 0) << ran.err;
  return ran;
}

TEST(Workflow, InterruptedPlanningGivesTheBestSoFar) {
  const TemporaryFolder folder;
  const auto ran = interrupted_on_a_large_graph(folder, {"plan", "g.json", "-o", "p.json"});
  EXPECT_EQ(json_of(ran)["stop"], "cancelled");
  EXPECT_EQ(run_heddle({"verify", "p.json"}, folder.path()).status, 0);
}

TEST(Workflow, InterruptedQuestionsAboutHardwareGiveTheRowsSoFar) {
  const TemporaryFolder folder;
  const auto ran =
      interrupted_on_a_large_graph(folder, {"whatif", "g.json", "--add", "gpu1", "--remove", "gpu1"});
  EXPECT_EQ(json_of(ran)[0]["change"], "as it is");
  EXPECT_THAT(ran.err, HasSubstr("not planned"));
}

TEST(Workflow, DevicesFileReadsBack) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_heddle({"devices", "-o", "local.yaml"}, folder.path()).status, 0);
  const auto again = run_heddle({"devices", "--cluster", "local.yaml"}, folder.path());
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.out, folder.read("local.yaml"));
}

TEST(Workflow, RequestedDeviceThatGetsNothingIsAnErrorWhenStrict) {
  const TemporaryFolder folder;
  folder.write(
      "chain.json",
      R"({"format": "heddle-graph", "version": 1, "name": "chain", "inputs": [], "outputs": [], "params": [], "ops": [
 {"name": "a", "type": "Work", "inputs": [], 
  "outputs": [{"name": "t0", "dtype": "f32", "shape": [1000]}], "flops": 1e9}]})");
  std::vector<std::string> arguments = {"plan",        "chain.json", "--cluster",
                                        "preset:v100", "--devices",  "gpu1,gpu2"};
  const auto warned = run_heddle(arguments, folder.path());
  EXPECT_EQ(warned.status, 0);
  EXPECT_THAT(warned.err, HasSubstr("warning: requested but not used"));
  arguments.emplace_back("--strict");
  EXPECT_EQ(run_heddle(arguments, folder.path()).status, 1);
}

// Who asks for hardware asks for one of its types, not for all of them at once.
TEST(Workflow, HardwareThatRunsInAnotherTypeIsInUseWhenStrict) {
  const TemporaryFolder folder;
  folder.write("c.yaml", R"(name: one
hosts: [{name: server}]
devices:
  - {name: cpu, kind: cpu, cores: "0", precisions: [f32, bf16], flops: 1e12, memory_bandwidth: 100GB/s}
)");
  const auto& at = folder.path();
  const auto planned = run_heddle({"plan", "zoo:resnet-18", "--cluster", "c.yaml", "--devices", "cpu",
                                   "--planner", "single", "--strict", "-o", "p.json"},
                                  at);
  ASSERT_EQ(planned.status, 0) << planned.err;
  EXPECT_EQ(run_heddle({"explain", "p.json", "--strict"}, at).status, 0);
}

TEST(Workflow, RealModelRunsAndItsOutputsEqualTheUnsplitModels) {
  const auto model = wheel_file("onnx/backend/test/data/light/light_squeezenet.onnx");
  if (model.empty()) GTEST_SKIP() << "the wheel onnx is not in .venv";
  const TemporaryFolder folder;
  const auto& at = folder.path();
  ASSERT_EQ(
      run_heddle({"plan", model, "--units", "6", "--planner", "round-robin", "-o", "p.json"}, at).status, 0);
  const auto run = json_of(
      run_heddle({"run", "p.json", "--repeat", "3", "--trace", "t.json", "-o", "r.json", "--json"}, at));
  EXPECT_TRUE(run["outputs_equal"].get<bool>());
  EXPECT_LE(run["max_rel_error"].get<double>(), 1e-3);
  EXPECT_GT(run["measured_us"].get<double>(), 0);
  EXPECT_GT(run["predicted_us"].get<double>(), 0);
  EXPECT_EQ(run_heddle({"report", "r.json", "-o", "r.html"}, at).status, 0);
  // A request's tensors are files that the next run takes, and gives the same outputs for.
  const auto saved =
      json_of(run_heddle({"run", "p.json", "--repeat", "1", "--save-tensors", "one", "--json"}, at));
  EXPECT_EQ(saved["tensors"]["files"], Json({"input_0.npy", "output_0.npy"}));
  EXPECT_EQ(run_heddle(
                {"run", "p.json", "--repeat", "1", "--input", "one/input_0.npy", "--save-tensors", "two"}, at)
                .status,
            0);
  EXPECT_EQ(folder.read("one/output_0.npy"), folder.read("two/output_0.npy"));
  folder.write("taken", "");
  const auto taken = run_heddle({"run", "p.json", "--save-tensors", "taken"}, at);
  EXPECT_EQ(taken.status, 2);
  EXPECT_THAT(taken.err, HasSubstr("taken: "));
  // The second time everything is in the profile store.
  const auto profile = json_of(run_heddle({"profile", model, "--units", "6", "--json"}, at));
  EXPECT_EQ(profile["measured"], 0);
  EXPECT_TRUE(profile["complete"].get<bool>());
}

// What was imported once is not tried again in a process of its own; a refused file always is.
TEST(Workflow, ImportsAreRememberedByContentAndShapes) {
  const auto model = wheel_file("onnx/backend/test/data/light/light_squeezenet.onnx");
  if (model.empty()) GTEST_SKIP() << "the wheel onnx is not in .venv";
  const TemporaryFolder folder;
  const auto remembered = [&] {
    std::error_code error;
    const auto all = std::filesystem::directory_iterator(folder.file("imported"), error);
    return std::distance(all, std::filesystem::directory_iterator());
  };
  const std::string content = [&] {
    std::ostringstream text;
    text << std::ifstream(model, std::ios::binary).rdbuf();
    return text.str();
  }();
  folder.write("one.onnx", content);
  folder.write("same.onnx", content);
  folder.write("short.onnx", content.substr(0, content.size() / 2));
  const auto first = run_heddle({"inspect", "one.onnx", "--json"}, folder.path());
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(remembered(), 1);
  EXPECT_EQ(run_heddle({"inspect", "same.onnx"}, folder.path()).status, 0);
  EXPECT_EQ(remembered(), 1);
  EXPECT_EQ(run_heddle({"inspect", "one.onnx", "--json"}, folder.path()).out, first.out);
  EXPECT_EQ(run_heddle({"inspect", "short.onnx"}, folder.path()).status, 2);
  EXPECT_EQ(remembered(), 1);
  EXPECT_EQ(run_heddle({"inspect", "one.onnx", "--batch", "1"}, folder.path()).status, 0);
  EXPECT_EQ(remembered(), 2);
}

// x [1, 400] -> 1600 -> rectifier -> 200, with weights that differ everywhere.
std::string two_products() {
  using namespace onnx_writer;
  const auto weights = [](const char* name, int64_t rows, int64_t columns) {
    std::vector<float> values(static_cast<size_t>(rows * columns));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7919 % 1009) / 1009 - 0.5F;
    return float_tensor(name, {rows, columns}, values);
  };
  return model({{node("Gemm", {"x", "w"}, {"m"}, "first", {attribute_int("transB", 1)}),
                 node("Relu", {"m"}, {"r"}, "relu"), node("MatMul", {"r", "v"}, {"y"}, "second")},
                {value("x", {1, 400})},
                {value("y", {1, 200})},
                {weights("w", 1600, 400), weights("v", 1600, 200)}});
}

TEST(Workflow, LargeProductsInPiecesGiveTheUnsplitModelsOutputs) {
  const TemporaryFolder folder;
  const auto& at = folder.path();
  folder.write("model.onnx", two_products());
  const auto whole = json_of(run_heddle({"inspect", "model.onnx", "--json"}, at));
  const auto split =
      json_of(run_heddle({"inspect", "model.onnx", "--split-weights", "700000", "--json"}, at));
  // 25 blocks of 102 kB in five pieces, four of 410 kB in three, and a concatenation each.
  EXPECT_EQ(split["ops"].get<int>(), whole["ops"].get<int>() + 8);
  const auto planned = run_heddle({"plan", "model.onnx", "--split-weights", "700000", "--units", "20",
                                   "--planner", "round-robin", "--no-profile", "-o", "plan.json"},
                                  at);
  ASSERT_EQ(planned.status, 0) << planned.err;
  const auto run = json_of(run_heddle({"run", "plan.json", "--repeat", "2", "--json"}, at));
  EXPECT_EQ(run["outputs_equal"], true);
  const auto cold = json_of(run_heddle(
      {"run", "--cold", "model.onnx", "--split-weights", "700000", "--repeat", "1", "--json"}, at));
  EXPECT_EQ(cold["outputs_equal"], true);
  EXPECT_EQ(cold["split_bytes"], 700'000);
}

TEST(Workflow, TheSimulationOfTheServiceReplaysASeed) {
  const TemporaryFolder folder;
  const auto& at = folder.path();
  const auto all = json_of(run_heddle({"doctor", "--simulate", "4", "--first-seed", "3", "--json"}, at));
  EXPECT_EQ(all["seeds"], 4);
  EXPECT_GT(all["requests"].get<int>(), 0);
  EXPECT_GT(all["faults"].get<int>(), 0);
  EXPECT_FALSE(all.contains("failed"));
  const auto first = run_heddle({"doctor", "--simulate", "1", "--first-seed", "4", "--verbose"}, at);
  const auto again = run_heddle({"doctor", "--simulate", "1", "--first-seed", "4", "--verbose"}, at);
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("all seeds hold"));
  EXPECT_THAT(first.err, HasSubstr("all faults end"));
  // A line of progress may follow on a slow machine.
  const auto events = [](const Ran& ran) { return ran.err.substr(0, ran.err.find("simulating seeds")); };
  EXPECT_EQ(events(first), events(again));
}

TEST(Workflow, AnInterruptedComparisonKeepsTheRun) {
  const TemporaryFolder folder;
  const auto& at = folder.path();
  folder.write("model.onnx", two_products());
  ASSERT_EQ(run_heddle({"plan", "model.onnx", "--no-profile", "-o", "p.json"}, at).status, 0);
  const auto ran = run_heddle(
      {"run", "p.json", "--repeat", "10000000", "--versus", "openvino", "-o", "r.json", "--json"}, at,
      /*interrupt_after_s=*/4);
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_FALSE(json_of(ran).contains("versus"));
  EXPECT_EQ(run_heddle({"report", "r.json", "-o", "r.html"}, at).status, 0);
}

// OpenVINO has tf32 on no device.
TEST(Workflow, APlanInAPrecisionThatIsNotHereDoesNotRun) {
  const TemporaryFolder folder;
  const auto& at = folder.path();
  folder.write("model.onnx", two_products());
  folder.write("c.yaml", R"(name: other
hosts: [{name: host}]
devices:
  - {name: cpu, kind: cpu, cores: "0", backend: openvino, precision: tf32, flops: 1TFLOPS, memory_bandwidth: 10GB/s}
)");
  const auto planned = run_heddle({"plan", "model.onnx", "--cluster", "c.yaml", "-o", "p.json"}, at);
  ASSERT_EQ(planned.status, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("openvino tf32"));
  const auto ran = run_heddle({"run", "p.json", "--quiet"}, at);
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.err,
              HasSubstr("device 'cpu' is to compute in tf32, which openvino does not have in hardware here"));
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1);
}

TEST(Workflow, GraphsAreNotImportedAnew) {
  const TemporaryFolder folder;
  const std::pair<std::vector<std::string>, std::string> mistakes[] = {
      {{"--batch", "2"}, "a batch size"},
      {{"--shape", "x=1,2"}, "a shape"},
      {{"--value", "x=1,2"}, "a value of an input"},
      {{"--split-weights", "1000"}, "a size to split weights at"}};
  for (const auto& [flags, what] : mistakes) {
    std::vector<std::string> arguments = {"inspect", "zoo:resnet-18"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const auto ran = run_heddle(arguments, folder.path());
    EXPECT_EQ(ran.status, 2);
    EXPECT_THAT(ran.err, HasSubstr(what + " is about importing a model; zoo:resnet-18 is a graph"));
  }
}

// There and back by each format.
TEST(Workflow, APlacementIsGradedAndExported) {
  const TemporaryFolder folder;
  const auto& at = folder.path();
  const std::vector<std::string> model = {"zoo:gpt2", "--cluster", "preset:v100", "--planner",
                                          "heft",     "--coarsen", "none"};
  const auto grade = [&](const std::string& placement, const std::string& format) {
    std::vector<std::string> arguments = {"grade"};
    arguments.insert(arguments.end(), model.begin(), model.end());
    for (const auto& more : {std::string("--placement"), placement, std::string("--format"), format,
                             std::string("--json"), std::string("-o"), std::string("p.json")})
      arguments.push_back(more);
    return json_of(run_heddle(arguments, at));
  };
  folder.write("first.txt", "3,9\n");
  const Json first = grade("first.txt", "vllm");
  EXPECT_GE(first["ratio"].get<double>(), 1);
  EXPECT_EQ(run_heddle({"verify", "p.json"}, at).status, 0);
  for (const std::string format : {"device-map", "cuts", "llama.cpp", "vllm", "json"}) {
    const auto exported = run_heddle({"export", "p.json", "--to", format, "-o", "again.txt"}, at);
    ASSERT_EQ(exported.status, 0) << exported.err;
    EXPECT_DOUBLE_EQ(grade("again.txt", format)["placement"]["value_us"].get<double>(),
                     first["placement"]["value_us"].get<double>())
        << format;
  }
  const auto refused = run_heddle({"export", "p.json", "--to", "openvino"}, at);
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("is not OpenVINO's"));
}

TEST(Workflow, EmulatedClusterRunsInRealTime) {
  const TemporaryFolder folder;
  const auto& at = folder.path();
  ASSERT_EQ(run_heddle({"generate", "layered", "--ops", "12", "--layers", "4", "-o", "g.json"}, at).status,
            0);
  ASSERT_EQ(
      run_heddle({"plan", "g.json", "--cluster", "preset:hios-sim", "--time-limit", "1", "-o", "p.json"}, at)
          .status,
      0);
  const auto run = json_of(run_heddle({"run", "p.json", "--repeat", "3", "--json"}, at));
  EXPECT_TRUE(run["outputs_equal"].is_null());
  EXPECT_GE(run["measured_us"].get<double>(), 0.99 * run["predicted_us"].get<double>());
}

}  // namespace
}  // namespace heddle
