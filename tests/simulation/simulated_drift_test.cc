// Served fleets whose devices take other times than their plans believe, on a simulated clock: that is noticed and
// planned for, and plans that serve worse are rolled back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heddle/base/json.h"
#include "heddle/fleet/fleet_planner.h"
#include "heddle/serve/fleet_control.h"
#include "simulated_test.h"
#include "support/drifting_fleet.h"

namespace heddle {
namespace {

using testing::HasSubstr;

constexpr int64_t kNsPerMs = 1'000'000;

Fleet with_drift(Fleet fleet, double drifted_us) {
  fleet.models[0].latency_us[1][0][0][0] = drifted_us;
  return fleet;
}

// A served fleet, for threads of a simulation.
class DriftingFleet {
 public:
  // Its devices take the times of `devices`.
  DriftingFleet(const Fleet& planned, const Fleet& devices) {
    FleetControlOptions options;
    options.replan_s = 1e6;  // by a real clock, which must not decide
    options.drift = {.share = .3, .window_runs = 8, .hold_s = .1};
    options.trial = {.window_s = .5, .margin = .05, .growth = 1e6, .least_requests = 10};
    options.device_times = devices;
    options.log = [this](LogLevel level, const std::string& line) {
      lines += std::string(kLogLevelNames[static_cast<size_t>(level)]) + " " + line + "\n";
    };
    const auto plan = plan_fleet(planned, "auto");
    EXPECT_TRUE(plan.ok()) << plan.error().to_string();
    auto made = FleetControl::create(service_, planned, *plan, options);
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    control_ = std::move(*made);
  }
  ~DriftingFleet() {
    quit_ = true;
    if (clients_.joinable()) clients_.join();
    service_.stop(5);
    control_ = nullptr;
  }
  DriftingFleet(const DriftingFleet&) = delete;
  DriftingFleet& operator=(const DriftingFleet&) = delete;

  // From now on, `size` requests at once every `every_ms`, whatever becomes of them.
  void send_bursts(int size, int every_ms) {
    clients_ = Thread([this, size, every_ms] {
      for (int64_t due = steady_ns(); !quit_; sleep_ns(due - steady_ns())) {
        for (int i = 0; i < size; ++i) send_and_forget(service_);
        due += every_ms * kNsPerMs;
      }
    });
  }
  // The first change of the plan of this kind, which comes within a minute; null: it did not.
  Json change(const std::string& what) const {
    for (const int64_t until = steady_ns() + 60'000 * kNsPerMs; steady_ns() < until;
         sleep_ns(20 * kNsPerMs)) {
      const auto status = service_.status();
      for (const auto& c : status["changes"])
        if (c["what"] == what) return c;
    }
    ADD_FAILURE() << "no change '" << what << "': " << lines;
    return {};
  }
  bool uses(const std::string& device_class) const {
    const auto status = service_.status();
    for (const auto& p : status["pools"])
      if (p["class"] == device_class) return true;
    return false;
  }
  // By the measured corrections, the factor on the planned time of the class.
  double correction(const std::string& device_class) const {
    const auto status = service_.status();
    for (const auto& c : status["corrections"])
      if (c["class"] == device_class) return c["factors"][0];
    return 1;
  }
  Status replace(const Fleet& fleet) {
    std::optional<Status> done;
    control_->replace(fleet, [&done](const Status& status) { done = status; });
    while (!done) sleep_ns(kNsPerMs);
    return *done;
  }
  Json status() const { return service_.status(); }
  std::string metrics() const { return service_.metrics(); }

  std::string lines;  // of the log

 private:
  InferService service_;
  std::unique_ptr<FleetControl> control_;
  Thread clients_;
  bool quit_ = false;
};

// What comes to the drifting devices is late; without them there is no loss.
TEST(SimulatedDrift, IsPlannedForAndRequestsAreInTimeAgain) {
  in_simulation([] {
    const auto planned = two_alike(2, 2, 80e3, 10e3);
    DriftingFleet served(planned, with_drift(planned, 100e3));
    EXPECT_TRUE(served.uses("drifting"));
    served.send_bursts(5, 50);
    const auto drift = served.change("drift");
    ASSERT_EQ(drift["drift"].size(), 1U);
    EXPECT_EQ(drift["drift"][0]["class"], "drifting");
    EXPECT_NEAR(drift["drift"][0]["ratio"].get<double>(), 10, .01);
    EXPECT_LT(drift["value"].get<double>(), drift["value_before"].get<double>());
    const auto kept = served.change("kept");
    ASSERT_FALSE(kept.is_null());
    EXPECT_LT(kept["in_time_before"].get<double>(), .9);
    EXPECT_EQ(kept["in_time_after"], 1);
    EXPECT_NEAR(served.correction("drifting"), 10, .01);
    EXPECT_EQ(served.correction("sound"), 1);
    EXPECT_FALSE(served.uses("drifting"));
    EXPECT_THAT(served.lines, HasSubstr("info drift: net on drifting takes 10 times its planned time"));
    EXPECT_THAT(served.metrics(), HasSubstr("heddle_plan_events_total{event=\"drift\"} 1\n"));
    // Another description of these times ends their correction.
    EXPECT_TRUE(served.replace(with_drift(planned, 50e3)).ok());
    EXPECT_TRUE(served.status()["corrections"].empty());
  });
}

// Planning keeps a margin, in which the drifted class has no place any more; yet its answers are in time, and
// without them the others are too few.
TEST(SimulatedDrift, IsRolledBackWhereTheOldPlanServedMore) {
  in_simulation([] {
    auto planned = two_alike(1, 3, 100e3, 40e3);
    planned.models[0].margin_us = 40e3;
    DriftingFleet served(planned, with_drift(planned, 65e3));
    served.send_bursts(4, 100);
    ASSERT_FALSE(served.change("drift").is_null());
    const auto rolled_back = served.change("rolled back");
    ASSERT_FALSE(rolled_back.is_null());
    EXPECT_LT(rolled_back["in_time_after"].get<double>(), rolled_back["in_time_before"].get<double>() - .05);
    EXPECT_TRUE(served.uses("drifting"));
    EXPECT_TRUE(served.status()["corrections"].empty());
    // The drift is there again, and left alone.
    sleep_ns(2000 * kNsPerMs);
    const auto pools = served.status()["drift"]["pools"];
    EXPECT_TRUE(std::ranges::any_of(pools, [](const Json& p) {
      return p["class"] == "drifting" && p["ratio"] > 1.5;
    })) << pools.dump();
    EXPECT_THAT(served.metrics(),
                testing::AllOf(HasSubstr("heddle_plan_events_total{event=\"drift\"} 1\n"),
                               HasSubstr("heddle_plan_events_total{event=\"rolled_back\"} 1\n"),
                               HasSubstr("heddle_pool_time_ratio{model=\"net\",class=\"drifting\"")));
  });
}

// A plan that cannot be made for the measured times leaves the old one.
TEST(SimulatedDrift, ThatNoPlanCanServeLeavesTheOldPlan) {
  in_simulation([] {
    const auto planned = two_alike(0, 2, 80e3, 10e3);
    DriftingFleet served(planned, with_drift(planned, 100e3));
    served.send_bursts(2, 50);
    const auto refused = served.change("refused");
    ASSERT_FALSE(refused.is_null());
    EXPECT_THAT(refused["text"].get<std::string>(), HasSubstr("the old plan stays in use"));
    EXPECT_TRUE(served.uses("drifting"));
    EXPECT_EQ(served.correction("drifting"), 1);
  });
}

}  // namespace
}  // namespace heddle
