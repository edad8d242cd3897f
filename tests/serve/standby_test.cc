// Several servers of one fleet: what is kept for a successor, and a takeover under load.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "heddle/serve/load.h"
#include "nats_server.h"
#include "standby/server_state.h"
#include "standby/shared_store.h"
#include "standby_servers.h"
#include "support/memory_store.h"

namespace heddle {
namespace {

using testing::HasSubstr;

void expect_compare_and_set(SharedStore& store) {
  EXPECT_EQ(store.get("k").value().revision, 0U);
  const auto first = store.set("k", "one\ntwo", 0).value();
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(store.set("k", "other", 0).value().has_value());
  EXPECT_EQ(store.get("k").value().value, "one\ntwo");
  EXPECT_EQ(store.get("k").value().revision, *first);
  const auto second = store.set("k", "", *first).value();
  ASSERT_TRUE(second.has_value());
  EXPECT_GT(*second, *first);
  EXPECT_FALSE(store.set("k", "late", *first).value().has_value());
  EXPECT_EQ(store.get("k").value().value, "");
}

TEST(SharedStores, AFolderComparesAndSets) {
  const ServeFolder folder;
  expect_compare_and_set(*folder_store(folder.file("state")).value());
  // Another process sees the same.
  const auto other = folder_store(folder.file("state")).value();
  const auto revision = other->get("k").value().revision;
  EXPECT_GT(revision, 1U);
  // A file that a server has left which died while it wrote is in nobody's way.
  std::ofstream(folder.file("state/k." + std::to_string(revision + 1) + ".0.tmp")) << "half a val";
  EXPECT_EQ(other->set("k", "whole", revision).value(), revision + 1);
  EXPECT_EQ(other->get("k").value().value, "whole");
  for (uint64_t r = revision + 1; r < revision + 20; ++r)
    EXPECT_EQ(other->set("k", "whole", r).value(), r + 1);
  const std::filesystem::directory_iterator left(folder.file("state"));
  EXPECT_EQ(std::distance(begin(left), end(left)), 8) << "older files are removed";
}

TEST(SharedStores, AFolderOfEarlierServersIsTakenOver) {
  const ServeFolder folder;
  const auto store = folder_store(folder.file("state")).value();
  std::ofstream(folder.file("state/k")) << "17\nearlier";
  EXPECT_EQ(store->get("k").value().value, "earlier");
  EXPECT_EQ(store->set("k", "now", 17).value(), 18U);
  EXPECT_EQ(store->get("k").value().value, "now");
}

TEST(SharedStores, NatsComparesAndSets) {
  const NatsServer nats;
  if (!nats.available()) GTEST_SKIP() << "no NATS server, or a program without its client";
  std::shared_ptr<SharedStore> store;
  ASSERT_TRUE(eventually([&] {
    auto opened = nats_store(nats.url(), "state");
    if (opened.ok()) store = *opened;
    return opened.ok();
  }));
  expect_compare_and_set(*store);
}

TEST(SharedStores, BadPlacesAreNamed) {
  const ServeFolder folder;
  std::ofstream(folder.file("file")) << "no folder";
  EXPECT_THAT(open_shared_store(folder.file("file"), "").error().to_string(), HasSubstr("expected a folder"));
  EXPECT_FALSE(open_shared_store(folder.file("a/b/c"), "").ok());
  const auto store = folder_store(folder.file("state")).value();
  std::ofstream(folder.file("state/k.3")) << "what is this?";
  EXPECT_THAT(store->get("k").error().to_string(), HasSubstr("state/k.3"));
  EXPECT_FALSE(store->set("k", "v", 0).value().has_value()) << "revision 3 is there";
}

TEST(ServerStates, AStateIsOfOneFleetFileAndOfOneLeader) {
  const auto store = std::make_shared<MemoryStore>();
  ServerState a(store), b(store);
  EXPECT_EQ(a.load(1, 1).value(), "");
  EXPECT_TRUE(a.save(1, "first", 1).ok());
  EXPECT_TRUE(a.save(1, "second", 1).ok());
  EXPECT_EQ(b.load(1, 2).value(), "second");
  // Whoever took over has seen the last state that the one before could save.
  EXPECT_EQ(a.save(1, "late", 1).error().code(), Code::kCancelled);
  EXPECT_EQ(a.load(1, 1).error().code(), Code::kCancelled);
  EXPECT_EQ(b.load(2, 2).value(), "");  // the file was changed since
  EXPECT_TRUE(b.save(2, "third", 2).ok());
  EXPECT_EQ(a.load(2, 3).value(), "third");
}

TEST(ServerStates, AStateFromBeforeTermsIsRead) {
  const auto store = std::make_shared<MemoryStore>();
  ASSERT_TRUE(store->set("state", "7\nas it was", 0).ok());
  ServerState a(store);
  EXPECT_EQ(a.load(7, 1).value(), "as it was");
  EXPECT_EQ(a.load(7, 2).value(), "as it was");
  ASSERT_TRUE(store->set("state", "no hash", store->get("state")->revision).ok());
  EXPECT_EQ(a.load(7, 3).error().code(), Code::kInvalidInput);
}

// Carries a write out and says that it did not.
class LosesAnswers final : public SharedStore {
 public:
  explicit LosesAnswers(std::shared_ptr<SharedStore> store) : store_(std::move(store)) {}
  Result<Entry> get(const std::string& key) override { return store_->get(key); }
  Result<std::optional<uint64_t>> set(const std::string& key, const std::string& value,
                                      uint64_t revision) override {
    auto done = store_->set(key, value, revision);
    if (loses) return io_error("the store does not answer");
    return done;
  }
  bool loses = false;

 private:
  const std::shared_ptr<SharedStore> store_;
};

TEST(ServerStates, AWriteWithoutAnAnswerIsNoOtherServers) {
  const auto store = std::make_shared<LosesAnswers>(std::make_shared<MemoryStore>());
  ServerState a(store);
  ASSERT_EQ(a.load(1, 1).value(), "");
  store->loses = true;
  EXPECT_EQ(a.save(1, "first", 1).error().code(), Code::kIo);
  store->loses = false;
  EXPECT_TRUE(a.save(1, "second", 1).ok());
  EXPECT_EQ(a.load(1, 1).value(), "second");
}

class StandbyProgram : public StandbyServers {};

TEST_F(StandbyProgram, AKilledServerIsReplacedWithoutALostRequest) {
  auto first = server(0);
  const auto workers = worker("w", {0, 1});
  ASSERT_TRUE(eventually([] { return ready(0); }));
  auto second = server(1);
  ASSERT_TRUE(eventually([] { return status_of(1, "/v2/health/live") == 200; }));
  EXPECT_EQ(status_of(1, "/v2/health/ready"), 503);
  EXPECT_EQ(status_of(1, "/v2/status"), 503);
  // What was changed while it ran is there afterwards, too.
  const auto drained = ask_http(target(0), "POST", "/v2/fleet/drain", R"({"change": {"front": 1}})", 10);
  ASSERT_TRUE(drained.ok());
  EXPECT_EQ(drained->status, 200) << drained->body;

  const auto models = load_models(target(0), {}, {.payload_bytes = 1000});
  ASSERT_TRUE(models.ok()) << models.error().to_string();
  std::vector<Arrival> arrivals;
  for (int i = 0; i < 120; ++i) arrivals.push_back({.at = i * kNsPerSecond / 20, .model = 0});
  LoadOptions options;
  options.standbys = {target(1)};
  std::jthread killer([&] {
    EXPECT_TRUE(eventually([] {
      const auto now = ask_json(target(0), "GET", "/v2/status", "", 5);
      return now.ok() && (*now)["models"][0]["requests"]["in_time"] >= 20;
    }));
    first->signal(SIGKILL);
  });
  const auto load = run_load(target(0), *models, arrivals, options);
  ASSERT_TRUE(load.ok()) << load.error().to_string();
  EXPECT_EQ(load->counted.total.arrivals, 120U);
  EXPECT_EQ(load->counted.total.failed, 0U) << to_json(*load).dump(1);
  EXPECT_EQ(load->statuses.at(200) + (load->statuses.contains(504) ? load->statuses.at(504) : 0), 120U);
  EXPECT_GT(load->resent, 0U);
  EXPECT_TRUE(ready(1));
  const auto status = ask_json(target(1), "GET", "/v2/status", "", 5);
  ASSERT_TRUE(status.ok());
  EXPECT_EQ((*status)["drained"]["front"], 1) << status->dump(1);
}

TEST_F(StandbyProgram, AStoppedServerStandsByForItsSuccessor) {
  auto first = server(0);
  const auto workers = worker("w", {0, 1});
  ASSERT_TRUE(eventually([] { return ready(0); }));
  const auto term = [] {
    const auto status = ask_json(target(0), "GET", "/v2/status", "", 5);
    return status.ok() ? (*status)["leader"]["term"].get<int64_t>() : 0;
  };
  const auto of_first = term();
  EXPECT_GT(of_first, 0);
  auto second = server(1);
  ASSERT_TRUE(eventually([] { return status_of(1, "/v2/health/live") == 200; }));
  first->signal(SIGSTOP);
  ASSERT_TRUE(eventually([] { return ready(1); }));
  first->signal(SIGCONT);
  ASSERT_TRUE(eventually([] { return status_of(0, "/v2/health/ready") == 503; }));
  EXPECT_TRUE(ready(1));
  // The worker is the successor's.
  const auto status = ask_json(target(1), "GET", "/v2/status", "", 5);
  ASSERT_TRUE(status.ok());
  EXPECT_EQ((*status)["workers"][0]["state"], "connected") << status->dump(1);
  second->signal(SIGKILL);
  ASSERT_TRUE(eventually([] { return ready(0); }));
  EXPECT_EQ(term(), of_first + 2);
}

TEST_F(StandbyProgram, ASuccessorServesWithTheWorkersThatAreThere) {
  auto first = server(0);
  const auto stays = worker("stays", {0, 1}, "front=1,back=1");
  auto goes = worker("goes", {0, 1}, "front=1,back=1");
  ASSERT_TRUE(eventually([] { return ready(0); }));
  auto second = server(1);
  ASSERT_TRUE(eventually([] { return status_of(1, "/v2/health/live") == 200; }));
  goes->signal(SIGKILL);
  first->signal(SIGKILL);
  ASSERT_TRUE(eventually([] { return ready(1); }));
  const auto models = load_models(target(1), {}, {.payload_bytes = 1000}).value();
  EXPECT_EQ(run_load(target(1), models, std::vector<Arrival>{{}}, {}).value().statuses.at(200), 1U);
}

TEST_F(StandbyProgram, ServersAndWorkersWaitForABusThatIsAway) {
  NatsServer nats;
  if (!nats.available()) GTEST_SKIP() << "no NATS server, or a program without its client";
  ASSERT_NE(nats.bus({}), nullptr);
  bus_ = nats.url();
  const auto first = server(1), second = server(2);
  const auto stays = worker("stays", {}, "front=1,back=1");
  auto goes = worker("goes", {}, "front=1,back=1");
  const auto one_is_ready = [] { return ready(1) || ready(2); };
  ASSERT_TRUE(eventually(one_is_ready));
  nats.kill();
  goes->signal(SIGKILL);
  goes = worker("goes", {}, "front=1,back=1");  // before the bus is there
  const auto third = server(3);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  nats.start();
  ASSERT_TRUE(eventually([&] {
    for (const int number : {1, 2}) {
      const auto status = ask_json(target(number), "GET", "/v2/status", "", 5);
      if (!status.ok()) continue;
      size_t connected = 0;
      for (const auto& w : (*status)["workers"]) connected += w["state"] == "connected";
      if (connected == 2) return true;
    }
    return false;
  }));
  EXPECT_TRUE(eventually([] { return status_of(3, "/v2/health/ready") == 503; }));
}

}  // namespace
}  // namespace heddle
