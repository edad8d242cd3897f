// A fleet that changes while it serves: plans and counts of devices, refused or carried out, without a
// request that is lost.
#include "heddle/serve/fleet_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "heddle/fleet/fleet_planner.h"
#include "heddle/serve/rest_api.h"
#include "serve_support.h"
#include "two_classes.h"

namespace heddle {
namespace {

using testing::HasSubstr;

class FleetControlTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto plan = plan_fleet(two_classes(), "auto");
    ASSERT_TRUE(plan.ok()) << plan.error().to_string();
    plan_ = *plan;
    FleetControlOptions options;
    options.replan_s = .2;
    auto control = FleetControl::create(service_, two_classes(), plan_, options);
    ASSERT_TRUE(control.ok()) << control.error().to_string();
    control_ = std::move(*control);
    auto server = HttpServer::start({}, [this](const HttpHead& head, HttpBody body, HttpReply reply) {
      if (!control_->answer(head, body, reply)) answer_rest(service_, head, body, reply);
    });
    ASSERT_TRUE(server.ok());
    server_ = std::move(*server);
  }
  void TearDown() override {
    server_->stop(5);
    service_.stop(5);
    control_.reset();
  }
  RawClient::Answer ask(const std::string& method, const std::string& path,
                        const std::string& body = "") const {
    return RawClient(server_->port()).ask(method, path, body);
  }
  int64_t count(const std::string& device_class) const {
    const auto json = parse_json(ask("GET", "/v2/fleet").body);
    EXPECT_TRUE(json.ok());
    for (const auto& c : (*json)["fleet"]["classes"])
      if (c["name"] == device_class) return c["count"];
    return -1;
  }

  InferService service_;
  FleetPlan plan_;
  std::unique_ptr<FleetControl> control_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(FleetControlTest, DevicesComeAndGoUnderLoad) {
  std::atomic<bool> stop{false};
  std::atomic<int> answered{0}, other{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 3; ++c)
    clients.emplace_back([&] {
      RawClient client(server_->port());
      while (!stop) {
        const auto got =
            client.ask("POST", "/v2/models/net/infer",
                       R"({"inputs": [{"name": "payload", "shape": [0], "datatype": "UINT8", "data": []}]})");
        (got.status == 200 ? answered : other)++;
      }
    });
  const double before = plan_.value;
  const auto removed = ask("POST", "/v2/fleet/counts", R"({"change": {"slow": -3}})");
  ASSERT_EQ(removed.status, 200) << removed.body;
  EXPECT_LT((*parse_json(removed.body))["value"].get<double>(), before);
  EXPECT_EQ(count("slow"), 1);
  const auto added = ask("POST", "/v2/fleet/counts", R"({"change": {"slow": 3, "fast": 1}})");
  ASSERT_EQ(added.status, 200) << added.body;
  EXPECT_GT((*parse_json(added.body))["value"].get<double>(), before);
  EXPECT_EQ(count("fast"), 3);
  stop = true;
  for (auto& t : clients) t.join();
  EXPECT_GT(answered, 0);
  EXPECT_EQ(other, 0);
}

TEST_F(FleetControlTest, DrainedDevicesStayInTheFleetAndDoNothing) {
  const double before = plan_.value;
  const auto drained = ask("POST", "/v2/fleet/drain", R"({"change": {"slow": 3}})");
  ASSERT_EQ(drained.status, 200) << drained.body;
  EXPECT_LT((*parse_json(drained.body))["value"].get<double>(), before);
  EXPECT_EQ(count("slow"), 4);
  const auto status = *parse_json(ask("GET", "/v2/status").body);
  EXPECT_EQ(status["drained"], Json({{"slow", 3}}));
  for (const auto& c : status["classes"]) {
    if (c["name"] == "slow") {
      EXPECT_LE(c["used"], 1);
    }
  }
  // What is drained can neither go nor be used by a plan.
  EXPECT_EQ(ask("POST", "/v2/fleet/counts", R"({"change": {"slow": -2}})").status, 400);
  EXPECT_EQ(ask("POST", "/v2/fleet/drain", R"({"change": {"slow": 2}})").status, 400);
  EXPECT_EQ(ask("POST", "/v2/fleet/drain", R"({"change": {"slow": 1, "fast": 2}})").status, 409);
  EXPECT_EQ(ask("POST", "/v2/fleet/plan", to_json(plan_, two_classes()).dump()).status, 409);
  const auto back = ask("POST", "/v2/fleet/drain", R"({"change": {"slow": -3}})");
  ASSERT_EQ(back.status, 200) << back.body;
  EXPECT_NEAR((*parse_json(back.body))["value"].get<double>(), before, 1e-6 * before);
  EXPECT_EQ(ask("POST", "/v2/fleet/drain", R"({"change": {"slow": -1}})").status, 400);
  EXPECT_EQ(ask("POST", "/v2/fleet/plan", to_json(plan_, two_classes()).dump()).status, 200);
}

TEST_F(FleetControlTest, AnotherFleetTakesThePlaceOfTheOld) {
  auto more = two_classes();
  more.classes[1].count = 8;
  const auto grown = ask("POST", "/v2/fleet", to_json(more).dump());
  ASSERT_EQ(grown.status, 200) << grown.body;
  EXPECT_GT((*parse_json(grown.body))["value"].get<double>(), plan_.value);
  // Other models: a plan of its own; what is drained stays so.
  EXPECT_EQ(ask("POST", "/v2/fleet/drain", R"({"change": {"slow": 5}})").status, 200);
  auto other = more;
  other.models[0].name = "other";
  const auto renamed = ask("POST", "/v2/fleet", to_json(other).dump());
  ASSERT_EQ(renamed.status, 200) << renamed.body;
  EXPECT_EQ((*parse_json(renamed.body))["drained"], Json({{"slow", 5}}));
  EXPECT_EQ(ask("GET", "/v2/models/net/ready").status, 404);
  EXPECT_EQ(ask("GET", "/v2/models/other/ready").status, 200);
  // What cannot be served leaves the old one at work.
  other.models[0].slo_us = 1;
  EXPECT_EQ(ask("POST", "/v2/fleet", to_json(other).dump()).status, 409);
  EXPECT_EQ(ask("POST", "/v2/fleet", R"({"heddle": "fleet"})").status, 400);
  EXPECT_EQ(ask("GET", "/v2/models/other/ready").status, 200);
  // As the program does when its file has changed.
  std::atomic<int> outcome{0};
  control_->replace(two_classes(), [&outcome](const Status& status) { outcome = status.ok() ? 1 : 2; });
  EXPECT_TRUE(eventually([&outcome] { return outcome != 0; }));
  EXPECT_EQ(outcome, 1);
  EXPECT_EQ(ask("GET", "/v2/models/net/ready").status, 200);
}

TEST_F(FleetControlTest, PlansAreSwitchedOrRefused) {
  const auto file = to_json(plan_, two_classes());
  const auto switched = ask("POST", "/v2/fleet/plan", file.dump());
  EXPECT_EQ(switched.status, 200) << switched.body;
  EXPECT_THAT(ask("GET", "/metrics").body, HasSubstr("heddle_plans_total 2"));
  auto wrong = file;
  wrong["models"][0]["pipelines"][0]["partitions"][0]["count"] = 1000;
  EXPECT_EQ(ask("POST", "/v2/fleet/plan", wrong.dump()).status, 409);
  EXPECT_EQ(ask("POST", "/v2/fleet/plan", "{").status, 400);
  EXPECT_EQ(ask("POST", "/v2/fleet/plan", "[]").status, 400);
  EXPECT_EQ(ask("GET", "/v2/fleet/plan").status, 405);
  EXPECT_EQ(ask("PUT", "/v2/fleet").status, 405);
  EXPECT_EQ(ask("POST", "/v2/fleet").status, 400);
  EXPECT_EQ(ask("POST", "/v2/fleet/counts", R"({"change": {"slow": -4, "fast": -2}})").status, 400);
  EXPECT_EQ(ask("POST", "/v2/fleet/counts", R"({"change": {"slow": -5}})").status, 400);
  EXPECT_EQ(ask("POST", "/v2/fleet/counts", R"({"change": {}})").status, 400);
  EXPECT_THAT(ask("POST", "/v2/fleet/counts", R"({"change": {"slwo": 1}})").body,
              HasSubstr("did you mean 'slow'?"));
  // The plan that was there goes on.
  EXPECT_EQ(ask("GET", "/v2/models/net/ready").status, 200);
  EXPECT_EQ(ask("GET", "/v2/fleet/elsewhere").status, 404);
}

TEST_F(FleetControlTest, ChangesAfterAStopAreRefusedAndNotTakenForDone) {
  service_.stop(5);
  EXPECT_EQ(ask("POST", "/v2/fleet/counts", R"({"change": {"slow": -3}})").status, 503);
  EXPECT_EQ(count("slow"), 4);
  control_->stop();
  const auto refused = ask("POST", "/v2/fleet/plan", "{}");
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, HasSubstr("the server is stopping"));
}

TEST(FleetControlStates, AreEnoughForASuccessorToGoOn) {
  const auto plan = plan_fleet(two_classes(), "auto").value();
  std::string first, second;
  FleetControlOptions options;
  options.replan_s = .2;
  options.save = [&first](const std::string& state) -> Status {
    first = state;
    return {};
  };
  {
    InferService service;
    const auto control = FleetControl::create(service, two_classes(), plan, options).value();
    Fleet larger = two_classes();
    larger.classes[1].count = 5;
    std::promise<Status> changed;
    control->replace(larger, [&changed](const Status& status) { changed.set_value(status); });
    ASSERT_TRUE(changed.get_future().get().ok());
    service.stop(1);
  }
  options.save = [&second](const std::string& state) -> Status {
    second = state;
    return {};
  };
  InferService service;
  const auto resumed = FleetControl::resume(service, first, options);
  ASSERT_TRUE(resumed.ok()) << resumed.error().to_string();
  EXPECT_EQ(parse_json(second).value(), parse_json(first).value());
  EXPECT_EQ(parse_json(second).value()["fleet"]["classes"][1]["count"], 5);
  EXPECT_EQ(parse_json(second).value()["changes"][0]["what"], "asked");
  service.stop(1);

  for (const char* member : {"fleet", "plan", "corrections", "drained"}) {
    Json broken = parse_json(first).value();
    broken.erase(member);
    InferService other;
    const auto refused = FleetControl::resume(other, broken.dump(), {});
    ASSERT_FALSE(refused.ok()) << member;
    EXPECT_THAT(refused.error().to_string(), HasSubstr(member));
  }
  InferService other;
  EXPECT_FALSE(FleetControl::resume(other, "no JSON", {}).ok());
}

}  // namespace
}  // namespace heddle
