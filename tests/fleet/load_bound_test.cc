// The bound on requests in time against schedules that know all arrivals, and against the data plane.
#include "heddle/fleet/load_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "data_plane_support.h"
#include "heddle/fleet/simulator.h"

namespace heddle {
namespace {

// The most requests of one model in time, over all orders of all batches. Each batch begins as early as those
// before it allow. Exact for pipelines of one partition: any schedule, its batches sorted by start, is among
// them.
class Clairvoyant {
 public:
  Clairvoyant(const Deployment& deployment, const std::vector<Arrival>& arrivals)
      : deployment_(deployment),
        arrivals_(arrivals),
        free_(deployment.devices.size() + 2 * deployment.num_servers, 0) {}
  uint64_t most() {
    search((1u << arrivals_.size()) - 1, 0);
    return best_;
  }

 private:
  void search(uint32_t left, uint64_t served) {
    best_ = std::max(best_, served);
    if (served + static_cast<uint64_t>(std::popcount(left)) <= best_) return;
    for (const auto& pipeline : deployment_.pipelines)
      for (uint32_t set = left; set > 0; set = (set - 1) & left) {
        const auto n = static_cast<uint32_t>(std::popcount(set));
        if (n > pipeline.batch) continue;
        const auto first = static_cast<size_t>(std::countr_zero(set));
        const auto last = static_cast<size_t>(std::bit_width(set) - 1);
        const auto before = free_;
        TimeNs t = arrivals_[last].at;
        uint32_t sender = 0;
        for (const auto& pool : pipeline.partitions) {
          const auto from = free_.begin() + pool.first_device;
          const auto device = std::min_element(from, from + pool.num_devices);
          const auto number = static_cast<uint32_t>(device - free_.begin());
          if (!pool.transfer_ns.empty()) {
            TimeNs &up = link(sender, 0), &down = link(number, 1);
            t = up = down = std::max({t, up, down}) + pool.transfer_ns[n - 1];
          }
          sender = number;
          t = *device = std::max(t, *device) + pool.run_ns[n - 1];
        }
        if (t <= arrivals_[first].at + deployment_.models[0].slo_ns) search(left & ~set, served + n);
        free_ = before;
      }
  }

  TimeNs& link(uint32_t device, uint32_t direction) {
    return free_[deployment_.devices.size() + direction * deployment_.num_servers +
                 deployment_.devices[device].server];
  }

  const Deployment& deployment_;
  const std::vector<Arrival>& arrivals_;
  std::vector<TimeNs> free_;  // devices, uplinks, downlinks
  uint64_t best_ = 0;
};

std::vector<Arrival> random_arrivals(Random& random, size_t n, TimeNs span, uint64_t models) {
  std::vector<Arrival> arrivals;
  for (size_t i = 0; i < n; ++i)
    arrivals.push_back({static_cast<TimeNs>(random.below(static_cast<uint64_t>(span))),
                        static_cast<uint32_t>(random.below(models))});
  std::sort(arrivals.begin(), arrivals.end(), [](const Arrival& a, const Arrival& b) { return a.at < b.at; });
  return arrivals;
}

uint64_t bound_of(const Deployment& d, const std::vector<Arrival>& arrivals) {
  const auto bound = bound_in_time(d, arrivals);
  EXPECT_TRUE(bound.ok()) << bound.error().to_string();
  uint64_t sum = 0;
  for (const uint64_t b : *bound) sum += b;
  return sum;
}

PoolSpec random_pool(Random& random, uint32_t batch, bool first) {
  PoolSpec pool{1 + static_cast<uint32_t>(random.below(2)), {}, {}};
  const auto base = 10 + static_cast<TimeNs>(random.below(40));
  for (TimeNs b = 1; b <= batch; ++b) {
    pool.run_ns.push_back(base + (b - 1) * base / 3);
    if (!first) pool.transfer_ns.push_back(3 * b);
  }
  return pool;
}

// Two devices, each request takes 10. At most two are in time of three that arrive at 0 with an SLO of 19; with
// an SLO of 20 all are.
TEST(LoadBound, CountsWholeRuns) {
  const std::vector<Arrival> arrivals(3);
  EXPECT_EQ(bound_of(small_deployment(19, {{{2, {10}, {}}}}), arrivals), 2u);
  EXPECT_EQ(bound_of(small_deployment(20, {{{2, {10}, {}}}}), arrivals), 3u);
}

TEST(LoadBound, IsExactForOnePipelineOfBatchOne) {
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    std::vector<PoolSpec> pools{random_pool(random, 1, true)};
    if (i % 2 == 1) pools.push_back(random_pool(random, 1, false));
    const auto d = small_deployment(120, {pools});
    const auto arrivals = random_arrivals(random, 7, 150, 1);
    EXPECT_EQ(bound_of(d, arrivals), Clairvoyant(d, arrivals).most()) << i;
  }
}

uint64_t served_by(const Deployment& d, const std::vector<Arrival>& arrivals, SchedulerKind kind) {
  SimulationOptions options;
  options.scheduler = kind;
  const auto result = simulate(d, arrivals, options);
  EXPECT_TRUE(result.ok());
  return result.ok() ? result->total.in_time : 0;
}

// The recorded sums show how much of the gap between bound and data plane is the bound's.
TEST(LoadBound, IsNeverBelowAClairvoyantSchedule) {
  struct Kind {
    const char* name;
    uint64_t pipelines;
    uint32_t batch;
  };
  for (const auto& kind : {Kind{"one_pipeline", 1, 1}, Kind{"two_pipelines", 2, 1},
                           Kind{"one_pipeline_batches", 1, 3}, Kind{"two_pipelines_batches", 2, 3}}) {
    Random random(2);
    uint64_t bounds = 0, schedules = 0, served = 0;
    for (int i = 0; i < 150; ++i) {
      std::vector<std::vector<PoolSpec>> pipelines(kind.pipelines);
      for (auto& pools : pipelines) {
        pools.push_back(random_pool(random, kind.batch, true));
        if (random.below(2) == 0) pools.push_back(random_pool(random, kind.batch, false));
      }
      const auto d = small_deployment(60 + static_cast<TimeNs>(random.below(80)), pipelines);
      const auto arrivals = random_arrivals(random, 6, 80, 1);
      const uint64_t bound = bound_of(d, arrivals), most = Clairvoyant(d, arrivals).most();
      EXPECT_GE(bound, most) << kind.name << ' ' << i;
      bounds += bound;
      schedules += most;
      served += served_by(d, arrivals, SchedulerKind::kReservation);
    }
    RecordProperty(std::string(kind.name) + "_bound", static_cast<int>(bounds));
    RecordProperty(std::string(kind.name) + "_clairvoyant", static_cast<int>(schedules));
    RecordProperty(std::string(kind.name) + "_reservation", static_cast<int>(served));
  }
}

TEST(LoadBound, IsNeverBelowTheDataPlane) {
  Random random(3);
  for (int i = 0; i < 200; ++i) {
    const auto d = random_deployment(random);
    const auto arrivals =
        random_arrivals(random, 300, 1 + static_cast<TimeNs>(random.below(2000000)), d.models.size());
    const uint64_t bound = bound_of(d, arrivals);
    for (const auto kind : {SchedulerKind::kReservation, SchedulerKind::kReactive})
      EXPECT_GE(bound, served_by(d, arrivals, kind)) << i;
  }
}

TEST(LoadBound, RefusesUnsortedArrivals) {
  const auto d = small_deployment(20, {{{1, {10}, {}}}});
  EXPECT_FALSE(bound_in_time(d, std::vector<Arrival>{{5, 0}, {4, 0}}).ok());
  EXPECT_FALSE(bound_in_time(d, std::vector<Arrival>{{5, 1}}).ok());
}

}  // namespace
}  // namespace heddle
