// The pages of plans, runs and simulations in a real browser.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "heddle/fleet/fleet_planner.h"
#include "heddle/report/fleet_view.h"
#include "heddle/report/timeline_view.h"
#include "report_fixture.h"
#include "support/browser.h"

namespace heddle {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kLookAt_ms = 300;

class ReportPage : public testing::Test {
 protected:
  void SetUp() override {
    browser_ = find_browser();
    if (browser_.empty()) GTEST_SKIP() << "no chromium is installed here";
    folder_ = (std::filesystem::temp_directory_path() / "heddle-page-XXXXXX").string();
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

  // "" if the browser does not start.
  std::string shown(const std::string& html, PageWindow window, const std::string& act = "") const {
    const auto file = folder_ + "/page.html";
    std::ofstream(file) << with_probe(html, kLookAt_ms, act);
    return page_in_browser(browser_, "file://" + file, window, 2 * kLookAt_ms);
  }

  std::string browser_, folder_;
};

std::string timeline_page() {
  const auto p = planned_diamond();
  const auto run = slower_by_ten_percent(p);
  return timeline_html(make_timeline_view(p.problem, p.plan, p.timeline, p.bound, "by hand", &run),
                       explain(p.problem, p.plan, p.timeline, p.bound));
}

TEST_F(ReportPage, OfARunFitsEveryScreen) {
  for (const auto window : kPageWindows) {
    const auto page = shown(timeline_page(), window);
    if (page.empty()) GTEST_SKIP() << browser_ << " does not start here";
    check_page(page, window);
    EXPECT_THAT(page, AllOf(HasSubstr("<h1>diamond &lt;&amp;&gt;</h1>"),  // names stay text
                            HasSubstr("<b>65.0 us</b>"), HasSubstr("<b>71.5 us</b>"),
                            HasSubstr("<b>+10.0 %</b>"), HasSubstr("<b>1.00 times</b>")))
        << "tiles: predicted, measured, error, gain";
    EXPECT_THAT(page, AllOf(HasSubstr("<h2>Why</h2>"),
                            HasSubstr("<td class=\"text\">gpu1 twice as fast</td>"), Not(HasSubstr("<pre"))));
  }
}

// Zooming widens bars and leaves the size of their text; the keys choose steps.
TEST_F(ReportPage, ZoomsAndShowsAStepsDetails) {
  const auto page = shown(timeline_page(), {768, false}, R"js(
  const bar = document.querySelector('.bar'), text = bar.querySelector('span');
  const key = k => view.dispatchEvent(new KeyboardEvent('keydown', {key: k, bubbles: true}));
  const before = bar.getBoundingClientRect();
  const size = getComputedStyle(text).fontSize;
  document.getElementById('in').click();
  key('+');
  const after = bar.getBoundingClientRect();
  seen.wider = (after.width / before.width).toFixed(1);
  seen.same = after.height === before.height && getComputedStyle(text).fontSize === size;
  seen.ticks = document.querySelectorAll('#ticks span').length > 2;
  key('0');
  seen.back = Math.abs(bar.getBoundingClientRect().width - before.width) < 1;
  key('ArrowRight');
  key('ArrowRight');
  seen.tip = document.getElementById('tip').textContent.split('\n')[0];
  document.querySelector('#steps thead button').click();
  document.querySelector('#steps thead button').click();
  seen.sorted = document.querySelector('#steps tbody td').textContent;
)js");
  if (page.empty()) GTEST_SKIP() << browser_ << " does not start here";
  EXPECT_EQ(root_data(page, "error"), "-");
  EXPECT_NEAR(std::atof(root_data(page, "wider").c_str()), 1.5 * 1.5, .8);
  EXPECT_EQ(root_data(page, "same"), "true");
  EXPECT_EQ(root_data(page, "ticks"), "true");
  EXPECT_EQ(root_data(page, "back"), "true");
  EXPECT_EQ(root_data(page, "tip"), "b");
  EXPECT_EQ(root_data(page, "sorted"), "tc");
}

// A simulation of a fleet whose names have markup.
struct SimulatedFleet {
  SimulatedFleet() {
    Fleet fleet;
    fleet.name = "two";
    fleet.classes = {{.name = "big<i>", .count = 2, .nic_bytes_per_s = 1e9}};
    FleetModel net;
    net.name = "net<i>";
    net.blocks = 1;
    net.cut_bytes = {1000, 1000};
    net.slo_us = 1e5;
    net.latency_us = {{{{10'000}}}};
    fleet.models = {net};
    deployment = deploy(fleet, plan_fleet(fleet, "auto", {}).value()).value();
    SweepOptions options;
    options.load_factors = {.5, .8};
    options.duration_s = 2;
    view.title = "fleet <i id=injected>";
    view.deployment = &deployment;
    view.series = {{"reservation", sweep_loads(deployment, options).value()}};
  }
  Deployment deployment;
  FleetSimulationView view;
};

void expect_names_and_figures(const std::string& page) {
  EXPECT_THAT(page, HasSubstr("<h1>fleet &lt;i id=injected&gt;</h1>"));
  EXPECT_THAT(page, HasSubstr("<b>up to 0.8</b>"));
  EXPECT_THAT(page, HasSubstr("<td class=\"text\">reservation</td><td>0.5</td>"));
  EXPECT_THAT(page, HasSubstr("big&lt;i&gt;"));
}

TEST(FleetPage, HasAllNamesAsTextAndAllLoads) {
  const SimulatedFleet fleet;
  const auto page = fleet_simulation_html(fleet.view);
  expect_names_and_figures(page);
  EXPECT_THAT(page, Not(HasSubstr("<i id=injected>")));
}

TEST_F(ReportPage, OfAFleetFitsEveryScreen) {
  const SimulatedFleet fleet;
  for (const auto window : kPageWindows) {
    const auto page = shown(fleet_simulation_html(fleet.view), window);
    if (page.empty()) GTEST_SKIP() << browser_ << " does not start here";
    check_page(page, window);
    expect_names_and_figures(page);
  }
}

}  // namespace
}  // namespace heddle
