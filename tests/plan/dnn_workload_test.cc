#include "heddle/plan/dnn_workload.h"

#include <gtest/gtest.h>

#include "dnn_support.h"
#include "heddle/base/file.h"

namespace heddle {
namespace {

constexpr char kChain[] = R"({"maxFPGAs": 1, "maxCPUs": 1, "maxSizePerFPGA": 10, "nodes": [
  {"id": 7, "supportedOnFpga": 1, "cpuLatency": 4, "fpgaLatency": 1, "isBackwardNode": false, "size": 3},
  {"id": 2, "supportedOnFpga": true, "cpuLatency": 5, "fpgaLatency": 2, "isBackwardNode": 0, "size": 4,
   "colorClass": 9}],
  "edges": [{"sourceId": 2, "destId": 7, "cost": 0.5, "size": 100}]})";

Result<DnnWorkload> read(const std::string& text) {
  const auto json = parse_json(text);
  if (!json.ok()) return json.error();
  return dnn_workload_from_json(*json, "w");
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

TEST(DnnWorkload, ReadsNodesEdgesAndOrder) {
  const auto w = read(kChain);
  ASSERT_TRUE(w.ok()) << w.error().to_string();
  ASSERT_EQ(w->nodes.size(), 2u);
  EXPECT_EQ(w->nodes[0].id, 7);
  EXPECT_EQ(w->nodes[0].colour, -1);
  EXPECT_EQ(w->nodes[1].colour, 0);
  EXPECT_EQ(w->nodes[1].cost, 0.5);
  EXPECT_EQ(w->nodes[0].cost, 0);
  EXPECT_EQ(w->order, (std::vector<int32_t>{1, 0}));
}

TEST(DnnWorkload, RecognisesItsFiles) {
  EXPECT_TRUE(is_dnn_workload(*parse_json(kChain)));
  EXPECT_FALSE(is_dnn_workload(*parse_json(R"({"format": "heddle-graph", "nodes": [], "edges": []})")));
  EXPECT_FALSE(is_dnn_workload(*parse_json("[1]")));
}

TEST(DnnWorkload, RefusesWhatIsMalformedAndSaysWhere) {
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
      {"\"size\": 100}", "\"size\": 100}, {\"sourceId\": 7, \"destId\": 2, \"cost\": 0.5}", "on a cycle"},
      {"\"supportedOnFpga\": true", "\"supportedOnFPGA\": true", "supportedOnFPGA"},
  };
  for (const auto& c : kCases) {
    const auto w = read(replaced(kChain, c.what, c.with));
    ASSERT_FALSE(w.ok()) << c.with;
    EXPECT_EQ(w.error().code(), Code::kInvalidInput);
    EXPECT_NE(w.error().to_string().find(c.message), std::string::npos) << w.error().to_string();
  }
}

TEST(DnnWorkload, RefusesDifferentCostsOfOneOutput) {
  auto text =
      replaced(kChain, "\"edges\": [", "\"edges\": [{\"sourceId\": 2, \"destId\": 11, \"cost\": 0.25}, ");
  text = replaced(text, "\"nodes\": [",
                  "\"nodes\": [{\"id\": 11, \"cpuLatency\": 1, \"fpgaLatency\": 1, "
                  "\"size\": 1}, ");
  const auto w = read(text);
  ASSERT_FALSE(w.ok());
  EXPECT_NE(w.error().to_string().find("must give the same cost"), std::string::npos);
}

TEST(DnnWorkload, EveryTruncationIsAnErrorAndNoCrash) {
  const std::string text = kChain;
  for (size_t n = 0; n < text.size(); ++n) EXPECT_FALSE(read(text.substr(0, n)).ok()) << n;
}

TEST(DnnWorkload, ReadsEveryPublicFile) {
  if (!file_exists(dnn_data() + "README.md")) GTEST_SKIP() << "no public data; set HEDDLE_SHARED";
  const auto w = read_dnn_workload(dnn_data() + "throughput-inputs/OperatorGraphs/bert_L-12_training.json");
  ASSERT_TRUE(w.ok()) << w.error().to_string();
  EXPECT_EQ(w->name, "bert_L-12_training");
  EXPECT_EQ(w->nodes.size(), 2012u);
  EXPECT_EQ(w->edges.size(), 2751u);
  EXPECT_EQ(w->colours, 417);
}

}  // namespace
}  // namespace heddle
