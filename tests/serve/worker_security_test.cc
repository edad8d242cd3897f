// Server and workers that encrypt and show each other a token; who does not is refused and named.
#include "heddle/serve/worker_security.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "certificate.h"
#include "heddle/serve/bus.h"
#include "heddle/serve/load.h"
#include "heddle/serve/worker.h"
#include "heddle/serve/worker_pool.h"
#include "model_files.h"
#include "serve_process.h"

namespace heddle {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Secured : public testing::Test {
 protected:
  void SetUp() override {
    if (!certificate_.made() || !other_.made()) GTEST_SKIP() << "the openssl tool makes no certificate here";
    token_ = folder_.write("token", "a fleet's own token\n");
    wrong_ = folder_.write("wrong", "another one's token\n");
  }
  static WorkerSecurity security(const std::string& certificate, const std::string& key,
                                 const std::string& trusted, const std::string& token) {
    auto made = read_worker_security(certificate, key, trusted, token);
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    return made.ok() ? *made : WorkerSecurity();
  }
  // A server's registry and pool, and one worker: is it connected, or else why not?
  std::string connects(const WorkerSecurity& server, const WorkerSecurity& worker) {
    auto bus = in_process_bus({.lease_s = .2});
    EXPECT_TRUE(bus.ok());
    const std::shared_ptr<WorkerBus> shared = std::move(*bus);
    const auto registry =
        WorkerRegistry::start("127.0.0.1", 0, *shared, server, [this](const std::string& line) {
          const std::lock_guard lock(mutex_);
          lines_.push_back(line);
        });
    EXPECT_TRUE(registry.ok());
    WorkerPoolOptions options;
    options.security = server;
    const auto pool = WorkerPool::create(shared, options);
    const auto announcer = registry_announcer("127.0.0.1:" + std::to_string((*registry)->port()), worker);
    EXPECT_TRUE(pool.ok() && announcer.ok());
    WorkerOptions mine;
    mine.name = "w";
    mine.devices = {{"c", 1}};
    mine.security = worker;
    const auto started = Worker::start(mine, **announcer);
    EXPECT_TRUE(started.ok());
    std::string why;
    EXPECT_TRUE(eventually([&] {
      for (const auto& w : (*pool)->workers()) {
        if (w.state == "connected") return true;
        // The pool may list the worker before it has tried to connect.
        if (w.losses == 0 && w.state == "lost" && w.reason != "not connected yet") why = w.reason;
      }
      if (why.empty()) why = (*started)->counters().announcement_error;
      return !why.empty();
    }));
    return why;
  }

  const Certificate certificate_, other_;
  TestFolder folder_;
  std::string token_, wrong_;
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

TEST_F(Secured, ThoseThatShowTheSameConnect) {
  const auto plain = security("", "", "", token_);
  EXPECT_EQ(connects(plain, plain), "");
  const auto encrypted = security(certificate_.file(), certificate_.key(), "", token_);
  EXPECT_EQ(connects(encrypted, encrypted), "");
  // Each with a certificate of its own, which the other trusts.
  EXPECT_EQ(connects(security(certificate_.file(), certificate_.key(), other_.file(), token_),
                     security(other_.file(), other_.key(), certificate_.file(), token_)),
            "");
  EXPECT_TRUE(lines_.empty());
}

TEST_F(Secured, AWorkerWithoutTheTokenIsRefusedAndNamed) {
  const auto server = security(certificate_.file(), certificate_.key(), "", token_);
  for (const auto& token : {std::string(), wrong_}) {
    lines_.clear();
    EXPECT_THAT(connects(server, security(certificate_.file(), certificate_.key(), "", token)),
                AllOf(HasSubstr("refuses this worker"), HasSubstr("token")));
    const std::lock_guard lock(mutex_);
    ASSERT_EQ(lines_.size(), 1U) << "once, however often it tries";
    EXPECT_THAT(lines_[0], AllOf(HasSubstr("worker 'w' at ipv4:127.0.0.1"), HasSubstr("is refused")));
  }
}

TEST_F(Secured, WhoIsNotTrustedOrDoesNotEncryptIsNotHeard) {
  const auto server = security(certificate_.file(), certificate_.key(), "", token_);
  EXPECT_NE(connects(server, security("", "", "", token_)), "");
  EXPECT_NE(connects(server, security(other_.file(), other_.key(), "", token_)), "");
  // The worker trusts the server, which does not trust the worker.
  EXPECT_NE(connects(server, security(other_.file(), other_.key(), certificate_.file(), token_)), "");
}

TEST_F(Secured, FilesThatDoNotFitAreNamed) {
  const auto refusal = [](const std::string& certificate, const std::string& key, const std::string& trusted,
                          const std::string& token) {
    const auto made = read_worker_security(certificate, key, trusted, token);
    EXPECT_FALSE(made.ok());
    return made.ok() ? "" : made.error().to_string();
  };
  const auto file = certificate_.file(), key = certificate_.key();
  EXPECT_THAT(refusal(file, "", "", ""), HasSubstr("need each other"));
  EXPECT_THAT(refusal("", "", file, ""), HasSubstr("belong to encrypted connections"));
  EXPECT_THAT(refusal(file, other_.key(), "", ""), HasSubstr(file));
  EXPECT_THAT(refusal(file, key, token_, ""), HasSubstr(token_));
  EXPECT_THAT(refusal("", "", "", folder_.write("short", "abc\n")), HasSubstr("at least 8"));
  EXPECT_THAT(refusal("", "", "", folder_.path("gone")), HasSubstr("gone"));
}

// As a user: workers that the server starts itself show what it shows, one from elsewhere must.
TEST_F(Secured, ServedFleetsEncryptTheirWorkersConnections) {
  const int port = own_port();
  ServedFleet served(front_and_back(2),
                     {"--workers", "1", "--worker-port", std::to_string(port), "--tls-cert",
                      certificate_.file(), "--tls-key", certificate_.key(), "--worker-token-file", token_});
  ASSERT_TRUE(served.serves());
  const Process stranger({HEDDLE_PROGRAM, "worker", "--quiet", "--name", "stranger", "--connect",
                          "127.0.0.1:" + std::to_string(port), "--devices", "front=1", "--tls-cert",
                          certificate_.file(), "--tls-key", certificate_.key()});
  const Process friendly({HEDDLE_PROGRAM, "worker", "--quiet", "--name", "friendly", "--connect",
                          "127.0.0.1:" + std::to_string(port), "--devices", "front=1", "--tls-cert",
                          certificate_.file(), "--tls-key", certificate_.key(), "--token-file", token_});
  LoadTarget target;
  target.port = served.port();
  target.tls = *TlsContext::client(certificate_.file());
  const auto workers = [&target] {
    std::map<std::string, std::string> states;
    const auto answer = ask_http(target, "GET", "/v2/status", "", 20);
    const auto json = answer.ok() ? parse_json(answer->body) : Result<Json>(answer.error());
    if (json.ok())
      for (const auto& w : (*json)["workers"]) states[w["name"]] = w["state"];
    return states;
  };
  EXPECT_TRUE(eventually([&] { return workers()["friendly"] == "connected"; }));
  const auto seen = workers();
  EXPECT_EQ(seen.count("stranger"), 0U);
  EXPECT_EQ(seen.at("worker-0"), "connected");
}

}  // namespace
}  // namespace heddle
