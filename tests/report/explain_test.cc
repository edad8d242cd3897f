#include "heddle/report/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "heddle/base/json.h"
#include "report_fixture.h"

namespace heddle {
namespace {

using testing::HasSubstr;

Explanation explain_it(const Planned& p) { return explain(p.problem, p.plan, p.timeline, p.bound); }

TEST(Explain, SharesOfTheCriticalPathAddUp) {
  // a 10 + c 40 + d 5 compute, 5 + 5 transfers, of 65.
  const auto e = explain_it(planned_diamond());
  EXPECT_NEAR(e.compute_share, 55.0 / 65, 1e-12);
  EXPECT_NEAR(e.transfer_share, 10.0 / 65, 1e-12);
  EXPECT_EQ(e.load_share, 0);
  ASSERT_EQ(e.critical_path.size(), 5U);
  EXPECT_EQ(e.critical_path[0].what, "run a on gpu0");
  EXPECT_EQ(e.critical_path[1].what, "send ta (3.9 KiB) gpu0 -> gpu1");
}

TEST(Explain, UnitesNeighboursOnOneDevice) {
  const auto e = explain_it(planned_diamond({0, 0, 0, 0}));
  ASSERT_EQ(e.critical_path.size(), 1U);
  EXPECT_EQ(e.critical_path[0].what, "run a on gpu0, and 3 more there");
  EXPECT_DOUBLE_EQ(e.critical_path[0].us, 65);
}

TEST(Explain, SaysWhyADeviceIsUnusedAndWarnsWhenItWasRequested) {
  const auto e = explain_it(planned_diamond({0, 0, 0, 0}));
  EXPECT_FALSE(e.devices[1].used);
  EXPECT_THAT(e.devices[1].reason, HasSubstr("the whole model would take 130 us on it"));
  EXPECT_EQ(e.devices[2].reason, "not among the devices that the plan may use");
  ASSERT_FALSE(e.warnings.empty());
  EXPECT_THAT(e.warnings[0], HasSubstr("gpu1 was requested but is not used"));
}

TEST(Explain, SuggestionsAreReEvaluatedPlans) {
  // gpu1 twice as fast: c takes 20 there: 10, 15-35, 40: b is done at 40 as well, d until 45.
  const auto e = explain_it(planned_diamond());
  ASSERT_FALSE(e.suggestions.empty());
  EXPECT_EQ(e.suggestions[0].change, "gpu1 twice as fast");
  EXPECT_DOUBLE_EQ(e.suggestions[0].value_us, 45);
  bool link = false;
  for (const auto& s : e.suggestions) {
    if (s.change != "link wire twice as fast") continue;
    link = true;
    EXPECT_DOUBLE_EQ(s.value_us, 61);  // each transfer 1 + 2 us
  }
  EXPECT_TRUE(link);
}

TEST(Explain, TextFitsAHundredColumns) {
  std::istringstream lines(explanation_text(explain_it(planned_diamond())));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
}

// gpu0 waits for 15 us of c, and 5 us for its tensor. gpu1 waits no longer than it is idle in the end.
TEST(Explain, TellsWaitingForDevicesFromWaitingForTransfers) {
  const auto e = explain_it(planned_diamond());
  EXPECT_EQ(e.devices[0].reason, "waits 15.0 us for other devices");
  EXPECT_EQ(e.devices[1].reason, "done early; idle for the last 10.0 us");
}

// gpu0 has 45 us of work for each request, gpu1 40 us, each direction of the link 5 us.
TEST(Explain, OfThroughputNamesTheNextBottleneckInRequests) {
  auto planned = planned_diamond();
  planned.problem.objective = Objective::kThroughput;
  const auto e = explain_it(planned);
  ASSERT_TRUE(e.next_bottleneck);
  EXPECT_EQ(e.next_bottleneck->bottleneck, "device gpu0");
  EXPECT_EQ(e.next_bottleneck->next, "device gpu1");
  EXPECT_DOUBLE_EQ(e.next_bottleneck->limit_us, 40);
  EXPECT_EQ(e.devices[1].reason, "idle for 11.1 % of the period");
  EXPECT_THAT(explanation_text(e), HasSubstr(" req/s"));
  EXPECT_THAT(explanation_text(e), HasSubstr("; next: " + e.next_bottleneck->next));
}

TEST(Explain, JsonHasEveryDevice) {
  EXPECT_EQ(explanation_json(explain_it(planned_diamond()))["devices"].size(), 3U);
}

}  // namespace
}  // namespace heddle
