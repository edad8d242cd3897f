// Served fleets whose devices take other times than their plans believe, over HTTP and with a real worker. What is kept
// and what is rolled back, tests/simulation/simulated_drift_test.cc has on a simulated clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "heddle/fleet/fleet_planner.h"
#include "heddle/serve/fleet_control.h"
#include "heddle/serve/rest_api.h"
#include "heddle/serve/worker.h"
#include "serve_support.h"
#include "support/drifting_fleet.h"

namespace heddle {
namespace {

using testing::HasSubstr;

double block_us(const Fleet& fleet, const char* device_class) {
  return fleet.models[0].latency_us[static_cast<size_t>(fleet.class_named(device_class))][0][0][0];
}

// Requests in bursts, whatever becomes of them.
class Bursts {
 public:
  Bursts(InferService& service, int size, int every_ms)
      : thread_([this, &service, size, every_ms] {
          auto due = std::chrono::steady_clock::now();
          while (!stop_) {
            for (int i = 0; i < size; ++i) send_and_forget(service);
            due += std::chrono::milliseconds(every_ms);
            std::this_thread::sleep_until(due);
          }
        }) {}
  ~Bursts() {
    stop_ = true;
    thread_.join();
  }
  Bursts(const Bursts&) = delete;
  Bursts& operator=(const Bursts&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class DriftTest : public testing::Test {
 protected:
  void TearDown() override {
    if (server_) server_->stop(5);
    service_.stop(5);
    control_.reset();
  }

  // Decisions within a second or two. The rate of a generator on a busy machine says nothing.
  static FleetControlOptions quick() {
    FleetControlOptions options;
    options.replan_s = .2;
    options.drift = {.share = .3, .window_runs = 8, .hold_s = .1};
    options.trial = {.window_s = .5, .margin = .05, .growth = 1e6, .least_requests = 10};
    return options;
  }
  void serve(const Fleet& fleet, FleetControlOptions options) {
    options.log = [this](LogLevel level, const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_ += std::string(kLogLevelNames[static_cast<size_t>(level)]) + " " + line + "\n";
    };
    const auto plan = plan_fleet(fleet, "auto");
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    plan_ = *plan;
    auto control = FleetControl::create(service_, fleet, plan_, options);
    ASSERT_TRUE(control.ok()) << control.error().to_string();
    control_ = std::move(*control);
    auto server = HttpServer::start({}, [this](const HttpHead& head, HttpBody body, HttpReply reply) {
      if (!control_->answer(head, body, reply)) answer_rest(service_, head, body, reply);
    });
    ASSERT_TRUE(server.ok());
    server_ = std::move(*server);
  }
  Json get(const std::string& path) const {
    const auto json = parse_json(RawClient(server_->port()).ask("GET", path).body);
    EXPECT_TRUE(json.ok());
    return json.ok() ? *json : Json::object();
  }
  Fleet fleet() const { return *fleet_from_json(get("/v2/fleet")["fleet"]); }
  // The first change of the plan of this kind; null where there is none.
  Json change(const std::string& what) const {
    const auto status = service_.status();
    for (const auto& c : status["changes"])
      if (c["what"] == what) return c;
    return {};
  }
  bool wait_for(const std::string& what) const {
    return eventually([&] { return !change(what).is_null(); });
  }
  bool uses(const std::string& device_class) const {
    const auto status = service_.status();
    for (const auto& p : status["pools"])
      if (p["class"] == device_class) return true;
    return false;
  }
  std::string lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

  std::shared_ptr<WorkerBus> bus_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::shared_ptr<WorkerPool> pool_;
  FleetPlan plan_;
  InferService service_;
  std::unique_ptr<FleetControl> control_;
  std::unique_ptr<HttpServer> server_;
  std::mutex mutex_;
  std::string lines_;
};

// Without a trial the corrected plan stays, and later plans go by the corrected times, too.
TEST_F(DriftTest, CorrectsTheTimesThatLaterPlansGoBy) {
  const auto planned = two_alike(2, 2, 80e3);
  auto options = quick();
  options.trial.window_s = 0;
  options.device_times = planned;
  options.device_times->models[0].latency_us[1][0][0][0] = 100e3;
  serve(planned, options);
  EXPECT_TRUE(uses("drifting"));
  const Bursts bursts(service_, 5, 50);
  ASSERT_TRUE(wait_for("drift")) << service_.status().dump();
  EXPECT_NEAR(block_us(fleet(), "drifting"), 100e3, 100);
  EXPECT_EQ(block_us(fleet(), "sound"), 10e3);
  EXPECT_FALSE(uses("drifting"));
  EXPECT_EQ(get("/v2/status")["corrections"][0]["class"], "drifting");
  RawClient client(server_->port());
  EXPECT_THAT(client.ask("POST", "/v2/fleet/plan", to_json(plan_, planned).dump()).body,
              HasSubstr("by the times that were measured"));
  EXPECT_EQ(client.ask("POST", "/v2/fleet/counts", R"({"change": {"sound": 1}})").status, 200);
  EXPECT_FALSE(uses("drifting"));
  EXPECT_NEAR(block_us(fleet(), "drifting"), 100e3, 100);
  // Another description of these times ends their correction.
  auto described = planned;
  described.models[0].latency_us[1][0][0][0] = 50e3;
  EXPECT_EQ(client.ask("POST", "/v2/fleet", to_json(described).dump()).status, 200);
  EXPECT_EQ(block_us(fleet(), "drifting"), 50e3);
}

// The devices of a worker that is slower than planned are so by the described times, however often these are
// corrected.
TEST_F(DriftTest, OfAWorkersDevicesIsPlannedFor) {
  auto made = in_process_bus({});
  ASSERT_TRUE(made.ok());
  bus_ = std::move(*made);
  for (const char* device_class : {"sound", "drifting"}) {
    WorkerOptions worker;
    worker.name = device_class;
    worker.devices = {{device_class, 1}};
    worker.slowdown = worker.name == "drifting" ? 4 : 1;
    auto started = Worker::start(worker, *bus_);
    ASSERT_TRUE(started.ok()) << started.error().to_string();
    workers_.push_back(std::move(*started));
  }
  auto pool = WorkerPool::create(bus_, {});
  ASSERT_TRUE(pool.ok());
  pool_ = std::move(*pool);
  auto options = quick();
  options.workers = pool_.get();
  options.trial.window_s = 0;
  options.drift.share = 1;
  serve(two_alike(1, 1, 2e6), options);
  const Bursts bursts(service_, 3, 60);
  ASSERT_TRUE(wait_for("drift")) << service_.status().dump();
  EXPECT_GT(block_us(fleet(), "drifting"), 20e3);
  EXPECT_TRUE(eventually([&] {
    const auto status = get("/v2/status");
    for (const auto& p : status["drift"]["pools"])
      if (p["class"] == "drifting" && p["ratio"] < 2) return true;
    return false;
  }));
}

TEST_F(DriftTest, APlanThatWasAskedForIsRolledBackWhereItServesLess) {
  const auto planned = two_alike(4, 1, 80e3);
  auto options = quick();
  options.drift.share = 0;
  options.try_changes = true;
  serve(planned, options);
  FleetPlan one;
  one.fleet = planned.name;
  one.planner = "test";
  one.models = {{.pipelines = {{.partitions = {{0, 1, 1, 1, 1}}}}}};
  evaluate_fleet_plan(planned, one);
  one.bound = one.value;
  const Bursts bursts(service_, 20, 70);
  // Nothing is compared before there is something to compare with.
  ASSERT_TRUE(eventually([&] { return service_.statistics("net").requests[1] > 200; }));
  const auto body = to_json(one, planned).dump();
  const auto switched = RawClient(server_->port()).ask("POST", "/v2/fleet/plan", body);
  ASSERT_EQ(switched.status, 200) << switched.body;
  EXPECT_FALSE(uses("sound"));
  ASSERT_TRUE(wait_for("rolled back")) << lines();
  EXPECT_TRUE(uses("sound"));
  EXPECT_FALSE(change("asked").is_null());
  // Devices that are gone cannot be gone back to: no trial.
  const auto removed =
      RawClient(server_->port()).ask("POST", "/v2/fleet/counts", R"({"change": {"sound": -4}})");
  ASSERT_EQ(removed.status, 200) << removed.body;
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  EXPECT_FALSE(uses("sound"));
}

}  // namespace
}  // namespace heddle
