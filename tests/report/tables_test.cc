// Tables of what was measured: copies between memories, requests by plans for few and many cores, moves of an op.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heddle/base/json.h"
#include "heddle/report/adaptive_text.h"
#include "heddle/report/copies_table.h"
#include "heddle/report/moves.h"
#include "heddle/report/run_tables.h"
#include "report_fixture.h"

namespace heddle {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const DeviceId kHost;

TEST(CopiesTable, EachWayHasItsTimesAndWhatTheFileSaid) {
  const Cluster cluster = *planned_diamond().problem.cluster;
  CopyProfile copies;
  copies.routes.push_back({.from = DeviceId(0),
                           .to = DeviceId(1),
                           .direct = false,
                           .times = {{4096, 10}, {1 << 20, 500}},
                           .rel_spread = .1,
                           .line = {8, 2e9}});
  copies.routes.push_back(
      {.from = kHost, .to = DeviceId(0), .times = {{4096, 5}}, .rel_spread = 0, .line = {1, 1e9}});
  copies.at_once = {{{DeviceId(0)}, 1.5e9, .5, true},
                    {{DeviceId(1)}, 2e9, 1, false},
                    {{DeviceId(0), DeviceId(1)}, 2e9, .55, true},
                    {{DeviceId(0), DeviceId(2)}, 4e9, .98, false}};
  copies.left_out = {{DeviceId(2), "it has no streams"}};

  const std::string text = copies_text(cluster, copies);
  EXPECT_THAT(text, AllOf(HasSubstr("gpu1 by host"), HasSubstr("host"), HasSubstr("1.0 MiB"),
                          HasSubstr("500 us"), HasSubstr("gpu0, both directions"), HasSubstr("half duplex"),
                          HasSubstr("full duplex"), HasSubstr("share a bus"), HasSubstr("share nothing"),
                          HasSubstr("not measured: gpu2: it has no streams")));

  const Json json = copies_json(cluster, copies);
  ASSERT_EQ(json["copies"].size(), 2u);
  EXPECT_EQ(json["copies"][0]["from"], "gpu0");
  EXPECT_EQ(json["copies"][0]["direct"], false);
  EXPECT_EQ(json["copies"][0]["declared_bytes_per_s"], 1e9);  // the link's
  EXPECT_EQ(json["copies"][0]["times"], Json::parse("[[4096, 10.0], [1048576, 500.0]]"));
  EXPECT_EQ(json["copies"][1]["from"], "host");
  EXPECT_TRUE(json["copies"][1]["declared_bytes_per_s"].is_null());  // the file has no way from the host
  EXPECT_EQ(json["at_once"][3]["devices"], Json::parse(R"(["gpu0", "gpu2"])"));
  EXPECT_EQ(json["left_out"][0]["reason"], "it has no streams");
}

TEST(AdaptiveTable, EachPlanHasItsRequests) {
  std::vector<PreparedPlan> plans(3);
  plans[0].what = "all cores";
  plans[0].result.value_us = 100;
  plans[1].what = "core 0";
  plans[1].result.value_us = 150;
  plans[2].what = "core 1";
  plans[2].result.value_us = 151;
  AdaptiveRun run{.us = {100, 110, 160}, .us_of = {{100, 110}, {160}, {}}, .switches = 1, .verified = true};
  const Shown shown = adaptive_shown(plans, run);
  EXPECT_THAT(shown.text,
              AllOf(HasSubstr("core 0"), HasSubstr("3 requests: median 110 us"),
                    HasSubstr("the plan changed 1 time"), HasSubstr("equal to the unsplit model's")));
  EXPECT_THAT(shown.text, Not(HasSubstr("NOT EQUAL")));
  EXPECT_EQ(shown.json["plans"][0]["median_us"], 105);
  EXPECT_TRUE(shown.json["plans"][2]["median_us"].is_null());  // it ran no request
  EXPECT_EQ(shown.json["outputs_equal"], true);
  run.right = false;
  EXPECT_THAT(adaptive_shown(plans, run).text, HasSubstr("NOT EQUAL"));
  run.verified = false;
  EXPECT_THAT(adaptive_shown(plans, run).text, HasSubstr("not compared"));
  EXPECT_TRUE(adaptive_shown(plans, run).json["outputs_equal"].is_null());
}

TEST(WrongPrediction, HasACauseOfWhatIsOffWhenItIsTimedAgain) {
  const auto cause = [](double drift, double error, double half_range = .05) {
    const Recheck again{
        .error = error, .error_low = error - half_range, .error_high = error + half_range, .drift = drift};
    return off_because_json(again)["cause"].get<std::string>() + ": " + off_because_text(again);
  };
  EXPECT_THAT(cause(.5, .02), HasSubstr("machine: the machine is slower"));
  EXPECT_THAT(cause(-.4, .02), HasSubstr("machine: the machine is faster"));
  EXPECT_THAT(cause(.02, .3), HasSubstr("prediction: the prediction is wrong"));
  EXPECT_THAT(cause(.02, .3, .2), HasSubstr("disturbed: other work disturbs the machine: timed again, the "
                                            "prediction is off by +10.0 % to +50.0 %"));
  EXPECT_THAT(cause(.5, .02, .2), HasSubstr("machine: "));
  EXPECT_THAT(cause(.005, 0), HasSubstr("passed: "));
  EXPECT_THAT(cause(.09, .09), HasSubstr("prediction: ")) << "each alone is usual";
}

TEST(MovesTable, SaysWhichIsThePlansAndWhatIsRefused) {
  const Planned p = planned_diamond();
  auto moves = moves_of(p.problem, p.plan, OpId(1)).value();
  ASSERT_EQ(moves.size(), 2u);
  EXPECT_THAT(moves_text(p.problem, OpId(1), moves),
              AllOf(HasSubstr("b on each device, all else as planned"), HasSubstr("as planned"),
                    HasSubstr("30.0 us"), HasSubstr("60.0 us")));
  Move& refused = moves[1];
  refused.ops_us = kImpossible;
  refused.value_us.reset();
  refused.refused = "no kernel";
  EXPECT_THAT(moves_text(p.problem, OpId(1), moves), HasSubstr("no kernel"));
  const Json json = move_json(p.problem, refused);
  EXPECT_FALSE(json.contains("ops_us"));
  EXPECT_FALSE(json.contains("value_us"));
  EXPECT_EQ(json["refused"], "no kernel");
  EXPECT_EQ(json["ops"], Json::parse(R"(["b"])"));
}

}  // namespace
}  // namespace heddle
