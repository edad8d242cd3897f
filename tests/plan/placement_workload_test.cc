// Reading placement workloads.
#include "heddle/plan/placement_workload.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "heddle/base/file.h"
#include "support/replaced.h"
#include "workload_support.h"

namespace heddle::test {
namespace {

constexpr char kChain[] = R"({"maxFPGAs": 1, "maxCPUs": 1, "maxSizePerFPGA": 10, "nodes": [
  {"id": 7, "supportedOnFpga": 1, "cpuLatency": 4, "fpgaLatency": 1, "isBackwardNode": false, "size": 3},
  {"id": 2, "supportedOnFpga": true, "cpuLatency": 5, "fpgaLatency": 2, "isBackwardNode": 0, "size": 4,
   "colorClass": 9}],
  "edges": [{"sourceId": 2, "destId": 7, "cost": 0.5, "size": 100}]})";

Result<Problem> read(const std::string& text, const PlacementOptions& options = {}) {
  const auto json = parse_json(text);
  if (!json.ok()) return json.error();
  return placement_workload_from_json(*json, "w", options);
}

TEST(PlacementWorkload, ItsRulesNeedTransfersWithinRuns) {
  auto p = read(kChain);
  ASSERT_TRUE(p.ok()) << p.error().to_string();
  p->execution.transfers = Transfers::kRoutes;
  p->execution.unlimited_cpus = false;
  p->transfers = nullptr;
  const auto status = validate(*p);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find("rules of placement need transfers \"within-runs\""),
            std::string::npos)
      << status.error().message();
}

TEST(PlacementWorkload, BecomesAProblemWithTransfersWithinRuns) {
  const auto p = read(kChain);
  ASSERT_TRUE(p.ok()) << p.error().to_string();
  EXPECT_EQ(p->execution.transfers, Transfers::kWithinRuns);
  EXPECT_TRUE(p->execution.unlimited_cpus);
  ASSERT_EQ(p->graph->num_ops(), 2u);
  EXPECT_EQ(p->graph->op(OpId(0)).name, "7");
  EXPECT_EQ(p->rules->colour, (std::vector<int32_t>{-1, 0}));
  EXPECT_EQ(p->rules->most_segments, 1);
  EXPECT_EQ(p->transfers->us, (std::vector<double>{0, 500}));
  EXPECT_EQ(p->graph->topological_order()[0], OpId(1));
  const DeviceId accelerator = p->cluster->find_device("accelerator0"),
                 cpus = p->cluster->find_device("cpus");
  EXPECT_EQ(p->costs->us(OpId(0), accelerator), 1000);
  EXPECT_EQ(p->costs->us(OpId(0), cpus), 4000);
  EXPECT_EQ(p->cluster->device(accelerator).memory_bytes, 10);
  EXPECT_EQ(p->graph->total_param_bytes(), 7);
}

TEST(PlacementWorkload, ForThroughputEachCpuIsADevice) {
  const auto p = read(replaced(kChain, "\"maxCPUs\": 1", "\"maxCPUs\": 2"),
                      {.objective = Objective::kThroughput, .contiguous = true});
  ASSERT_TRUE(p.ok()) << p.error().to_string();
  EXPECT_EQ(p->cluster->num_devices(), 3u);
  EXPECT_TRUE(p->cluster->find_device("cpu1").valid());
  EXPECT_TRUE(p->rules->contiguous);
  EXPECT_FALSE(p->execution.unlimited_cpus);
}

TEST(PlacementWorkload, RefusesOptionsThatDoNotFitTheObjective) {
  EXPECT_FALSE(read(kChain, {.contiguous = true}).ok());
  EXPECT_FALSE(read(kChain, {.objective = Objective::kThroughput, .pieces = 2}).ok());
  EXPECT_FALSE(read(kChain, {.objective = Objective::kColdLatency}).ok());
  EXPECT_FALSE(read(kChain, {.pieces = 0}).ok());
}

TEST(PlacementWorkload, RecognisesItsFiles) {
  EXPECT_TRUE(is_placement_workload(*parse_json(kChain)));
  EXPECT_FALSE(is_placement_workload(*parse_json(R"({"format": "heddle-graph", "nodes": [], "edges": []})")));
  EXPECT_FALSE(is_placement_workload(*parse_json("[1]")));
}

TEST(PlacementWorkload, RefusesWhatIsMalformedAndSaysWhere) {
  const struct {
    const char *what, *with, *message;
  } kCases[] = {
      {"\"id\": 2", "\"id\": 7", "$.nodes[1].id: a second node has the id 7"},
      {"\"sourceId\": 2", "\"sourceId\": 3", "$.edges[0].sourceId: no node has the id 3"},
      {"\"sourceId\": 2", "\"sourceId\": 7", "from node 7 to itself"},
      {"\"cpuLatency\": 4", "\"cpuLatency\": -4", "$.nodes[0].cpuLatency"},
      {"\"size\": 3", "\"size\": \"big\"", "$.nodes[0].size"},
      {"\"cpuLatency\": 5, ", "", "cpuLatency"},
      {"\"cost\": 0.5", "\"cost\": -1", "$.edges[0].cost"},
      {"\"maxFPGAs\": 1, \"maxCPUs\": 1", "\"maxFPGAs\": 0, \"maxCPUs\": 0", "at least one device"},
      {"\"maxFPGAs\": 1", "\"maxFPGAs\": 1.5", "$.maxFPGAs"},
      {"\"isBackwardNode\": 0", "\"isBackwardNode\": 2", "$.nodes[1].isBackwardNode"},
      {"\"size\": 100}", "\"size\": 100}, {\"sourceId\": 2, \"destId\": 7, \"cost\": 0.5}", "given twice"},
      {"\"size\": 100}", "\"size\": 100}, {\"sourceId\": 7, \"destId\": 2, \"cost\": 0.5}", "cycle"},
      {"\"supportedOnFpga\": true", "\"supportedOnFPGA\": true", "supportedOnFPGA"},
  };
  for (const auto& c : kCases) {
    const auto w = read(replaced(kChain, c.what, c.with));
    ASSERT_FALSE(w.ok()) << c.with;
    EXPECT_EQ(w.error().code(), Code::kInvalidInput);
    EXPECT_NE(w.error().to_string().find(c.message), std::string::npos) << w.error().to_string();
  }
}

TEST(PlacementWorkload, RefusesDifferentCostsOfOneOutput) {
  auto text =
      replaced(kChain, "\"edges\": [", "\"edges\": [{\"sourceId\": 2, \"destId\": 11, \"cost\": 0.25}, ");
  text = replaced(text, "\"nodes\": [",
                  "\"nodes\": [{\"id\": 11, \"cpuLatency\": 1, \"fpgaLatency\": 1, "
                  "\"size\": 1}, ");
  const auto w = read(text);
  ASSERT_FALSE(w.ok());
  EXPECT_NE(w.error().to_string().find("must give the same cost"), std::string::npos);
}

TEST(PlacementWorkload, EveryTruncationIsAnErrorAndNoCrash) {
  const std::string text = kChain;
  for (size_t n = 0; n < text.size(); ++n) EXPECT_FALSE(read(text.substr(0, n)).ok()) << n;
}

TEST(PlacementWorkload, ReadsThePublicData) {
  const std::string folder = public_data("dnn-partitioning");
  if (!file_exists(folder + "README.md")) GTEST_SKIP() << "no public data; set HEDDLE_SHARED";
  const auto p = read_placement_workload(folder + "throughput-inputs/OperatorGraphs/bert_L-12_training.json",
                                         {.objective = Objective::kThroughput});
  ASSERT_TRUE(p.ok()) << p.error().to_string();
  EXPECT_EQ(p->graph->name(), "bert_L-12_training");
  EXPECT_EQ(p->graph->num_ops(), 2012u);
  EXPECT_EQ(p->graph->num_edges(), 2751u);
  EXPECT_EQ(*std::max_element(p->rules->colour.begin(), p->rules->colour.end()), 416);
}

}  // namespace
}  // namespace heddle::test
