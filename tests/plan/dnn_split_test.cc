#include "heddle/plan/dnn_split.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "dnn_support.h"
#include "heddle/base/file.h"

namespace heddle {
namespace {

// 0 -> 1 -> 3, 0 -> 2 -> 3
DnnWorkload diamond() {
  DnnWorkload w;
  w.name = "diamond";
  w.accelerators = 2;
  w.cpus = 1;
  w.accelerator_bytes = 3;
  for (int i = 0; i < 4; ++i) {
    DnnNode node;
    node.id = i;
    node.cpu = 10;
    node.accelerator = 1 + i;
    node.cost = 0.5;
    node.bytes = 1;
    w.nodes.push_back(node);
  }
  w.nodes[3].cost = 0;
  w.edges = {{0, 1}, {0, 2}, {1, 3}, {2, 3}};
  EXPECT_TRUE(complete_dnn_workload(w).ok());
  return w;
}

constexpr DnnRules kLatencyRules{DnnObjective::kLatency, true, 1};

TEST(DnnSplit, LatencyByHand) {
  const auto w = diamond();
  // 0 on the CPU (10), {1,2} on an accelerator: in 0.5 once, work 2 + 3, out 0.5 + 0.5: 16.5; 3 on the CPU.
  EXPECT_DOUBLE_EQ(evaluate_dnn_split(w, {{2, 0, 0, 2}, {}}, DnnObjective::kLatency)->value, 26.5);
  // {0,1} then {2,3}: 1 + 2 + 0.5 + 0.5 = 4; both come in: 0.5 + 0.5 + 3 + 4 = 8.
  const auto value = *evaluate_dnn_split(w, {{0, 0, 1, 1}, {}}, DnnObjective::kLatency);
  EXPECT_DOUBLE_EQ(value.value, 12);
  EXPECT_DOUBLE_EQ(value.lat[0], 4);
  EXPECT_TRUE(check_dnn_split(w, {{0, 0, 1, 1}, {}}, kLatencyRules).ok());
}

TEST(DnnSplit, PiecesOfOneAcceleratorRunInTheirOrder) {
  const auto w = diamond();
  // {0} and {2,3} on accelerator 0, {1} on accelerator 1.
  const DnnSplit split{{0, 1, 0, 0}, {0, 0, 1, 1}};
  // 1 + 0.5; 0.5 + 2 + 0.5 = 4.5; then 0.5 + 0.5 + 3 + 4.
  EXPECT_DOUBLE_EQ(evaluate_dnn_split(w, split, DnnObjective::kLatency)->value, 12.5);
  EXPECT_TRUE(check_dnn_split(w, split, {DnnObjective::kLatency, false, 2}).ok());
  EXPECT_FALSE(check_dnn_split(w, split, kLatencyRules).ok());
  const DnnSplit turned{{0, 1, 0, 0}, {1, 0, 0, 0}};
  EXPECT_FALSE(evaluate_dnn_split(w, turned, DnnObjective::kLatency).ok());
  EXPECT_FALSE(check_dnn_split(w, turned, {DnnObjective::kLatency, false, 2}).ok());
}

TEST(DnnSplit, MaxLoadByHand) {
  const auto w = diamond();
  const auto value = *evaluate_dnn_split(w, {{0, 1, 0, 2}, {}}, DnnObjective::kMaxLoad);
  // 0: work 1 + 3; outputs of 0 and 2 leave. 1: work 2, 0 comes in, 1 leaves. CPU: no transfer.
  EXPECT_EQ(value.loads, (std::vector<double>{5, 3, 10}));
  EXPECT_EQ(value.value, 10);
}

TEST(DnnSplit, TheCheckerNamesWhatIsWrong) {
  auto w = diamond();
  const DnnRules rules{DnnObjective::kMaxLoad, true, 1};
  const auto message = [&](const DnnSplit& split) {
    const auto status = check_dnn_split(w, split, rules);
    return status.ok() ? "" : status.error().message();
  };
  EXPECT_EQ(message({{0, 0, 0, 1}, {}}), "");
  EXPECT_NE(message({{0, 0, 0, 0}, {}}).find("accelerator 0 holds 4"), std::string::npos);
  EXPECT_NE(message({{0, 0, 0, 3}, {}}).find("node 3 is on device 3"), std::string::npos);
  EXPECT_NE(message({{0, 0, 0}, {}}).find("places 3 nodes"), std::string::npos);
  EXPECT_NE(message({{0, 1, 1, 0}, {}}).find("not contiguous"), std::string::npos);
  w.nodes[0].colour = w.nodes[3].colour = 0;
  EXPECT_NE(message({{0, 0, 0, 1}, {}}).find("one colour"), std::string::npos);
  w.nodes[1].on_accelerator = false;
  EXPECT_NE(message({{0, 1, 1, 0}, {}}).find("cannot run on an accelerator"), std::string::npos);
}

// Both pieces are convex, but they feed each other: 0 -> 1, 2 -> 3, pieces {0,3} and {1,2}.
TEST(DnnSplit, ConvexPiecesMayStillWaitForEachOther) {
  DnnWorkload w = diamond();
  w.edges = {{0, 1}, {2, 3}};
  ASSERT_TRUE(complete_dnn_workload(w).ok());
  const DnnSplit split{{0, 1, 1, 0}, {}};
  EXPECT_FALSE(check_dnn_split(w, split, kLatencyRules).ok());
  EXPECT_FALSE(evaluate_dnn_split(w, split, DnnObjective::kLatency).ok());
}

// The evaluator finds a value exactly where the checker, which shares no code with it, sees no cycle.
TEST(DnnSplit, EvaluatorAndCheckerAgreeOnCycles) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    auto w = random_dnn({.nodes = 6}, seed);
    for (auto& node : w.nodes) {
      node.colour = -1;
      node.on_accelerator = true;
    }
    for_each_split(6, 3, [&](const DnnSplit& split) {
      EXPECT_EQ(evaluate_dnn_split(w, split, DnnObjective::kLatency).ok(),
                check_dnn_split(w, split, kLatencyRules).ok());
    });
  }
}

// Rows "repo:human expert" and "all on CPU" of the public reference, as their own programs printed them.
struct Row {
  std::string setting, graph, workload, peer;
  double value = 0;
};
std::vector<Row> reference_rows() {
  std::vector<Row> rows;
  std::ifstream file(dnn_data() + "reference.csv");
  for (std::string line; std::getline(file, line);) {
    std::stringstream fields(line);
    Row row;
    std::string mode, value;
    std::getline(fields, row.setting, ',');
    std::getline(fields, row.graph, ',');
    std::getline(fields, row.workload, ',');
    std::getline(fields, mode, ',');
    std::getline(fields, row.peer, ',');
    std::getline(fields, value, ',');
    if (row.peer != "repo:human expert" && row.peer != "all on CPU") continue;
    row.value = std::stod(value);
    rows.push_back(row);
  }
  return rows;
}

TEST(DnnSplit, ReproducesThePublicValues) {
  if (!file_exists(dnn_data() + "reference.csv")) GTEST_SKIP() << "no public data; set HEDDLE_SHARED";
  int experts = 0, cpus = 0;
  for (const auto& row : reference_rows()) {
    auto w =
        read_dnn_workload(dnn_data() + row.setting + "-inputs/" + row.graph + "/" + row.workload + ".json");
    ASSERT_TRUE(w.ok()) << w.error().to_string();
    const auto objective = row.setting == "latency" ? DnnObjective::kLatency : DnnObjective::kMaxLoad;
    DnnSplit split;
    split.device.assign(w->nodes.size(), w->accelerators);
    if (row.peer == "repo:human expert") {
      w->accelerators = 6;  // which the experts assume everywhere
      auto path = dnn_data() + "human-experts/" + row.workload + "_expert.json";
      if (!file_exists(path)) {
        // Without an own file training uses the split for inference and follows the colours.
        const auto stem = row.workload.substr(0, row.workload.find("_training"));
        path = dnn_data() + "human-experts/" + stem + "_inference_expert.json";
      }
      const auto json = read_json_file(path);
      ASSERT_TRUE(json.ok());
      const auto read = dnn_split_from_json(*w, *json);
      ASSERT_TRUE(read.ok()) << path << ": " << read.error().to_string();
      split = *read;
      ++experts;
    } else {
      ++cpus;
    }
    const auto value = evaluate_dnn_split(*w, split, objective);
    ASSERT_TRUE(value.ok()) << value.error().to_string();
    // Six printed digits.
    EXPECT_NEAR(value->value, row.value, 5e-6 * row.value) << row.setting << " " << row.workload;
  }
  EXPECT_EQ(experts, 9);
  EXPECT_EQ(cpus, 6);
}

TEST(DnnSplit, RefusesMalformedResults) {
  const auto w = diamond();
  const struct {
    const char *text, *message;
  } kCases[] = {
      {R"({"fpgas": [{"nodes": [0, 1]}], "cpus": [{"nodes": [2]}]})", "node 3 is on no device"},
      {R"({"fpgas": [{"nodes": [0, 0]}], "cpus": []})", "a second time"},
      {R"({"fpgas": [{"nodes": [9]}], "cpus": []})", "no node with the id 9"},
      {R"({"fpgas": [{}], "cpus": []})", "nodes"},
      {R"({"fpgas": [{"nodes": []}, {"nodes": []}, {"nodes": []}], "cpus": []})", "the workload has 2"},
  };
  for (const auto& c : kCases) {
    const auto split = dnn_split_from_json(w, *parse_json(c.text));
    ASSERT_FALSE(split.ok());
    EXPECT_NE(split.error().to_string().find(c.message), std::string::npos) << split.error().to_string();
  }
}

}  // namespace
}  // namespace heddle
