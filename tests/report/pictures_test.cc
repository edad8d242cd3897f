#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/plan/builder.h"
#include "heddle/report/chart.h"
#include "heddle/report/explain.h"
#include "heddle/report/run_file.h"
#include "heddle/report/timeline_view.h"
#include "report_fixture.h"

namespace heddle {
namespace {

using testing::HasSubstr;
using testing::Not;

TimelineView view_of(const Planned& p, const RunRecord* run = nullptr) {
  return make_timeline_view(p.problem, p.plan, p.timeline, p.bound, "by hand", run);
}

std::string without_line_ends(std::string text) {
  std::erase(text, '\n');
  return text;
}

Explanation explained(const Planned& p) { return explain(p.problem, p.plan, p.timeline, p.bound); }

TEST(TimelineView, ListsDevicesFirstEvenIdleOnesThenTransfers) {
  const auto p = planned_diamond();
  EXPECT_EQ(view_of(p).tracks, (std::vector<std::string>{"device gpu0", "device gpu1", "device gpu2",
                                                         "transfer gpu0 -> gpu1", "transfer gpu1 -> gpu0"}));
}

TEST(Chart, IsAFileOfItsOwnForLightAndDarkPages) {
  const Chart chart{.title = "a < b", .lines = {{"one", {{1, .5}, {2, 1}}}}, .y_percent = true};
  const auto file = chart_file(chart);
  EXPECT_THAT(file, testing::StartsWith("<svg"));
  EXPECT_THAT(file, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(file, HasSubstr("a &lt; b"));
  EXPECT_THAT(file, HasSubstr("one at 2: 100 %"));
  EXPECT_THAT(file, testing::EndsWith("</svg>\n"));
}

TEST(Chart, HasTicksForAnyRange) {
  EXPECT_EQ(round_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(round_ticks(-1, 1, 4), (std::vector<double>{-1, -.5, 0, .5, 1}));
  for (const double span : {1e-323, 1e-310, 1e-300, 1e300})
    EXPECT_LE(round_ticks(0, span, 8).size(), 10U) << span;
  EXPECT_LE(round_ticks(1e16, 1e16 + 2, 8).size(), 10U);
}

// A picture whose text is cut within a character is refused whole.
TEST(Pictures, CutLongNamesBetweenCharacters) {
  auto p = planned_diamond();
  auto view = view_of(p);
  for (int blanks = 0; blanks < 3; ++blanks) {
    std::string name(static_cast<size_t>(blanks), 'a');
    for (int i = 0; i < 40; ++i) name += "\xe6\xb5\x8b";
    const std::string svg = chart_file({.title = "t", .lines = {{name, {{1, 1}}}}});
    EXPECT_TRUE(is_printable(without_line_ends(svg)));
    for (auto& bar : view.bars) {
      if (bar.track == view.tracks[0]) bar.track = name;
      bar.name = name;
    }
    view.tracks[0] = name;
    EXPECT_TRUE(is_printable(without_line_ends(timeline_svg(view))));
  }
}

TEST(TimelineView, MarksTheCriticalPath) {
  // gpu0: a 0-10, b 10-40; a's tensor reaches gpu1 at 15; c there 15-55; back at 60; d 60-65.
  const auto p = planned_diamond();
  ASSERT_DOUBLE_EQ(p.timeline.makespan_us, 65);
  for (const auto& bar : view_of(p).bars) EXPECT_EQ(bar.critical, bar.name != "b") << bar.name;
}

TEST(TimelineView, SpanCoversThePredictedAndTheMeasured) {
  const auto p = planned_diamond();
  const auto run = slower_by_ten_percent(p);
  EXPECT_DOUBLE_EQ(view_of(p).span_us, 65);
  EXPECT_DOUBLE_EQ(view_of(p, &run).span_us, 71.5);
}

TEST(TimelineView, LanesOnOneDeviceAreDrawnSideBySide) {
  const auto p = planned_diamond();
  Problem problem = p.problem;
  problem.objective = Objective::kThroughput;
  const Lane lane{assignment_of(problem, p.plan, 0), 0.5};
  const Plan two = build_plan(problem, {lane, lane}).value();
  const Timeline timeline = evaluate(problem, two).value();
  const auto view = make_timeline_view(problem, two, timeline, p.bound, "by hand");
  for (const auto& a : view.bars)
    for (const auto& b : view.bars) {
      const bool at_once = a.predicted_start_us < b.predicted_finish_us - 1e-9 &&
                           b.predicted_start_us < a.predicted_finish_us - 1e-9;
      if (&a == &b || a.track != b.track || !at_once) continue;
      EXPECT_EQ(a.parts, b.parts);
      EXPECT_NE(a.part, b.part) << a.name << " over " << b.name;
    }
  EXPECT_EQ(view.bars.front().parts, 2);
}

TEST(Trace, HasTheSameTracksForPlanAndRun) {
  const auto p = planned_diamond();
  const auto run = slower_by_ten_percent(p);
  const auto json = parse_json(timeline_trace_json(view_of(p, &run)));
  ASSERT_TRUE(json.ok());
  std::vector<std::string> names[3];
  int complete[3] = {};
  for (const auto& e : (*json)["traceEvents"]) {
    const int pid = e["pid"].get<int>();
    if (e["name"] == "thread_name") names[pid].push_back(e["args"]["name"].get<std::string>());
    if (e["ph"] == "X") ++complete[pid];
  }
  EXPECT_EQ(names[1], names[2]);
  EXPECT_EQ(complete[1], static_cast<int>(p.plan.steps.size()));
  EXPECT_EQ(complete[2], complete[1]);
}

TEST(Trace, HasAThreadForEachOfTheTransfersThatShareALink) {
  auto view = view_of(planned_diamond());
  const auto transfer = std::ranges::find(view.bars, StepKind::kTransfer, &TimelineBar::kind);
  ASSERT_NE(transfer, view.bars.end());
  const std::string track = transfer->track;
  auto late = *transfer;
  late.predicted_start_us += 1;
  late.predicted_finish_us += 1;
  auto after = *transfer;
  after.predicted_start_us = transfer->predicted_finish_us;
  after.predicted_finish_us += 20;
  view.bars.insert(view.bars.end(), {late, after});
  const auto json = parse_json(timeline_trace_json(view));
  ASSERT_TRUE(json.ok());
  std::map<int, std::vector<std::pair<double, double>>> busy;
  std::vector<std::string> names;
  for (const auto& e : (*json)["traceEvents"]) {
    if (e["name"] == "thread_name") names.push_back(e["args"]["name"]);
    if (e["ph"] != "X") continue;
    const auto start = e["ts"].get<double>();
    for (const auto& [from, to] : busy[e["tid"]]) EXPECT_LE(to, start + 1e-9) << e.dump();
    busy[e["tid"]].emplace_back(start, start + e["dur"].get<double>());
  }
  EXPECT_EQ(names.size(), view.tracks.size() + 1);
  EXPECT_THAT(names, testing::Contains(track + ", at once 2"));
}

TEST(Svg, ShowsAThroughputAsRequestsPerSecond) {
  auto p = planned_diamond();
  auto view = view_of(p);
  view.objective = Objective::kThroughput;
  view.batch = 2;
  EXPECT_THAT(timeline_svg(view), HasSubstr("throughput predicted 30,769 req/s"));
}

TEST(Trace, LeavesTheMeasuredProcessOutWhenNothingRan) {
  EXPECT_THAT(timeline_trace_json(view_of(planned_diamond())), Not(HasSubstr("\"measured\"")));
}

TEST(Svg, EscapesNamesAndShowsBothTimes) {
  const auto p = planned_diamond();
  const auto run = slower_by_ten_percent(p);
  const auto svg = timeline_svg(view_of(p, &run));
  EXPECT_THAT(svg, HasSubstr("c&lt;&amp;&gt;"));
  EXPECT_THAT(svg, Not(HasSubstr("c<&>")));
  EXPECT_THAT(svg, HasSubstr("predicted 65.0 us, measured 71.5 us (+10.0 %)"));
  EXPECT_THAT(svg, HasSubstr("proven lower bound"));
}

TEST(Html, IsSelfContained) {
  const auto html = timeline_html(view_of(planned_diamond()), explained(planned_diamond()));
  EXPECT_THAT(html, HasSubstr("c&lt;&amp;&gt;"));
  EXPECT_THAT(html, Not(HasSubstr("c<&>")));
  EXPECT_THAT(html, Not(HasSubstr("http"))) << "nothing is fetched";
}

RunFile run_of_diamond() {
  const auto p = planned_diamond();
  RunFile file;
  file.plan.problem = p.problem;
  file.plan.plan = p.plan;
  file.plan.predicted = p.timeline;
  file.plan.bound = p.bound;
  file.plan.planner = "by hand";
  file.run = slower_by_ten_percent(p);
  return file;
}

TEST(RunFile, ReadsBackWhatItWrote) {
  const RunFile file = run_of_diamond();
  const auto json = run_to_json(file);
  EXPECT_TRUE(is_run_json(json));
  const auto back = run_from_json(JsonCursor(json));
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  EXPECT_EQ(run_to_json(*back).dump(), json.dump());
}

// As where an output is no number: the file of a wrong run is the one that is needed.
TEST(RunFile, HoldsAnErrorWithoutLimit) {
  RunFile file = run_of_diamond();
  file.run.max_abs_error = file.run.max_rel_error = INFINITY;
  const auto back = run_from_json(JsonCursor(parse_json(run_to_json(file).dump()).value()));
  ASSERT_TRUE(back.ok()) << back.error().to_string();
  EXPECT_GT(back->run.max_abs_error, 1e300);
}

TEST(RunFile, RefusesAnotherNumberOfSteps) {
  RunFile file = run_of_diamond();
  file.run.steps.pop_back();
  const auto json = run_to_json(file);
  const auto back = run_from_json(JsonCursor(json));
  ASSERT_FALSE(back.ok());
  EXPECT_THAT(back.error().to_string(), HasSubstr("$.run: has 5 measured steps, but the plan has 6"));
}

}  // namespace
}  // namespace heddle
