#include "heddle/base/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include "heddle/base/sync.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

ThreadSimulationOptions seeded(uint64_t seed) {
  ThreadSimulationOptions options;
  options.seed = seed;
  options.switching = 1;
  return options;
}

// Two threads that append to a text under a lock, with a pause between.
std::string two_writers(uint64_t seed, uint64_t* digest = nullptr) {
  std::string text;
  Simulation simulation(seeded(seed));
  const auto status = simulation.run([&text] {
    Mutex mutex;
    const auto write = [&text, &mutex](char c) {
      for (int i = 0; i < 5; ++i) {
        const std::lock_guard lock(mutex);
        text += c;
      }
    };
    Thread a([&] { write('a'); }), b([&] { write('b'); });
    a.join();
    b.join();
  });
  EXPECT_TRUE(status.ok());
  if (digest != nullptr) *digest = simulation.digest();
  return text;
}

TEST(SimulatedThreads, TheSeedAloneDecidesTheirOrder) {
  std::set<std::string> orders;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    uint64_t first = 0, second = 0;
    const auto order = two_writers(seed, &first);
    EXPECT_EQ(order, two_writers(seed, &second));
    EXPECT_EQ(first, second);
    EXPECT_EQ(std::count(order.begin(), order.end(), 'a'), 5);
    EXPECT_EQ(std::count(order.begin(), order.end(), 'b'), 5);
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 10u);
}

TEST(SimulatedThreads, TheClockJumpsToTheNextTimer) {
  Simulation simulation(seeded(1));
  std::vector<int> woken;
  const auto status = simulation.run([&woken] {
    const auto begun = steady_ns();
    const auto begun_wall = wall_ns();
    Thread late([&woken] { sleep_ns(3'600'000'000'000 / 100), woken.push_back(2); });
    Thread soon([&woken] { sleep_ns(1'000'000), woken.push_back(1); });
    late.join();
    soon.join();
    EXPECT_NEAR(static_cast<double>(steady_ns() - begun), 36e9, 1e5);
    EXPECT_EQ(wall_ns() - begun_wall, steady_ns() - begun);
  });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(woken, (std::vector<int>{1, 2}));
}

TEST(SimulatedThreads, ALockIsHeldByOneAndSharedByMany) {
  Simulation simulation(seeded(3));
  int readers = 0, most = 0, writers = 0;
  const auto status = simulation.run([&] {
    SharedMutex mutex;
    std::vector<Thread> threads;
    for (int i = 0; i < 6; ++i)
      threads.emplace_back([&, i] {
        if (i % 3 == 0) {
          const std::unique_lock lock(mutex);
          EXPECT_EQ(++writers, 1);
          EXPECT_EQ(readers, 0);
          sleep_ns(1000);
          --writers;
        } else {
          const std::shared_lock lock(mutex);
          most = std::max(most, ++readers);
          EXPECT_EQ(writers, 0);
          sleep_ns(1000);
          --readers;
        }
      });
    for (auto& t : threads) t.join();
  });
  EXPECT_TRUE(status.ok());
  EXPECT_GT(most, 1);
}

TEST(SimulatedThreads, ALostNotificationIsFoundWhenNobodyCanGoOn) {
  int found = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Simulation simulation(seeded(seed));
    const auto status = simulation.run([] {
      struct Box {
        Mutex mutex;
        Condition changed;
        bool full = false;
      };
      // On the heap: threads that cannot go on keep their references.
      auto* const box = new Box;
      Thread taker([box] {
        bool full;
        {
          const std::lock_guard lock(box->mutex);
          full = box->full;
        }
        std::unique_lock lock(box->mutex);
        if (!full) box->changed.wait(lock);  // the box may have been filled between the two locks
      });
      {
        const std::lock_guard lock(box->mutex);
        box->full = true;
      }
      box->changed.notify_all();
      taker.join();
      delete box;
    });
    if (status.ok()) continue;
    EXPECT_THAT(status.error().to_string(), HasSubstr("no thread can go on"));
    ++found;
  }
  EXPECT_GT(found, 0);
  EXPECT_LT(found, 50);
}

TEST(SimulatedThreads, AProcessThatStandsStillGoesOnLater) {
  Simulation simulation(seeded(1));
  int64_t at = 0;
  const auto status = simulation.run([&] {
    const auto process = simulation.new_process("other");
    simulation.start(process, [&] {
      sleep_ns(1'000'000);
      at = steady_ns();
    });
    const int64_t until = steady_ns() + 50'000'000;
    simulation.freeze(process, until);
    while (at == 0) sleep_ns(1'000'000);
    EXPECT_GE(at, until);
  });
  EXPECT_TRUE(status.ok());
}

// A look finds a lock that nobody has, gives way to one that somebody has, and lets no other thread go on.
TEST(SimulatedThreads, ALookChangesNothing) {
  Simulation simulation(seeded(3));
  const auto status = simulation.run([&] {
    Mutex mutex;
    int counted = 0, seen = -1;
    const auto read = [&] {
      const std::lock_guard lock(mutex);
      seen = counted;
    };
    Thread other([&] {
      for (int i = 0; i < 3; ++i) {
        const std::lock_guard lock(mutex);
        ++counted;
        sleep_ns(10);
      }
    });
    int looks = 0, refused = 0;
    while (counted < 3) {
      const int before = counted;
      const auto digest = simulation.digest();
      if (simulation.look(read)) {
        ++looks;
        EXPECT_EQ(seen, before);
      } else {
        ++refused;
      }
      EXPECT_EQ(counted, before);
      EXPECT_EQ(simulation.digest(), digest);
      sleep_ns(3);
    }
    other.join();
    EXPECT_TRUE(simulation.look(read));
    EXPECT_EQ(seen, 3);
    EXPECT_GT(looks, 0);
    EXPECT_GT(refused, 0);
  });
  EXPECT_TRUE(status.ok()) << status.error().to_string();
}

TEST(SimulatedThreads, OneIsHeldUpBetweenTwoOfItsSteps) {
  Simulation simulation({.seed = 4, .switching = 0});
  const auto status = simulation.run([&] {
    const int64_t until = simulation.now() + 1'000'000;
    Mutex mutex;
    simulation.hold_up_here(2, until);
    mutex.lock();
    EXPECT_LT(simulation.now(), until);
    mutex.unlock();
    mutex.lock();
    EXPECT_GE(simulation.now(), until);
    mutex.unlock();
  });
  EXPECT_TRUE(status.ok()) << status.error().to_string();
}

TEST(SimulatedThreads, AFailureAndARunWithoutEndAreErrors) {
  Simulation failing(seeded(1));
  const auto failed = failing.run([&failing] {
    Thread t([&failing] { failing.fail("it broke"); });
    t.join();
  });
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().to_string(), HasSubstr("it broke"));
  auto options = seeded(1);
  options.longest_ns = 5'000'000'000;
  Simulation endless(options);
  const auto stuck = endless.run([] {
    for (;;) sleep_ns(1'000'000'000);
  });
  ASSERT_FALSE(stuck.ok());
  EXPECT_THAT(stuck.error().to_string(), HasSubstr("stuck"));
}

}  // namespace
}  // namespace heddle
