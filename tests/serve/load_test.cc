// The load generator: every request is accounted for, and its latency counts from when it was due.
#include "heddle/serve/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "data_plane_support.h"
#include "heddle/serve/http_rate.h"
#include "heddle/serve/http_server.h"
#include "heddle/serve/rest_api.h"
#include "heddle/serve/status_tables.h"
#include "load_support.h"
#include "protocol/infer_json.h"
#include "serve_support.h"

namespace heddle {
namespace {

constexpr TimeNs kOneMs = 1'000'000;

std::vector<ModelUnderLoad> stateful_models() {
  auto models = kModels;
  models.front().keeps_state = true;
  return models;
}

TEST(Load, CountsEveryRequestOnce) {
  std::atomic<int> n{0};
  Stub stub([&n](const HttpHead&, HttpBody body, HttpReply reply) {
    const int i = n++;
    if (i % 5 == 1) return reply.send(http_error(504, "too late"));
    if (i % 5 == 2) return reply.send(http_error(503, "full"));
    reply.send(answer_to(body, i % 5 == 3));
  });
  const auto result = run_load(stub.target, kModels, steady(100, kOneMs), {});
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  const auto& total = result->counted.total;
  EXPECT_EQ(total.arrivals, 100U);
  EXPECT_EQ(total.in_time, 40U);
  EXPECT_EQ(total.dropped, 20U);
  EXPECT_EQ(total.failed, 40U);
  EXPECT_EQ(result->mismatched, 20U);
  EXPECT_EQ(result->statuses.at(200) + result->statuses.at(0), 60U);
  EXPECT_EQ(result->statuses.at(503), 20U);
  EXPECT_EQ(result->errors.at("full"), 20U);
  EXPECT_EQ(n, 100);
  EXPECT_EQ(result->counted.latency.count(), 40U);
}

// Ten requests are due in 10 ms; the server answers the first one after 300 ms. With one connection the
// others wait for it, and their latencies say so.
TEST(Load, LatencyCountsFromWhenARequestWasDue) {
  std::mutex mutex;
  std::vector<std::thread> threads;
  std::atomic<int> n{0};
  LoadOptions options;
  options.max_connections = 1;
  {
    Stub stub([&](const HttpHead&, HttpBody body, HttpReply reply) {
      if (n++ > 0) return reply.send(answer_to(body));
      const std::lock_guard lock(mutex);
      threads.emplace_back([body, reply] {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        reply.send(answer_to(body));
      });
    });
    const auto result = run_load(stub.target, kModels, steady(10, kOneMs), options);
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->counted.total.in_time, 10U);
    EXPECT_EQ(result->connections, 1U);
    EXPECT_GE(result->counted.latency.percentile(.05), 285 * kOneMs);
    for (auto& t : threads) t.join();
  }
}

TEST(Load, RequestsThatAreSentAgainEndAtTheirTimeout) {
  const auto refuse = [](const HttpHead&, const HttpBody&, const HttpReply& reply) {
    reply.send(http_error(503, "this server is a standby"));
  };
  const Stub first(refuse), second(refuse);
  LoadTarget nobody;
  nobody.port = 1;
  for (const auto& standby : {second.target, nobody}) {
    LoadOptions options;
    options.timeout_s = .3;
    options.standbys = {standby};
    const auto result = run_load(first.target, kModels, steady(20, kOneMs), options);
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->counted.total.arrivals, 20U);
    EXPECT_EQ(result->counted.total.failed, 20U);
    EXPECT_GT(result->resent, 20U);
    EXPECT_THAT(result->errors.begin()->first, testing::HasSubstr("no server has answered it in time"));
  }
}

TEST(Load, ConnectionsThatBreakAndAnswersThatNeverComeAreFailures) {
  std::atomic<int> n{0};
  std::vector<HttpReply> kept;
  LoadOptions options;
  options.timeout_s = .5;
  {
    Stub stub([&](const HttpHead&, HttpBody body, HttpReply reply) {
      if (n++ % 2 == 0) {
        kept.push_back(reply);  // on the server's one thread
      } else {
        reply.send(answer_to(body));
      }
    });
    const auto result = run_load(stub.target, kModels, steady(20, kOneMs), options);
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->counted.total.in_time, 10U);
    EXPECT_EQ(result->counted.total.failed, 10U);
    EXPECT_EQ(result->statuses.at(0), 10U);
    EXPECT_EQ(result->errors.at("no answer came in time"), 10U);
    kept.clear();
  }
  LoadTarget nobody;
  nobody.port = 1;
  const auto refused = run_load(nobody, kModels, steady(3, kOneMs), options);
  if (refused.ok()) {  // else the very first connection was refused at once
    EXPECT_EQ(refused->counted.total.failed, 3U);
  }
  EXPECT_FALSE(run_load(nobody, kModels, std::vector<Arrival>{{5, 0}, {1, 0}}, {}).ok());
  EXPECT_FALSE(run_load(nobody, kModels, std::vector<Arrival>{{5, 1}}, {}).ok());
  EXPECT_EQ(load_models(nobody, {}, {.payload_bytes = 0, .shapes = {}, .seed = 1}).error().code(), Code::kIo);
}

TEST(Load, AStopSendsNothingMoreAndKeepsTheResult) {
  std::mutex mutex;
  std::vector<HttpReply> kept;
  std::atomic<int> n{0};
  CancelToken cancel;
  Stub stub([&](const HttpHead&, HttpBody body, HttpReply reply) {
    if (n++ == 0) return reply.send(answer_to(body));
    const std::lock_guard lock(mutex);
    kept.push_back(reply);
    cancel.cancel();
  });
  LoadOptions options;
  options.max_connections = 1;
  options.cancel = cancel;
  auto arrivals = steady(50, 1);
  arrivals.push_back({3'600 * kNsPerSecond, 0});  // due in an hour
  const auto result = run_load(stub.target, kModels, arrivals, options);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  {
    const std::lock_guard lock(mutex);
    kept.clear();
  }
  EXPECT_EQ(n, 2);
  EXPECT_EQ(result->counted.total.arrivals, 50U);  // what was due, and no more
  EXPECT_EQ(result->counted.total.in_time, 1U);
  EXPECT_EQ(result->errors.at("it was not sent before the load was stopped"), 48U);
  ASSERT_TRUE(result->stopped_s);
  EXPECT_LT(*result->stopped_s, 60);
  EXPECT_THAT(load_text(*result, 3600), testing::HasSubstr("stopped after"));
  EXPECT_TRUE(to_json(*result).contains("stopped_s"));
  // Before anything was due there is no result.
  const auto none = run_load(stub.target, kModels, std::vector<Arrival>{{3'600 * kNsPerSecond, 0}}, options);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), Code::kCancelled);
}

TEST(Load, NamesOfModelsAreEncodedInPaths) {
  auto models = kModels;
  models.front().name = "50% net/a?b";
  std::string path;
  Stub stub([&path](const HttpHead& head, HttpBody body, HttpReply reply) {
    path = head.path;
    reply.send(answer_to(body));
  });
  const auto result = run_load(stub.target, models, steady(1, 1), {});
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(result->counted.total.in_time, 1U);
  EXPECT_EQ(path, "/v2/models/50% net/a?b/infer");
}

TEST(Load, ReachesModelsWithSlashesInTheirNames) {
  for (const std::string name : {"50% net/a?b", "net/infer", "net/versions/1/config"}) {
    auto generation = payload_generation(small_deployment(500 * kOneMs, {{{4, {kOneMs}, {}}}}));
    ASSERT_TRUE(generation);
    auto model = std::make_shared<ServedModel>(*generation->models.front());
    model->name = name;
    generation->models.front() = model;
    InferService service;
    service.serve(std::move(generation));
    std::string unloaded;
    service.set_repository({.load = {},
                            .unload =
                                [&unloaded](const std::string& of, const auto& done) {
                                  unloaded = of;
                                  done({});
                                },
                            .index = {}});
    {
      const auto server = start_rest(service);
      ASSERT_TRUE(server.ok());
      LoadTarget target;
      target.port = (*server)->port();
      const auto status = [&target](const std::string& method, const std::string& path) {
        const auto answer = ask_http(target, method, path, "", 30);
        return answer.ok() ? answer->status : 0;
      };
      const auto models = load_models(target, {}, {.payload_bytes = 8, .shapes = {}, .seed = 1});
      ASSERT_TRUE(models.ok()) << models.error().to_string();
      const auto result = run_load(target, *models, steady(1, 1), {});
      ASSERT_TRUE(result.ok());
      EXPECT_EQ(result->statuses.count(200), 1U) << to_json(*result);
      const auto path = "/v2/models/" + percent_encode(name);
      for (const char* more : {"", "/config", "/versions/1"}) {
        const auto answer = ask_json(target, "GET", path + more, "", 30);
        ASSERT_TRUE(answer.ok()) << answer.error().to_string();
        EXPECT_EQ((*answer)["name"], name) << more;
      }
      EXPECT_EQ(status("GET", path + "/ready"), 200);
      EXPECT_EQ(status("GET", path + "/versions/2"), 404);
      EXPECT_EQ(status("GET", path + "/none"), 404);
      EXPECT_EQ(status("GET", "/v2/models/net%2Fa"), 404);
      EXPECT_EQ(status("POST", "/v2/repository/models/" + percent_encode(name) + "/unload"), 200);
      EXPECT_EQ(unloaded, name);
    }
    service.stop(1);
  }
}

// What a server sees of a session: each request, and how it was answered.
struct SeenStep {
  bool start = false, end = false;
  int status = 0;
};

TEST(Load, RequestsOfASessionAreSentOneAfterTheOther) {
  std::mutex mutex;
  std::map<std::string, std::vector<SeenStep>> sessions;
  std::map<std::string, int> under_way;
  std::vector<std::thread> threads;
  int n = 0;
  {
    const Stub stub([&](const HttpHead&, const HttpBody& body, const HttpReply& reply) {
      const auto parameters = (*parse_json(body.text()))["parameters"];
      const std::string id = parameters["sequence_id"];
      const std::lock_guard lock(mutex);
      const int status = n % 7 == 3 ? 504 : n % 11 == 5 ? 404 : 200;
      ++n;
      sessions[id].push_back({parameters["sequence_start"], parameters["sequence_end"], status});
      EXPECT_EQ(++under_way[id], 1) << id;
      threads.emplace_back([&mutex, &under_way, id, status, body, reply] {
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        const std::lock_guard answering(mutex);
        --under_way[id];
        reply.send(status == 200 ? answer_to(body) : http_error(status, "no"));
      });
    });
    LoadOptions options;
    options.sessions = 4;
    options.session_requests = 5;
    const auto result = run_load(stub.target, stateful_models(), steady(120, kOneMs / 4), options);
    for (auto& t : threads) t.join();
    ASSERT_TRUE(result.ok()) << result.error().to_string();
    EXPECT_EQ(result->counted.total.arrivals, 120U);
    EXPECT_EQ(result->statuses.at(200) + result->statuses.at(404) + result->statuses.at(504), 120U);
    uint64_t begun = 0;
    ASSERT_EQ(sessions.size(), 4U);
    for (const auto& [id, steps] : sessions) {
      ASSERT_EQ(steps.size(), 30U) << id;
      bool open = false;
      int length = 0;
      for (size_t i = 0; i < steps.size(); ++i) {
        const auto& s = steps[i];
        EXPECT_EQ(s.start, !open) << id << ", " << i;
        length = s.start ? 1 : length + 1;
        EXPECT_EQ(s.end, length == 5 || i == 29) << id << ", " << i;
        begun += s.start && s.status == 200;
        // A request that fails leaves a session as it was, which is unknown only of its last one.
        open = !s.end && s.status != 404 && (open || s.status == 200);
      }
    }
    EXPECT_EQ(result->sessions, begun);
    EXPECT_EQ(to_json(*result)["sessions"], begun);
  }
  LoadOptions with_standby;
  with_standby.standbys = {LoadTarget()};
  EXPECT_THAT(run_load({}, stateful_models(), steady(1, kOneMs), with_standby).error().message(),
              testing::HasSubstr("model 'm' keeps state, which standbys do not have"));
}

// The one connection is taken, so those behind it in the session are lost with it.
TEST(Load, ASessionThatHangsLosesWhatIsDueInIt) {
  std::mutex mutex;
  std::vector<HttpReply> kept;
  LoadOptions options;
  options.timeout_s = .3;
  options.sessions = 1;
  const Stub stub([&](const HttpHead&, const HttpBody&, const HttpReply& reply) {
    const std::lock_guard lock(mutex);
    kept.push_back(reply);
  });
  const auto result = run_load(stub.target, stateful_models(), steady(20, kOneMs), options);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->counted.total.failed, 20U);
  EXPECT_EQ(result->sessions, 0U);
  const std::lock_guard lock(mutex);
  kept.clear();
}

TEST(HttpRate, LimitsWhatIsPlannedForDevicesThatAreFaster) {
  auto d = small_deployment(500 * kOneMs, {{{1, {kOneMs}, {}}}});
  for (const double rate : {2000.0, 50e6}) {
    d.models[0].rate_per_s = rate;
    auto generation = payload_generation(d);
    ASSERT_TRUE(generation);
    InferService service;
    service.serve(std::move(generation));
    ASSERT_TRUE(limit_to_http_rate(service, {}).ok());
    const bool limited = rate > 2000;
    EXPECT_EQ(service.planned_rate("m") < rate, limited);
    EXPECT_GT(service.planned_rate("m"), 0);
    const auto status = service.status();
    EXPECT_DOUBLE_EQ(status["models"][0]["rate_per_s"], service.planned_rate("m"));
    EXPECT_EQ(status.contains("http_per_s"), limited);
    if (limited) {
      EXPECT_EQ(status["devices_per_s"], rate);
      EXPECT_THAT(pools_table(status), testing::HasSubstr("planned is what HTTP carries here"));
    }
    service.stop(1);
  }
}

// Server and client count the same, through all layers.
TEST(Load, AgreesWithTheServer) {
  const auto d = small_deployment(500 * kOneMs, {{{4, {5 * kOneMs}, {}}}});
  auto generation = payload_generation(d);
  ASSERT_TRUE(generation);
  InferService service;
  service.serve(std::move(generation));
  {
    Stub stub([&service](const HttpHead& head, HttpBody body, HttpReply reply) {
      answer_rest(service, head, body, reply);
    });
    const auto models = load_models(stub.target, {}, {.payload_bytes = 1000, .shapes = {}, .seed = 1});
    ASSERT_TRUE(models.ok()) << models.error().to_string();
    ASSERT_EQ(models->size(), 1U);
    EXPECT_EQ(models->front().slo_us, 500e3);
    EXPECT_EQ(models->front().body(0).tensors.size(), 1000U);
    EXPECT_FALSE(load_models(stub.target, std::vector<std::string>{"none"},
                             {.payload_bytes = 0, .shapes = {}, .seed = 1})
                     .ok());
    const auto arrivals = make_arrivals({}, std::vector<double>{300}, 1, 2);
    ASSERT_TRUE(arrivals.ok());
    const auto result = run_load(stub.target, *models, *arrivals, {});
    ASSERT_TRUE(result.ok());
    const auto& total = result->counted.total;
    EXPECT_EQ(total.arrivals, arrivals->size());
    EXPECT_EQ(total.in_time + total.late + total.dropped, arrivals->size());
    EXPECT_EQ(result->mismatched, 0U);
    const auto server = service.statistics("m");
    EXPECT_EQ(server.success.count, total.in_time + total.late);
    EXPECT_EQ(server.requests[static_cast<size_t>(Outcome::kDropped)], total.dropped);
    const auto json = to_json(*result);
    EXPECT_EQ(json["mismatched"], 0);
  }
  service.stop(1);
}

}  // namespace
}  // namespace heddle
