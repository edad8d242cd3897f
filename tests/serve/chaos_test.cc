// Faults at every place that the server has one, under load: each request gets exactly one outcome, none is open
// past its deadline and a second, and the server serves on. Writes what became of the requests to
// chaos_report.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "heddle/fleet/fleet_planner.h"
#include "heddle/serve/fleet_control.h"
#include "heddle/serve/load.h"
#include "heddle/serve/local_server.h"
#include "heddle/serve/rest_api.h"
#include "model_files.h"
#include "onnx_writer.h"
#include "plane/fault.h"
#include "serve_support.h"
#include "two_classes.h"

namespace heddle {
namespace {

namespace ow = onnx_writer;

constexpr int kRounds = 20, kRequests = 24;
constexpr double kSlo_s = 1;

struct Place {
  FaultPoint point;
  const char* name;
  const char* what;
};
constexpr Place kPlaces[] = {
#define HEDDLE_FAULT_PLACE(point, name, what) {FaultPoint::point, name, what},
    HEDDLE_FAULT_POINTS(HEDDLE_FAULT_PLACE)
#undef HEDDLE_FAULT_PLACE
};

// y = x + [1, 2, 3] on this machine's devices.
class LocalScene {
 public:
  LocalScene() {
    const auto model = ow::model({{ow::node("Add", {"x", "w"}, {"y"}, "add")},
                                  {ow::value("x", {-1, 3})},
                                  {ow::value("y", {-1, 3})},
                                  {ow::float_tensor("w", {3}, {1, 2, 3})}});
    const std::vector<std::string> paths = {folder_.write("add.onnx", model)};
    auto sources = find_models(paths, {.slo_us = kSlo_s * 1e6, .max_batch = 4});
    LocalServerOptions options;
    options.measure_s = .001;
    auto local = LocalServer::create(service_, std::move(*sources), options);
    if (!local.ok()) throw std::runtime_error(local.error().to_string());
    local_ = std::move(*local);
  }
  ~LocalScene() { service_.stop(5); }
  InferService& service() { return service_; }
  bool answer(const HttpHead&, const HttpBody&, const HttpReply&) { return false; }
  // What an operator does meanwhile; its status where it is to be looked at.
  int disturb(const LoadTarget& target) const {
    const auto answer = ask_http(target, "POST", "/v2/repository/models/add/load", "", 20);
    return answer.ok() ? answer->status : 0;
  }

 private:
  TestFolder folder_;
  InferService service_;
  std::unique_ptr<LocalServer> local_;
};

// Two classes of timed devices.
class FleetScene {
 public:
  FleetScene() {
    const Fleet fleet = two_classes(kSlo_s * 1e6);
    const auto plan = plan_fleet(fleet, "auto");
    if (!plan.ok()) throw std::runtime_error(plan.error().to_string());
    FleetControlOptions options;
    options.replan_s = .05;
    auto control = FleetControl::create(service_, fleet, *plan, options);
    if (!control.ok()) throw std::runtime_error(control.error().to_string());
    control_ = std::move(*control);
  }
  ~FleetScene() { service_.stop(5); }
  InferService& service() { return service_; }
  bool answer(const HttpHead& head, const HttpBody& body, const HttpReply& reply) {
    return control_->answer(head, body, reply);
  }
  int disturb(const LoadTarget& target) {
    step_ = -step_;
    const auto answer = ask_http(target, "POST", "/v2/fleet/counts",
                                 R"({"change": {"slow": )" + std::to_string(step_) + "}}", 20);
    return answer.ok() ? answer->status : 0;
  }

 private:
  InferService service_;
  std::unique_ptr<FleetControl> control_;
  int step_ = 1;
};

struct Tally {
  uint64_t hits = 0, sent = 0, answered = 0, refused = 0, broken = 0;
};

bool changes_the_plan(FaultPoint p) {
  return p == FaultPoint::kPlan || p == FaultPoint::kCutOver || p == FaultPoint::kDrain ||
         p == FaultPoint::kLoad || p == FaultPoint::kCompile;
}

template <class Scene>
class Chaos {
 public:
  Chaos() {
    auto server = HttpServer::start({}, [this](const HttpHead& head, HttpBody body, HttpReply reply) {
      if (!scene_.answer(head, body, reply)) answer_rest(scene_.service(), head, body, reply);
    });
    if (!server.ok()) throw std::runtime_error(server.error().to_string());
    server_ = std::move(*server);
    target_.port = server_->port();
    auto models = load_models(target_, {}, {.payload_bytes = 100, .shapes = {}, .seed = 1});
    if (!models.ok()) throw std::runtime_error(models.error().to_string());
    models_ = std::move(*models);
  }
  ~Chaos() {
    clear_fault();
    server_->stop(5);
  }

  Tally rounds(const Place& place, FaultAction action) {
    const bool alters = changes_the_plan(place.point);
    Tally tally;
    for (int round = 0; round < kRounds; ++round) {
      const auto before = served();
      set_fault({place.point, action, alters ? 1U : 1U + static_cast<uint32_t>(round % 4), 3000});
      std::optional<int> changed;
      std::thread operator_thread;
      if (alters) operator_thread = std::thread([&] { changed = scene_.disturb(target_); });
      std::vector<Arrival> arrivals;
      for (int i = 0; i < kRequests; ++i) arrivals.push_back({i * TimeNs{500'000}, 0});
      LoadOptions options;
      options.timeout_s = kSlo_s + 1;
      const auto result = run_load(target_, models_, arrivals, options);
      if (operator_thread.joinable()) operator_thread.join();
      tally.hits += fault_hits();
      clear_fault();
      check(place, action, *result, before, tally);
      if (alters) {
        EXPECT_EQ(*changed, action == FaultAction::kDelay || place.point == FaultPoint::kDrain ? 200 : 500)
            << place.name;
      }
      // It goes on as if nothing had been.
      const auto again = run_load(target_, models_, std::vector<Arrival>{{0, 0}}, options);
      EXPECT_EQ(again.ok() ? again->counted.total.in_time + again->counted.total.late : 0, 1U) << place.name;
    }
    EXPECT_GT(tally.hits, 0U) << place.name << " was never passed";
    return tally;
  }

 private:
  uint64_t served() { return scene_.service().statistics(models_.front().name).success.count; }

  void check(const Place& place, FaultAction action, const LoadResult& result, uint64_t before,
             Tally& tally) {
    const auto& total = result.counted.total;
    uint64_t statuses = 0;
    for (const auto& [status, n] : result.statuses) statuses += n;
    EXPECT_EQ(statuses, kRequests) << place.name;
    EXPECT_EQ(total.in_time + total.late + total.dropped + total.failed, kRequests) << place.name;
    EXPECT_EQ(result.mismatched, 0U) << place.name;
    EXPECT_EQ(result.errors.count("no answer came in time"), 0U) << place.name;
    const auto broken = result.statuses.count(0) ? result.statuses.at(0) : 0;
    const bool may_break = place.point == FaultPoint::kAccept || place.point == FaultPoint::kRead ||
                           place.point == FaultPoint::kWrite;
    if (!may_break || action == FaultAction::kDelay) {
      EXPECT_EQ(broken, 0U) << place.name;
    }
    const auto answered = total.in_time + total.late;
    // What a client holds as answered the server has answered, and where answers cannot get lost on their way
    // the other way round as well.
    EXPECT_LE(answered, served() - before) << place.name;
    if (action == FaultAction::kDelay) {
      EXPECT_EQ(total.failed, 0U) << place.name;
    }
    EXPECT_TRUE(eventually([this] {
      const auto status = scene_.service().status();
      return status["models"][0]["in_plane"] == 0;
    })) << place.name;
    tally.sent += kRequests;
    tally.answered += answered;
    tally.refused += total.failed + total.dropped - broken;
    tally.broken += broken;
  }

  Scene scene_;
  std::unique_ptr<HttpServer> server_;
  LoadTarget target_;
  std::vector<ModelUnderLoad> models_;
};

const char* action_name(FaultAction action) {
  return action == FaultAction::kDelay ? "delay" : action == FaultAction::kFail ? "fail" : "kill";
}

// Which scene passes a place, and which actions mean something there.
bool is_local(FaultPoint p) {
  return p == FaultPoint::kHandOver || p == FaultPoint::kRun || p == FaultPoint::kRan ||
         p == FaultPoint::kReport || p == FaultPoint::kLoad || p == FaultPoint::kCompile;
}
std::vector<FaultAction> actions_of(FaultPoint p) {
  if (p == FaultPoint::kDecide || p == FaultPoint::kReport || p == FaultPoint::kClock ||
      p == FaultPoint::kDrain)
    return {FaultAction::kDelay};
  if (p == FaultPoint::kRun || p == FaultPoint::kRan)
    return {FaultAction::kDelay, FaultAction::kFail, FaultAction::kKill};
  return {FaultAction::kDelay, FaultAction::kFail};
}

template <class Scene>
void all_places(bool local, std::string& report) {
  Chaos<Scene> chaos;
  for (const auto& place : kPlaces) {
    if (is_local(place.point) != local) continue;
    for (const auto action : actions_of(place.point)) {
      const auto t = chaos.rounds(place, action);
      char line[256];
      std::snprintf(line, sizeof line, "| %s | %s | %d | %llu | %llu | %llu | %llu | %llu |\n", place.name,
                    action_name(action), kRounds, static_cast<unsigned long long>(t.hits),
                    static_cast<unsigned long long>(t.sent), static_cast<unsigned long long>(t.answered),
                    static_cast<unsigned long long>(t.refused), static_cast<unsigned long long>(t.broken));
      report += line;
    }
  }
}

TEST(ChaosInTheServer, EveryRequestHasOneOutcome) {
  static_assert(std::size(kPlaces) >= 20);
  std::string report =
      "| place | action | rounds | hits | sent | answered | refused or failed | connection broke |\n"
      "|---|---|---|---|---|---|---|---|\n";
  all_places<FleetScene>(false, report);
  all_places<LocalScene>(true, report);
  std::FILE* file = std::fopen("chaos_report.md", "w");
  ASSERT_NE(file, nullptr);
  std::fputs(report.c_str(), file);
  std::fclose(file);
  std::printf("%s", report.c_str());
}

}  // namespace
}  // namespace heddle
