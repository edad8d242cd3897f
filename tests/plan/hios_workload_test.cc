#include "heddle/plan/hios_workload.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/plan/builder.h"
#include "heddle/plan/checker.h"
#include "heddle/plan/stage_list.h"

namespace heddle {
namespace {

// Node 2 before node 1: ids are no topological order.
constexpr char kSmall[] = R"({"name": "small", "ops": 3, "layers": 3, "deps": 3, "p": 0.8, "nodes": [
  {"id": 0, "layer": 0, "time_ms": 1.5, "gpu_utilization": 0.8},
  {"id": 1, "layer": 2, "time_ms": 2.0, "gpu_utilization": 0.6},
  {"id": 2, "layer": 1, "time_ms": 0.5, "gpu_utilization": 1.0}], "edges": [
  {"src": 0, "dst": 2, "transfer_ms": 1.2, "transfer_ms_code": 0.4},
  {"src": 0, "dst": 1, "transfer_ms": 1.2, "transfer_ms_code": 1.6},
  {"src": 2, "dst": 1, "transfer_ms": 0.4, "transfer_ms_code": 1.60001}]})";

Result<Problem> read_text(const std::string& text, const HiosWorkloadOptions& options = {}) {
  const auto json = parse_json(text);
  if (!json.ok()) return json.error();
  return hios_workload_from_json(*json, options);
}

std::string with_replaced(std::string text, const std::string& what, const std::string& with) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

TEST(HiosWorkload, ReadsTimesTransfersAndStages) {
  const auto p = read_text(kSmall, {.devices = 3});
  ASSERT_TRUE(p.ok()) << p.error().to_string();
  EXPECT_EQ(p->cluster->num_devices(), 3u);
  EXPECT_EQ(p->costs->us(OpId(0), DeviceId(2)), 1500);
  EXPECT_EQ(p->costs->utilization(OpId(1), DeviceId(0)), 0.6);
  EXPECT_EQ(p->costs->stage_model(DeviceId(1)), (StageModel{0.5, 0.5, 0}));
  EXPECT_EQ(p->execution.stage_width, 2);
  EXPECT_FALSE(p->execution.link_contention || p->execution.engine_contention);
  // One tensor for both readers: its transfer takes the same for both.
  ASSERT_EQ(p->graph->op(OpId(0)).outputs.size(), 1u);
  const auto& tensor = p->graph->tensor(p->graph->op(OpId(0)).outputs[0]);
  EXPECT_EQ(transfer_us(*p->cluster, DeviceId(0), DeviceId(1), tensor.bytes), 1200);
  EXPECT_EQ(p->graph->num_edges(), 3u);
}

TEST(HiosWorkload, TransfersByReaderAreATensorEach) {
  const auto p = read_text(kSmall, {.devices = 2, .transfer_by_reader = true});
  ASSERT_TRUE(p.ok()) << p.error().to_string();
  const auto& op = p->graph->op(OpId(0));
  ASSERT_EQ(op.outputs.size(), 2u);
  // To node 1, then to node 2.
  EXPECT_EQ(p->graph->tensor(op.outputs[0]).bytes, 1'600'000);
  EXPECT_EQ(p->graph->tensor(op.outputs[1]).bytes, 400'000);
  EXPECT_EQ(p->graph->tensor(op.outputs[1]).consumers, (std::vector<OpId>{OpId(2)}));
  EXPECT_EQ(p->graph->tensor(p->graph->op(OpId(2)).outputs[0]).bytes, 1'600'010);
}

TEST(HiosWorkload, RefusesWhatIsMalformedAndSaysWhere) {
  const struct {
    const char *what, *with, *message;
  } kCases[] = {
      {"\"id\": 1", "\"id\": 4", "$.nodes[1].id: is 4, expected 1"},
      {"\"time_ms\": 0.5", "\"time_ms\": -0.5", "$.nodes[2].time_ms"},
      {"\"time_ms\": 0.5", "\"time_ms\": 1e300", "$.nodes[2].time_ms"},
      {"\"gpu_utilization\": 0.6", "\"gpu_utilization\": 0", "$.nodes[1].gpu_utilization"},
      {"\"dst\": 2", "\"dst\": 3", "$.edges[0].dst"},
      {"\"dst\": 2", "\"dst\": 0", "from node 0 to itself"},
      {"\"dst\": 2", "\"dst\": 1", "from node 0 to node 1 is given twice"},
      {"\"src\": 2, \"dst\": 1", "\"src\": 2, \"dst\": 0", "cycle"},
      {"\"transfer_ms\": 0.4", "\"transfer_ms\": null", "$.edges[2].transfer_ms"},
      {"\"ops\": 3", "\"ops\": 4", "$.ops: is 4, but there are 3"},
      {"\"deps\": 3", "\"deps\": 2", "$.deps"},
      {"\"layer\": 2", "\"depth\": 2", "depth"},
  };
  for (const auto& c : kCases) {
    const auto p = read_text(with_replaced(kSmall, c.what, c.with));
    ASSERT_FALSE(p.ok()) << c.with;
    EXPECT_EQ(p.error().code(), Code::kInvalidInput);
    EXPECT_NE(p.error().to_string().find(c.message), std::string::npos) << p.error().to_string();
  }
  EXPECT_FALSE(read_text(kSmall, {.devices = 0}).ok());
  EXPECT_FALSE(read_text(kSmall, {.devices = 65}).ok());
  EXPECT_FALSE(read_text(with_replaced(kSmall, ", \"transfer_ms_code\": 1.6}", "}"),
                         {.devices = 2, .transfer_by_reader = true})
                   .ok());
}

TEST(HiosWorkload, EveryTruncationIsAnErrorAndNoCrash) {
  const std::string text = kSmall;
  for (size_t n = 0; n < text.size(); ++n) EXPECT_FALSE(read_text(text.substr(0, n)).ok()) << n;
}

TEST(HiosWorkload, RecognisesItsFilesAndNoOthers) {
  EXPECT_TRUE(is_hios_workload(*parse_json(kSmall)));
  EXPECT_FALSE(
      is_hios_workload(*parse_json(R"({"nodes": [{"id": 0, "time_ms": 1, "macs": 1}], "edges": []})")));
  EXPECT_FALSE(is_hios_workload(*parse_json(R"({"nodes": [], "edges": []})")));
  EXPECT_FALSE(is_hios_workload(*parse_json("3")));
}

// 0 on one device, then 1 and 2 at once would need 2's output: two stages after the first.
TEST(StageList, StagesOfAPlanAreThoseItWasBuiltFrom) {
  const auto p = read_text(with_replaced(kSmall, R"({"src": 2, "dst": 1,)", R"({"src": 0, "dst": 1,)"));
  EXPECT_FALSE(p.ok());  // now twice
  const auto fork = read_text(R"({"nodes": [{"id": 0, "time_ms": 1, "gpu_utilization": 0.5},
      {"id": 1, "time_ms": 2, "gpu_utilization": 0.5}, {"id": 2, "time_ms": 3, "gpu_utilization": 0.5},
      {"id": 3, "time_ms": 1, "gpu_utilization": 1}],
      "edges": [{"src": 0, "dst": 1, "transfer_ms": 1}, {"src": 0, "dst": 2, "transfer_ms": 1},
                {"src": 2, "dst": 3, "transfer_ms": 1}]})",
                              {.devices = 1});
  ASSERT_TRUE(fork.ok()) << fork.error().to_string();
  const std::vector<IosStage> stages = {{0, {{OpId(0)}}, ""}, {0, {{OpId(1)}, {OpId(2), OpId(3)}}, "gpu1"}};
  EXPECT_EQ(stage_width_of(stages), 2);
  const auto plan = plan_of_ios_stages(*fork, stages);
  ASSERT_TRUE(plan.ok()) << plan.error().to_string();
  const auto timeline = evaluate(*fork, *plan);
  ASSERT_TRUE(timeline.ok());
  EXPECT_TRUE(check(*fork, *plan, *timeline).ok());
  // Items of 2 and 4 ms, busy for 1 and 2.5: half of 6 and half of 4.
  EXPECT_DOUBLE_EQ(timeline->makespan_us, 1000 + 3000 + 2000);
  const auto again = ios_stages_of(*fork, *plan);
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[1].groups, stages[1].groups);
  EXPECT_EQ(again[1].device, "");
}

TEST(StageList, RefusesUnknownAndOpenDevices) {
  const auto p = read_text(kSmall, {.devices = 2});
  ASSERT_TRUE(p.ok());
  std::vector<IosStage> stages = {{0, {{OpId(0)}, {}}, "gpu3"}};
  auto plan = plan_of_ios_stages(*p, stages);
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().to_string().find("$.stages[0].device: the cluster has no device 'gpu3'"),
            std::string::npos);
  stages[0].device.clear();
  plan = plan_of_ios_stages(*p, stages);
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().to_string().find("names no device, and the problem has 2"), std::string::npos);
  EXPECT_FALSE(plan_of_ios_stages(*p, {}).ok());
}

std::string public_data() {
  const char* shared = std::getenv("HEDDLE_SHARED");
  return std::string(shared ? shared : HEDDLE_SOURCE_DIR "/../shared") + "/data/hios/";
}

TEST(HiosWorkload, ReadsEveryPublicInstance) {
  if (!file_exists(public_data() + "sim/reference.jsonl"))
    GTEST_SKIP() << "no public data; set HEDDLE_SHARED";
  for (int seed = 2001; seed <= 2030; ++seed) {
    for (const bool by_reader : {false, true}) {
      const auto p = read_hios_workload(public_data() + "sim/sim_" + std::to_string(seed) + ".json",
                                        {.devices = 4, .transfer_by_reader = by_reader});
      ASSERT_TRUE(p.ok()) << p.error().to_string();
      EXPECT_EQ(p->graph->num_ops(), 200u);
      EXPECT_EQ(p->graph->num_edges(), 400u);
    }
  }
}

// Times of 1 us for each op: the public schedules are feasible, and stages take less than their ops.
TEST(StageList, PublicIosSchedulesAreFeasiblePlans) {
  const auto folder = public_data() + "ios_schedules/";
  if (!file_exists(folder + "inception_v3_v100_bs1.json"))
    GTEST_SKIP() << "no public data; set HEDDLE_SHARED";
  const auto base = read_text(kSmall, {.devices = 1});
  ASSERT_TRUE(base.ok());
  for (const char* name : {"v100_bs1", "v100_bs16", "v100_bs32", "v100_bs64", "v100_bs128", "k80_bs1"}) {
    const auto file = read_ios_graph(folder + "inception_v3_" + name + ".json");
    ASSERT_TRUE(file.ok()) << file.error().to_string();
    Problem p;
    p.graph = file->graph;
    p.cluster = base->cluster;
    CostTable costs(p.graph->num_ops(), 1);
    for (size_t v = 0; v < p.graph->num_ops(); ++v) costs.set(OpId(v), DeviceId(0), {.us = 1});
    p.costs = std::make_shared<const CostTable>(costs);
    set_hios_stages(p);
    p.execution.stage_width = stage_width_of(file->stages);
    EXPECT_GE(p.execution.stage_width, 4);
    auto costs_at_half = std::make_shared<CostTable>(*p.costs);
    for (size_t v = 0; v < p.graph->num_ops(); ++v) costs_at_half->set_utilization(OpId(v), DeviceId(0), 0.5);
    p.costs = costs_at_half;
    const auto plan = plan_of_ios_stages(p, file->stages);
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    const auto timeline = evaluate(p, *plan);
    ASSERT_TRUE(timeline.ok());
    const auto report = check(p, *plan, *timeline);
    EXPECT_TRUE(report.ok()) << report.findings[0].message;
    EXPECT_LT(timeline->makespan_us, static_cast<double>(p.graph->num_ops()));
    EXPECT_EQ(ios_stages_of(p, *plan).size(), file->stages.size());
  }
}

}  // namespace
}  // namespace heddle
