// Reading flow workloads, and what evaluator, checker and builder do with them.
#include "heddle/plan/flow_workload.h"

#include <gtest/gtest.h>

#include "heddle/base/file.h"
#include "heddle/plan/bounds.h"
#include "heddle/plan/builder.h"
#include "heddle/plan/checker.h"
#include "workload_support.h"

namespace heddle::test {
namespace {

const char* const kTwoDevices = R"({"name": "two", "units": {"time": "ms"},
  "devices": [{"id": 0, "memory": 8}, {"id": 1, "memory": 8}],
  "ops": [{"id": 0, "time": [1.5, 2], "memory": 3}, {"id": 2, "time": [1, 1], "memory": 3},
          {"id": 4, "time": [2, 2.25], "memory": 3}],
  "edges": [{"src": 0, "dst": 2, "flow": 1, "time": [[0, 0.5], [0.75, 0]]},
            {"src": 0, "dst": 4, "flow": null, "time": null},
            {"src": 2, "dst": 4, "flow": 3, "time": [[0, 1], [1, 0]]}]})";

Result<FlowWorkloadFile> parse(const std::string& text) {
  HEDDLE_ASSIGN_OR_RETURN(const auto json, parse_json(text));
  return flow_workload_from_json(json);
}

struct Send {
  int tensor, to;
};
// Each op a segment of its own; `steps` are ops (>= 0) or the next of `sends` (-1).
Plan plan_of(const Problem& problem, const std::vector<int>& devices, const std::vector<int>& steps,
             const std::vector<Send>& sends) {
  Plan plan;
  for (size_t v = 0; v < devices.size(); ++v)
    plan.segments.push_back({problem.graph->op(OpId(v)).name, {OpId(v)}, DeviceId(devices[v])});
  size_t next = 0;
  for (const int step : steps) {
    if (step >= 0) {
      const DeviceId at(devices[static_cast<size_t>(step)]);
      plan.steps.push_back({StepKind::kRun, SegmentId(step), TensorId(), at, at, -1});
      continue;
    }
    const TensorId tensor(sends[next].tensor);
    const OpId maker = problem.graph->tensor(tensor).producer;
    plan.steps.push_back({StepKind::kTransfer, SegmentId(maker.index()), tensor,
                          DeviceId(devices[maker.index()]), DeviceId(sends[next++].to), -1});
  }
  return plan;
}

TEST(FlowWorkload, BecomesAProblemWithGivenTransferTimes) {
  const auto file = parse(kTwoDevices);
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  const Problem& p = file->problem;
  EXPECT_EQ(file->us_per_unit, 1000);
  EXPECT_EQ(p.execution.transfers, Transfers::kGiven);
  EXPECT_EQ(p.graph->op(OpId(1)).name, "2");
  EXPECT_EQ(p.costs->us(OpId(0), DeviceId(0)), 1500);
  EXPECT_EQ(p.costs->us(OpId(0), DeviceId(1)), 2000);
  EXPECT_EQ(p.given_transfer_us(p.graph->find_tensor("0->2"), DeviceId(1), DeviceId(0)), 750);
  EXPECT_TRUE(p.is_order_only(p.graph->find_tensor("0->4")));
  EXPECT_FALSE(p.is_order_only(p.graph->find_tensor("2->4")));
}

// Op 0 on device 0 ends at 1.50; its flow arrives at 2.00; op 2 on device 1 ends at 3.00; back at 4.00; op 4
// to 6.00.
TEST(FlowWorkload, TimesFlowsBetweenDevices) {
  const Problem p = parse(kTwoDevices)->problem;
  const int first = p.graph->find_tensor("0->2").value, back = p.graph->find_tensor("2->4").value;
  const Plan plan = plan_of(p, {0, 1, 0}, {0, -1, 1, -1, 2}, {{first, 1}, {back, 0}});
  const auto t = evaluate(p, plan);
  ASSERT_TRUE(t.ok()) << t.error().to_string();
  EXPECT_EQ(t->start_us, (std::vector<double>{0, 1500, 2000, 3000, 4000}));
  EXPECT_EQ(t->makespan_us, 6000);
  EXPECT_TRUE(check(p, plan, *t, 6000).ok());
  Assignment decisions;
  decisions.device = {DeviceId(0), DeviceId(1), DeviceId(0)};
  decisions.order = {OpId(0), OpId(1), OpId(2)};
  EXPECT_EQ(evaluate(p, *build_plan(p, decisions))->makespan_us, 6000);
  EXPECT_LE(lower_bound(p).us, 4500);
}

// Two flows into one device wait for its copy engine although they come from different devices.
TEST(FlowWorkload, FlowsIntoOneDeviceExcludeEachOther) {
  const auto file = parse(R"({"name": "ports",
    "devices": [{"id": 0, "memory": 9}, {"id": 1, "memory": 9}, {"id": 2, "memory": 9}],
    "ops": [{"id": 0, "time": [1,1,1], "memory": 0}, {"id": 1, "time": [1,1,1], "memory": 0},
            {"id": 2, "time": [1,1,1], "memory": 0}],
    "edges": [{"src": 0, "dst": 2, "flow": 3, "time": [[0,4,4],[4,0,4],[4,4,0]]},
              {"src": 1, "dst": 2, "flow": 4, "time": [[0,4,4],[4,0,4],[4,4,0]]}]})");
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  const Problem& p = file->problem;
  const Plan plan = plan_of(p, {0, 1, 2}, {0, 1, -1, -1, 2}, {{0, 2}, {1, 2}});
  auto t = *evaluate(p, plan);
  EXPECT_EQ(t.makespan_us, 1 + 4 + 4 + 1);
  t.start_us[3] = 3;
  t.finish_us[3] = 7;
  const auto report = check(p, plan, t);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.findings[0].kind, Violation::kOverlap);
  EXPECT_NE(report.findings[0].message.find("copy engine"), std::string::npos);
}

TEST(FlowWorkload, RefusesPlansThatDoNotFitTheTransfers) {
  const Problem p = parse(kTwoDevices)->problem;
  const int first = p.graph->find_tensor("0->2").value, order = p.graph->find_tensor("0->4").value,
            back = p.graph->find_tensor("2->4").value;
  const auto fails = [&](const Plan& plan) { return !evaluate(p, plan).ok(); };
  // A flow that is missing, one without data, one after its reader, one on a route of its own.
  EXPECT_TRUE(fails(plan_of(p, {0, 1, 0}, {0, 1, -1, 2}, {{back, 0}})));
  EXPECT_TRUE(fails(plan_of(p, {0, 0, 1}, {0, -1, 1, -1, 2}, {{order, 1}, {back, 1}})));
  EXPECT_TRUE(fails(plan_of(p, {0, 1, 0}, {0, -1, 1, 2, -1}, {{first, 1}, {back, 0}})));
  Plan routed = plan_of(p, {0, 1, 0}, {0, -1, 1, -1, 2}, {{first, 1}, {back, 0}});
  routed.routes = {{}};
  routed.steps[1].route = 0;
  EXPECT_TRUE(fails(routed));
}

// A device without any memory holds no op that needs some; Heddle's own 0 would be no limit.
TEST(FlowWorkload, NoMemoryIsALimit) {
  Random random(3);
  Json json = random_flow_json(random, {.ops = 2, .devices = 2, .edge_probability = 0});
  json["devices"][0]["memory"] = 0;
  json["ops"][0]["memory"] = json["ops"][1]["memory"] = 1;
  const Problem p = flow_workload_from_json(json)->problem;
  const Plan plan = plan_of(p, {0, 1}, {0, 1}, {});
  const auto report = check(p, plan, *evaluate(p, plan));
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.findings[0].kind, Violation::kMemory);
  const Plan other = plan_of(p, {1, 1}, {0, 1}, {});
  EXPECT_TRUE(check(p, other, *evaluate(p, other)).ok());
}

TEST(FlowWorkload, NamesThePlaceOfAMistake) {
  const auto message = [](const std::string& ops, const std::string& edges) {
    const auto w = parse(R"({"name": "x", "devices": [{"id": 0, "memory": 1}], "ops": )" + ops +
                         R"(, "edges": )" + edges + "}");
    return w.ok() ? "" : w.error().to_string();
  };
  const std::string two = R"([{"id": 0, "time": [1], "memory": 0}, {"id": 1, "time": [1], "memory": 0}])";
  EXPECT_EQ(message(two, "[]"), "");
  EXPECT_NE(message(R"([{"id": 0, "time": [1, 2], "memory": 0}])", "[]").find("$.ops[0].time"),
            std::string::npos);
  EXPECT_NE(message(R"([{"id": 0, "time": [-1], "memory": 0}])", "[]").find("$.ops[0].time"),
            std::string::npos);
  EXPECT_NE(message(R"([{"id": 0, "time": [0.12345678912], "memory": 0}])", "[]").find("nine decimals"),
            std::string::npos);
  EXPECT_NE(message(R"([{"id": 0, "time": [1], "memory": 0.12345678912}])", "[]").find("nine decimals"),
            std::string::npos);
  EXPECT_NE(message(two, R"([{"src": 0, "dst": 7, "flow": null}])").find("no op 7"), std::string::npos);
  EXPECT_NE(message(two, R"([{"src": 0, "dst": 1, "flow": 2, "time": [[1]]}])").find("must be 0"),
            std::string::npos);
  EXPECT_NE(message(two, R"([{"src": 0, "dst": 1, "flow": null}, {"src": 1, "dst": 0, "flow": null}])")
                .find("cycle"),
            std::string::npos);
  EXPECT_NE(message("[]", "[]").find("no ops"), std::string::npos);
  EXPECT_FALSE(parse("{").ok());
}

TEST(FlowWorkload, ReadsThePublicData) {
  const std::string folder = public_data("moirai");
  if (!file_exists(folder + "GoogLeNet.json")) GTEST_SKIP() << "no public data; set HEDDLE_SHARED";
  const struct {
    const char* name;
    size_t ops, edges, flows;
  } expected[] = {{"example-1", 14, 19, 13},
                  {"GoogLeNet", 141, 167, 166},
                  {"yolov5x", 419, 461, 460},
                  {"transformer", 1374, 1820, 1816}};
  for (const auto& e : expected) {
    const auto file = read_flow_workload(folder + e.name + ".json");
    ASSERT_TRUE(file.ok()) << file.error().to_string();
    const Problem& p = file->problem;
    EXPECT_EQ(p.graph->num_ops(), e.ops);
    EXPECT_EQ(p.graph->num_edges(), e.edges);
    size_t flows = 0;
    for (size_t t = 0; t < p.graph->num_tensors(); ++t) flows += !p.is_order_only(TensorId(t));
    EXPECT_EQ(flows, e.flows) << e.name;
  }
}

}  // namespace
}  // namespace heddle::test
