// The store that every search keeps its best solution and bound in.
#include "core/incumbents.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

namespace heddle {
namespace {

TEST(Incumbents, KeepTheBestSolutionAndTheHighestBound) {
  const CancelToken closed;
  Incumbents<std::string> store(1e-6, closed);
  EXPECT_EQ(store.best(), nullptr);
  EXPECT_TRUE(std::isinf(store.value()));
  EXPECT_TRUE(store.prove(3, "paths"));
  EXPECT_TRUE(store.offer(9, "nine", "greedy"));
  const auto before = store.best();
  EXPECT_FALSE(store.offer(9, "again", "heft"));
  EXPECT_TRUE(store.offer(7, "seven", "annealing"));
  EXPECT_FALSE(store.prove(2, "area"));
  EXPECT_EQ(*before, "nine") << "what a search has read stays as it was";
  EXPECT_EQ(*store.best(), "seven");
  EXPECT_EQ(store.winner(), "annealing");
  EXPECT_EQ(store.proof().text(), "proven: paths");
  EXPECT_TRUE(store.is_open());
  EXPECT_FALSE(closed.cancelled());
  const auto seen = store.trajectory();
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_TRUE(std::isinf(seen[0].value_us));
  EXPECT_EQ(seen[2].value_us, 7);
  EXPECT_EQ(seen[2].bound_us, 3);
}

TEST(Incumbents, CloseOnceValueAndBoundMeet) {
  const CancelToken closed;
  Incumbents<int> store(1e-6, closed);
  store.offer(10, 0, "a");
  store.prove(10 - 1e-4, "close");
  EXPECT_FALSE(closed.cancelled());
  store.prove(10 - 1e-6, "closer");
  EXPECT_TRUE(closed.cancelled());
  EXPECT_FALSE(store.is_open());
}

TEST(Incumbents, TakeOffersFromManyThreads) {
  Incumbents<int> store(0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&store, t] {
      for (int i = 1000; i > 0; --i) {
        store.offer(i + t, i + t, "thread");
        store.prove(1.0 / i, "bound");
        EXPECT_GE(store.value(), 1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(store.value(), 1);
  EXPECT_EQ(*store.best(), 1);
}

}  // namespace
}  // namespace heddle
