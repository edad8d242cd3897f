// Which of several servers leads, on a simulated clock.
#include "standby/leadership.h"

#include <gtest/gtest.h>

#include <atomic>

#include "simulated_test.h"
#include "support/memory_store.h"

namespace heddle {
namespace {

constexpr double kShortLease_s = .2;
constexpr int64_t kMs = 1'000'000;

class SimulatedLeadership : public testing::Test {
 protected:
  // Its clock begins in 1970 and goes by a nanosecond with each server.
  static std::unique_ptr<Leadership> server(const std::shared_ptr<MemoryStore>& store,
                                            const std::string& name) {
    static std::atomic<int64_t> now{0};
    return std::make_unique<Leadership>(store, name, kShortLease_s, [] { return ++now; });
  }
  static bool leads(Leadership& server) { return server.step().value(); }
};

TEST_F(SimulatedLeadership, TheFirstLeadsWhileItRenewsAndTheOthersWait) {
  in_simulation([] {
    const auto store = std::make_shared<MemoryStore>();
    const auto a = server(store, "a"), b = server(store, "b");
    EXPECT_TRUE(leads(*a));
    EXPECT_EQ(a->term(), 1U);
    for (int i = 0; i < 8; ++i) {
      EXPECT_FALSE(leads(*b));
      sleep_ns(50 * kMs);
      EXPECT_TRUE(leads(*a));
    }
    EXPECT_FALSE(leads(*b));
    EXPECT_EQ(b->leader(), "a");
    EXPECT_EQ(b->term(), 0U);
  });
}

TEST_F(SimulatedLeadership, ASilentLeaderIsReplacedAndLearnsOfIt) {
  in_simulation([] {
    const auto store = std::make_shared<MemoryStore>();
    const auto a = server(store, "a"), b = server(store, "b"), c = server(store, "c");
    ASSERT_TRUE(leads(*a));
    ASSERT_TRUE(eventually([&] { return leads(*b); }));
    EXPECT_EQ(b->term(), 2U);
    EXPECT_FALSE(leads(*c));
    EXPECT_FALSE(leads(*a));
    EXPECT_TRUE(a->lost());
    EXPECT_EQ(a->leader(), "b");
    EXPECT_FALSE(leads(*a));  // for good
    EXPECT_TRUE(leads(*b));
  });
}

TEST_F(SimulatedLeadership, ALeaderThatEndsIsReplacedAtOnce) {
  in_simulation([] {
    const auto store = std::make_shared<MemoryStore>();
    auto a = server(store, "a");
    const auto b = server(store, "b");
    ASSERT_TRUE(leads(*a));
    ASSERT_FALSE(leads(*b));
    a.reset();
    EXPECT_TRUE(leads(*b));
    EXPECT_EQ(b->term(), 2U);
  });
}

TEST_F(SimulatedLeadership, ALostAnswerIsNoLostLease) {
  in_simulation([] {
    const auto store = std::make_shared<MemoryStore>();
    const auto a = server(store, "a");
    ASSERT_TRUE(leads(*a));
    store->loses_answer = true;
    EXPECT_FALSE(a->step().ok());
    EXPECT_TRUE(leads(*a));
  });
}

TEST_F(SimulatedLeadership, AStoreThatIsAwayEndsNoTerm) {
  in_simulation([] {
    const auto store = std::make_shared<MemoryStore>();
    const auto a = server(store, "a");
    ASSERT_TRUE(leads(*a));
    std::atomic<int> away = 0, back = 0;
    a->keep([](const std::string&) { FAIL(); },
            [&](const std::string& error) { ++(error.empty() ? back : away); });
    store->away = true;
    EXPECT_TRUE(eventually([&] { return away == 1; }));
    store->away = false;
    EXPECT_TRUE(eventually([&] { return back == 1; }));
    EXPECT_FALSE(a->lost());
  });
}

TEST_F(SimulatedLeadership, AnOutageOfTheStoreIsNoSilenceOfTheLeader) {
  in_simulation([] {
    const auto store = std::make_shared<MemoryStore>();
    const auto a = server(store, "a"), b = server(store, "b");
    ASSERT_TRUE(leads(*a));
    ASSERT_FALSE(leads(*b));
    store->away = true;
    for (int i = 0; i < 8; ++i) {
      EXPECT_FALSE(a->step().ok());
      EXPECT_FALSE(b->step().ok());
      sleep_ns(50 * kMs);
    }
    store->away = false;
    EXPECT_FALSE(leads(*b));  // although the lease is older than its length
    EXPECT_TRUE(leads(*a));
    ASSERT_TRUE(eventually([&] { return leads(*b); }));  // a is silent from here on
  });
}

TEST_F(SimulatedLeadership, AStoreThatHasLostItsEntriesKeepsTheLeader) {
  in_simulation([] {
    const auto store = std::make_shared<MemoryStore>();
    const auto a = server(store, "a"), b = server(store, "b");
    ASSERT_TRUE(leads(*a));
    ASSERT_FALSE(leads(*b));
    store->forget();
    EXPECT_FALSE(leads(*b));
    EXPECT_TRUE(leads(*a));
    EXPECT_TRUE(leads(*a));
    EXPECT_FALSE(leads(*b));
    store->forget();
    ASSERT_TRUE(eventually([&] { return leads(*b); }));
    EXPECT_EQ(b->term(), 2U);
  });
}

TEST_F(SimulatedLeadership, OfTwoServersOfOneNameOneLeads) {
  in_simulation([] {
    const auto store = std::make_shared<MemoryStore>();
    const auto a = server(store, "same"), b = server(store, "same");
    ASSERT_TRUE(leads(*a));
    store->forget();
    ASSERT_TRUE(leads(*b));
    EXPECT_EQ(b->term(), a->term());
    EXPECT_FALSE(leads(*a));
    EXPECT_TRUE(a->lost());
    EXPECT_TRUE(leads(*b));
  });
}

// Workers remember the newest term. After the servers' store was emptied, the first leader's must not be older.
TEST_F(SimulatedLeadership, TermsGrowThoughTheStoreIsEmptied) {
  in_simulation([] {
    const auto store = std::make_shared<MemoryStore>();
    static constexpr int64_t kMinute = 60'000'000'000;
    const auto at = [&](int64_t (*clock)()) {
      return std::make_unique<Leadership>(store, "a", kShortLease_s, clock);
    };
    auto first = at([] { return 1000 * kMinute; });
    ASSERT_TRUE(leads(*first));
    EXPECT_EQ(first->term(), 1000U);
    first.reset();
    auto second = at([] { return 1000 * kMinute; });
    ASSERT_TRUE(leads(*second));
    EXPECT_EQ(second->term(), 1001U);
    second.reset();
    store->forget();
    const auto third = at([] { return 1002 * kMinute; });
    ASSERT_TRUE(leads(*third));
    EXPECT_EQ(third->term(), 1002U);
  });
}

TEST_F(SimulatedLeadership, OneOfManyStandbysTakesOver) {
  in_simulation([] {
    const auto store = std::make_shared<MemoryStore>();
    auto a = server(store, "a");
    ASSERT_TRUE(leads(*a));
    std::atomic<int> leaders = 0;
    std::vector<std::unique_ptr<Leadership>> standbys;
    for (int i = 0; i < 6; ++i) standbys.push_back(server(store, "s" + std::to_string(i)));
    std::vector<Thread> threads;
    const CancelToken cancel;
    for (auto& standby : standbys)
      threads.emplace_back([&leaders, &cancel, s = standby.get()] {
        if (!s->wait(cancel, [](const std::string&) {}).ok()) return;
        ++leaders;
        s->keep([](const std::string&) {}, [](const std::string&) {});
      });
    EXPECT_TRUE(eventually([&] { return leaders == 1; }));
    sleep_ns(600 * kMs);
    EXPECT_EQ(leaders, 1);
    cancel.cancel();
    for (auto& t : threads) t.join();
    EXPECT_FALSE(leads(*a));
  });
}

// The folder or bucket is shared: what stands there may be damaged, or another program's.
TEST_F(SimulatedLeadership, ALeaseThatIsNoneIsRefusedWithWhatIsWrong) {
  in_simulation([] {
    const auto refused = [](const std::string& lease) {
      const auto store = std::make_shared<MemoryStore>();
      EXPECT_TRUE(store->set("leader", lease, 0).ok());
      const auto led = server(store, "a")->step();
      return led.ok() ? "" : led.error().to_string();
    };
    const auto with = [](const std::string& text, const std::string& part) {
      return text.find("a lease that this program does not read") != std::string::npos &&
             text.find(part) != std::string::npos;
    };
    EXPECT_PRED2(with, refused("{"), "");
    EXPECT_PRED2(with, refused(R"({"name": "b"})"), "term");
    EXPECT_PRED2(with, refused(R"({"term": 7, "name": 5})"), "name");
    EXPECT_PRED2(with, refused(R"({"term": 7, "released": "no"})"), "released");
    EXPECT_PRED2(with, refused(R"({"term": 18446744073709551615, "released": true})"),
                 "has the term 18446744073709551615, and the last one is 2147483647");
    EXPECT_EQ(refused(R"({"term": 7, "released": true, "of_a_later_version": 1})"), "");
  });
}

TEST_F(SimulatedLeadership, TheLastTermIsHeldAndNobodyFollows) {
  in_simulation([] {
    const auto store = std::make_shared<MemoryStore>();
    EXPECT_TRUE(store->set("leader", R"({"term": 2147483646, "released": true})", 0).ok());
    {
      const auto a = server(store, "a");
      EXPECT_TRUE(leads(*a));
      EXPECT_EQ(a->term(), 2147483647U);
      EXPECT_TRUE(leads(*a)) << "it renews its lease";
    }
    const auto next = server(store, "b")->step();
    const std::string why = next.ok() ? "" : next.error().to_string();
    EXPECT_NE(why.find("after which there is none"), std::string::npos) << why;
  });
}

}  // namespace
}  // namespace heddle
