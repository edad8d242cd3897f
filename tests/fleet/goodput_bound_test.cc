// The bound on requests in time: never below what a scheduler serves, and close to what a clairvoyant one could.
#include "heddle/fleet/goodput_bound.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "data_plane_support.h"
#include "heddle/fleet/simulator.h"

namespace heddle {
namespace {

double bound_of(const Deployment& d, const std::vector<Arrival>& arrivals,
                const GoodputBoundOptions& options = {}) {
  const auto bound = goodput_bound(d, arrivals, options);
  EXPECT_TRUE(bound.ok()) << bound.error().to_string();
  double in_time = 0;
  for (const auto& part : bound->parts) in_time += part.in_time;
  return in_time;
}

// The most requests that one pool answers in time if all arrivals are known: every sequence of batches, each on the device
// that is free first. Exponential.
struct Clairvoyant {
  const std::vector<Arrival>& arrivals;
  TimeNs slo;
  const std::vector<TimeNs>& run_ns;

  size_t best(std::vector<TimeNs> free, uint32_t left) const {
    size_t most = 0;
    for (uint32_t batch = left; batch != 0; batch = (batch - 1) & left) {
      const auto size = static_cast<size_t>(__builtin_popcount(batch));
      if (size > run_ns.size()) continue;
      const auto device = std::min_element(free.begin(), free.end());
      TimeNs start = *device, deadline = kNever;
      for (size_t i = 0; i < arrivals.size(); ++i) {
        if ((batch >> i & 1) == 0) continue;
        start = std::max(start, arrivals[i].at);
        deadline = std::min(deadline, arrivals[i].at + slo);
      }
      const TimeNs end = start + run_ns[size - 1];
      if (end > deadline) continue;
      auto then = free;
      then[static_cast<size_t>(device - free.begin())] = end;
      most = std::max(most, size + best(std::move(then), left & ~batch));
    }
    return most;
  }
};

TEST(GoodputBound, IsNeverBelowTheBestScheduleAndCloseToIt) {
  Random random(7);
  double bounds = 0, served = 0;
  for (int i = 0; i < 150; ++i) {
    std::vector<TimeNs> run_ns = {10 * kMilli};
    if (i % 2 == 1) run_ns.push_back(static_cast<TimeNs>(12 + random.below(7)) * kMilli);
    const auto devices = 1 + static_cast<uint32_t>(random.below(2));
    const TimeNs slo = static_cast<TimeNs>(12 + random.below(20)) * kMilli;
    const auto d = small_deployment(slo, {{{devices, run_ns, {}}}});
    std::vector<Arrival> arrivals;
    for (int a = 0; a < 6; ++a) arrivals.push_back({static_cast<TimeNs>(random.below(30)) * kMilli, 0});
    std::sort(arrivals.begin(), arrivals.end(), [](auto& a, auto& b) { return a.at < b.at; });
    const size_t best = Clairvoyant{arrivals, slo, run_ns}.best(std::vector<TimeNs>(devices, 0), 63);
    const double bound = bound_of(d, arrivals);
    EXPECT_GE(bound + 1e-6, static_cast<double>(best)) << "instance " << i;
    bounds += bound;
    served += static_cast<double>(best);
  }
  EXPECT_LE(bounds, 1.1 * served);
}

TEST(GoodputBound, CountsWholeRunsInShortIntervals) {
  // A run takes 10 ms, as long as the deadline allows. Of two that arrive 5 ms apart one device serves one.
  const auto d = small_deployment(10 * kMilli, {{{1, {10 * kMilli}, {}}}});
  std::vector<Arrival> arrivals;
  for (int i = 0; i < 9; ++i) arrivals.push_back({5 * i * kMilli, 0});
  EXPECT_NEAR(bound_of(d, arrivals), 5, 1e-3);
}

TEST(GoodputBound, NoSchedulerExceedsItOnRandomFleets) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    const auto d = random_deployment(random);
    std::vector<Arrival> arrivals;
    TimeNs at = 0;
    for (int i = 0; i < 400; ++i) {
      at += static_cast<TimeNs>(random.below(200)) * kNsPerUs;
      arrivals.push_back({at, static_cast<uint32_t>(random.below(d.models.size()))});
    }
    for (const int64_t variables : {40, 4000}) {
      const auto bound = goodput_bound(d, arrivals, {.variables = variables});
      ASSERT_TRUE(bound.ok()) << bound.error().to_string();
      for (const auto scheduler :
           {SchedulerKind::kReservation, SchedulerKind::kBusyUntil, SchedulerKind::kReactive}) {
        const auto result = simulate(d, arrivals, {.scheduler = scheduler});
        ASSERT_TRUE(result.ok()) << result.error().to_string();
        for (const auto& part : bound->parts) {
          uint64_t in_time = 0;
          for (const uint32_t m : part.models) in_time += result->models[m].requests.in_time;
          EXPECT_GE(part.in_time + 1e-6, static_cast<double>(in_time)) << "seed " << seed;
        }
      }
    }
  }
}

TEST(GoodputBound, ModelsThatShareAPoolAreBoundedTogether) {
  auto d = small_deployment(20 * kMilli, {{{1, {10 * kMilli}, {}}}});
  d.models.push_back({"other", 20 * kMilli, 1000, {1}});
  d.pipelines.push_back(d.pipelines[0]);
  d.pipelines[1].model = 1;
  d.pipelines[1].partitions[0].role.model = "other";
  ASSERT_TRUE(check_deployment(d).ok());
  const std::vector<Arrival> arrivals = {{0, 0}, {0, 0}, {0, 1}, {0, 1}};
  const auto bound = goodput_bound(d, arrivals);
  ASSERT_TRUE(bound.ok());
  ASSERT_EQ(bound->parts.size(), 1U);
  EXPECT_EQ(bound->parts[0].models, (std::vector<uint32_t>{0, 1}));
  EXPECT_NEAR(bound->parts[0].in_time, 2, 1e-3);
}

TEST(GoodputBound, RefusesWhatItCannotBound) {
  const auto d = small_deployment(20 * kMilli, {{{1, {10 * kMilli}, {}}}});
  EXPECT_FALSE(goodput_bound(d, std::vector<Arrival>{{5, 0}, {4, 0}}).ok());
  EXPECT_FALSE(goodput_bound(d, std::vector<Arrival>{{5, 1}}).ok());
  EXPECT_EQ(goodput_bound(d, {})->share(), 1);
}

}  // namespace
}  // namespace heddle
