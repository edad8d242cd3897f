// Reading, evaluating and checking flow workloads.
#include "heddle/plan/flow_workload.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "heddle/base/file.h"

namespace heddle {
namespace {

const char* const kTwoDevices = R"({"name": "two", "units": {"time": "ms"},
  "devices": [{"id": 0, "memory": 8}, {"id": 1, "memory": 8}],
  "ops": [{"id": 0, "time": [1.5, 2], "memory": 3}, {"id": 2, "time": [1, 1], "memory": 3},
          {"id": 4, "time": [2, 2.25], "memory": 3}],
  "edges": [{"src": 0, "dst": 2, "flow": 1, "time": [[0, 0.5], [0.75, 0]]},
            {"src": 0, "dst": 4, "flow": null, "time": null},
            {"src": 2, "dst": 4, "flow": 3, "time": [[0, 1], [1, 0]]}]})";

TEST(FlowWorkload, ReadsTimesAsWholeTicks) {
  const auto w = parse_flow_workload(kTwoDevices);
  ASSERT_TRUE(w.ok()) << w.error().to_string();
  EXPECT_EQ(w->ticks_per_unit, 100);
  EXPECT_EQ(w->ops[0].ticks, (std::vector<int64_t>{150, 200}));
  EXPECT_EQ(w->flow_ticks(0, 1, 0), 75);
  EXPECT_EQ(w->flow_ticks(1, 1, 0), 0);
  EXPECT_FALSE(w->crosses(1, 0, 1));
}

// Op 0 on device 0 ends at 1.50; its flow arrives at 2.00; op 2 on device 1 ends at 3.00; back at 4.00; op 4
// to 6.00.
TEST(FlowWorkload, TimesFlowsBetweenDevices) {
  const auto w = parse_flow_workload(kTwoDevices);
  const auto s = evaluate_flows(*w, {{0, 1, 0}, {0, 3, 4, 1, 5, 2}});
  ASSERT_TRUE(s.ok()) << s.error().to_string();
  EXPECT_EQ(s->op_start, (std::vector<int64_t>{0, 200, 400}));
  EXPECT_EQ(s->makespan, 600);
  EXPECT_TRUE(check_flows(*w, *s).empty());
}

// Two flows into one device wait for its ingress port although they come from different devices.
TEST(FlowWorkload, SerialisesPorts) {
  const auto w = parse_flow_workload(R"({"name": "ports",
    "devices": [{"id": 0, "memory": 9}, {"id": 1, "memory": 9}, {"id": 2, "memory": 9}],
    "ops": [{"id": 0, "time": [1,1,1], "memory": 0}, {"id": 1, "time": [1,1,1], "memory": 0},
            {"id": 2, "time": [1,1,1], "memory": 0}],
    "edges": [{"src": 0, "dst": 2, "flow": 3, "time": [[0,4,4],[4,0,4],[4,4,0]]},
              {"src": 1, "dst": 2, "flow": 4, "time": [[0,4,4],[4,0,4],[4,4,0]]}]})");
  ASSERT_TRUE(w.ok());
  const auto s = evaluate_flows(*w, {{0, 1, 2}, {0, 1, 3, 4, 2}});
  EXPECT_EQ(s->makespan, 1 + 4 + 4 + 1);
  auto wrong = *s;
  wrong.flow_start[1] = 3;
  const auto findings = check_flows(*w, wrong);
  ASSERT_FALSE(findings.empty());
  EXPECT_NE(findings[0].find("ingress port of device 2"), std::string::npos) << findings[0];
}

TEST(FlowWorkload, TheCheckerFindsEachKindOfMistake) {
  const auto w = parse_flow_workload(kTwoDevices);
  const auto good = *evaluate_flows(*w, {{0, 1, 0}, {0, 3, 4, 1, 5, 2}});
  const auto finds = [&](FlowSchedule s, const std::string& text) {
    for (const auto& f : check_flows(*w, s)) {
      if (f.find(text) != std::string::npos) return true;
    }
    return false;
  };
  auto s = good;
  s.makespan = 599;
  EXPECT_TRUE(finds(s, "makespan"));
  s = good;
  s.op_start[1] = 199;
  EXPECT_TRUE(finds(s, "ends after its reader has started"));
  s = good;
  s.flow_start[2] = 299;
  EXPECT_TRUE(finds(s, "starts before its op has ended"));
  s = good;
  s.device = {0, 0, 0};
  EXPECT_TRUE(finds(s, "memory"));
  s = good;
  s.op_start[2] = 100;
  EXPECT_TRUE(finds(s, "overlap on device 0"));
  s = good;
  s.device[0] = 7;
  EXPECT_TRUE(finds(s, "no device 7"));
  s = good;
  s.op_start.pop_back();
  EXPECT_TRUE(finds(s, "sizes"));
}

TEST(FlowWorkload, RefusesMalformedDecisions) {
  const auto w = parse_flow_workload(kTwoDevices);
  EXPECT_FALSE(evaluate_flows(*w, {{0, 1}, {0, 3, 4, 1, 5, 2}}).ok());
  EXPECT_FALSE(evaluate_flows(*w, {{0, 1, 9}, {0, 3, 4, 1, 5, 2}}).ok());
  EXPECT_FALSE(evaluate_flows(*w, {{0, 1, 0}, {0, 3, 4, 1, 2, 5}}).ok());
  EXPECT_FALSE(evaluate_flows(*w, {{0, 1, 0}, {0, 3, 4, 1, 1, 2}}).ok());
}

TEST(FlowWorkload, NamesThePlaceOfAMistake) {
  const auto message = [](const std::string& ops, const std::string& edges) {
    const auto w = parse_flow_workload(R"({"name": "x", "devices": [{"id": 0, "memory": 1}], "ops": )" + ops +
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
  EXPECT_NE(message(two, R"([{"src": 0, "dst": 7, "flow": null}])").find("no op 7"), std::string::npos);
  EXPECT_NE(message(two, R"([{"src": 0, "dst": 1, "flow": 2, "time": [[1]]}])").find("must be 0"),
            std::string::npos);
  EXPECT_NE(message(two, R"([{"src": 0, "dst": 1, "flow": null}, {"src": 1, "dst": 0, "flow": null}])")
                .find("cycle"),
            std::string::npos);
  EXPECT_FALSE(parse_flow_workload("{").ok());
}

TEST(FlowWorkload, ReadsThePublicData) {
  const char* shared = std::getenv("HEDDLE_SHARED");
  const std::string folder = std::string(shared != nullptr ? shared : "/nonexistent") + "/data/moirai/";
  if (!file_exists(folder + "GoogLeNet.json")) GTEST_SKIP() << "no public data; set HEDDLE_SHARED";
  const struct {
    const char* name;
    size_t ops, edges, flows;
  } expected[] = {{"example-1", 14, 19, 13},
                  {"GoogLeNet", 141, 167, 166},
                  {"yolov5x", 419, 461, 460},
                  {"transformer", 1374, 1820, 1816}};
  for (const auto& e : expected) {
    const auto w = read_flow_workload(folder + e.name + ".json");
    ASSERT_TRUE(w.ok()) << w.error().to_string();
    EXPECT_EQ(w->num_ops(), e.ops);
    EXPECT_EQ(w->num_flows(), e.edges);
    size_t flows = 0;
    for (const auto& f : w->flows) flows += !f.precedence;
    EXPECT_EQ(flows, e.flows) << e.name;
  }
}

}  // namespace
}  // namespace heddle
