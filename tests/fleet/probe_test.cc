// The dispatcher's choice, compared with brute force over all devices and pipelines.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "data_plane_support.h"
#include "heddle/fleet/dispatch.h"
#include "heddle/fleet/event_queue.h"

namespace heddle {
namespace {

TEST(ReservationBook, TheFirstFreeOfAGroupIsTheFirstOfTheEarliest) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random = random_stream(seed, 7);
    const auto first = static_cast<uint32_t>(random.below(3));
    const auto count = static_cast<uint32_t>(1 + random.below(seed % 5 == 0 ? 150 : 12));
    constexpr TimeNs kLeast = 5;
    ReservationBook book(first + count, seed % 4 != 0, true);
    const uint32_t group = book.add_group(first, count, kLeast);
    std::vector<BookingId> made;
    TimeNs now = 0;
    for (int i = 0; i < 400; ++i) {
      now += static_cast<TimeNs>(random.below(8));
      const auto lot = random.below(20);
      if (lot == 0) {
        const auto r = first + static_cast<uint32_t>(random.below(count));
        if (book.is_closed(r)) {
          book.open(r, now);
        } else {
          book.close(r);
        }
      } else if (lot < 9 && !made.empty()) {
        // A resource's first booking begins or ends, early, in time or late; other bookings are cancelled.
        const auto which = random.below(made.size());
        const BookingId id = made[which];
        if (book[id].running || lot == 1) {
          if (book[id].running && random.below(2) == 0) now = std::max(now, book[id].end);
          book.finish(id, now);
          made.erase(made.begin() + static_cast<std::ptrdiff_t>(which));
        } else if (book.can_start(id)) {
          book.start(id, now);
        }
      } else if (lot == 9 && !made.empty() && book[made[0]].running) {
        book.overdue(made[0], now);
      }
      const auto t = now + static_cast<TimeNs>(random.below(40));
      const auto length = kLeast + static_cast<TimeNs>(random.below(20));
      FreeSlot expected;
      for (ResourceId r = first; r < first + count; ++r)
        if (const TimeNs start = book.earliest(r, t, length); start < expected.start) expected = {r, start};
      const FreeSlot found = book.first_free(group, t, length, kNever);
      ASSERT_EQ(found.resource, expected.resource) << "seed " << seed << ", turn " << i;
      if (found.resource == kNoId) continue;
      ASSERT_EQ(found.start, expected.start);
      EXPECT_EQ(book.first_free(group, t, length, expected.start).resource, kNoId) << "not before the limit";
      EXPECT_EQ(book.first_free(group, t, length, expected.start + 1).resource, expected.resource);
      if (random.below(3) > 0)
        made.push_back(book.book(now, 0, 0, found.resource, kNoId, found.start, length, kNoId));
    }
  }
}

// Algorithm 2 by brute force over all devices.
ProbedPath brute_probe(const Deployment& d, const ReservationBook& book, uint32_t pipeline, uint32_t batch,
                       TimeNs now) {
  ProbedPath path;
  const auto devices = static_cast<uint32_t>(d.devices.size());
  TimeNs t = now, alone = 0;
  uint32_t last = kNoId;
  const auto& partitions = d.pipelines[pipeline].partitions;
  for (uint32_t k = 0; k < partitions.size(); ++k) {
    const auto& pool = partitions[k];
    const TimeNs run = pool.run_ns[batch - 1], send = k > 0 ? pool.transfer_ns[batch - 1] : 0;
    alone += run + send;
    TimeNs best = kNever;
    for (uint32_t v = pool.first_device; v < pool.first_device + pool.num_devices; ++v) {
      TimeNs sent = t;
      if (k > 0)
        sent = book.earliest_both(devices + d.devices[last].server,
                                  devices + d.num_servers + d.devices[v].server, t, send);
      const TimeNs start = book.earliest(v, sent + send, run);
      if (start >= best) continue;
      best = start;
      path.device[k] = v;
      path.start[2 * k] = start;
      if (k > 0) path.start[2 * k - 1] = sent;
    }
    if (best == kNever) return {};
    last = path.device[k];
    t = best + run;
  }
  path.finish = t;
  path.wait = t - now - alone;
  return path;
}

// Runs arrivals through a deployment; times are exact, or off by up to `off` percent.
class Play {
 public:
  Play(const Deployment& d, Random& random, int64_t off, const DispatchOptions& options = {})
      : d_(d), random_(random), off_(off), dispatcher_(d, options) {}

  // Finishes the work that ends by then.
  void go_on(TimeNs until) {
    while (!events_.empty() && events_.next_at() <= until) {
      const auto event = events_.pop();
      dispatcher_.finished(event.payload, event.at, actions_);
      apply(event.at);
    }
  }
  void submit(uint32_t model, RequestId request, TimeNs now) {
    dispatcher_.submit(model, request, now + d_.models[model].slo_ns, now, actions_);
    for (const RequestId r : actions_.dropped) dropped.push_back(r);
    apply(now);
  }
  // A request of some model, up to 4 us after the one before. Returns when it comes.
  TimeNs next(RequestId request) {
    now_ += static_cast<TimeNs>(random_.below(4000));
    go_on(now_);
    submit(static_cast<uint32_t>(random_.below(d_.models.size())), request, now_);
    return now_;
  }
  const Dispatcher& dispatcher() const { return dispatcher_; }

  std::map<RequestId, uint32_t> pipeline;  // the pipeline of its first run
  std::vector<RequestId> dropped;

 private:
  void apply(TimeNs now) {
    for (const auto& work : actions_.start) {
      if (!work.transfer && work.partition == 0) pipeline.emplace(work.first_request, work.pipeline);
      TimeNs length = work.expected_ns;
      if (off_ > 0)
        length = std::max<TimeNs>(
            1, length * (100 - off_ + static_cast<int64_t>(random_.below(2 * static_cast<uint64_t>(off_)))) /
                   100);
      events_.push(now + length, work.id);
    }
    actions_.clear();
  }

  const Deployment& d_;
  Random& random_;
  int64_t off_;
  TimeNs now_ = 0;  // of next()
  Dispatcher dispatcher_;
  EventQueue<WorkId> events_;
  Actions actions_;
};

TEST(Dispatcher, ProbesFindWhatALookAtEveryDeviceFinds) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Random random = random_stream(seed, 9);
    const Deployment d = random_deployment(random);
    Play play(d, random, seed % 2 == 0 ? 20 : 0, {.free_links = false});
    for (RequestId r = 0; r < 250; ++r) {
      const TimeNs now = play.next(r);
      for (uint32_t p = 0; p < d.pipelines.size(); ++p) {
        const auto batch = static_cast<uint32_t>(1 + random.below(d.pipelines[p].batch));
        const auto found = play.dispatcher().probe(p, batch, now);
        const auto expected = brute_probe(d, play.dispatcher().book(), p, batch, now);
        ASSERT_EQ(found.finish, expected.finish) << "seed " << seed << ", request " << r;
        ASSERT_EQ(found.wait, expected.wait);
        ASSERT_EQ(found.device, expected.device);
        ASSERT_EQ(found.start, expected.start);
      }
    }
  }
}

// With free links the batch leaves the first pool as soon as from any of its devices, and arrives no later for that.
TEST(Dispatcher, TheFirstDeviceIsTheOneThatCanSendFirst) {
  uint64_t other = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Random random = random_stream(seed, 10);
    const Deployment d = random_deployment(random);
    Play play(d, random, 0);
    const auto& book = play.dispatcher().book();
    const auto uplink = [&](uint32_t v) {
      return static_cast<uint32_t>(d.devices.size()) + d.devices[v].server;
    };
    for (RequestId r = 0; r < 250; ++r) {
      const TimeNs now = play.next(r);
      for (uint32_t p = 0; p < d.pipelines.size(); ++p) {
        const auto& pools = d.pipelines[p].partitions;
        if (pools.size() < 2) continue;
        const TimeNs run = pools[0].run_ns[0], send = pools[1].transfer_ns[0];
        TimeNs soonest = kNever;
        for (uint32_t v = pools[0].first_device; v < pools[0].first_device + pools[0].num_devices; ++v)
          soonest = std::min(soonest, book.earliest(uplink(v), book.earliest(v, now, run) + run, send));
        const auto path = play.dispatcher().probe(p, 1, now);
        ASSERT_EQ(book.earliest(uplink(path.device[0]), path.start[0] + run, send), soonest)
            << "seed " << seed;
        ASSERT_EQ(book.earliest(path.device[0], path.start[0], run), path.start[0]);
        other += path.device[0] != brute_probe(d, book, p, 1, now).device[0];
      }
    }
  }
  EXPECT_GT(other, 0u);
}

// The search for a path may stop early: when another pipeline waits less, or when the deadline is missed.
TEST(Dispatcher, TakesThePipelineThatWaitsLeastOfThoseInTime) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Random random = random_stream(seed, 11);
    Deployment d = random_deployment(random);
    for (auto& p : d.pipelines) p.batch = 1;
    Play play(d, random, 0, {.free_links = false});
    TimeNs now = 0;
    std::map<RequestId, uint32_t> expected;
    std::vector<RequestId> dropped;
    for (RequestId r = 0; r < 400; ++r) {
      now += static_cast<TimeNs>(random.below(3000));
      play.go_on(now);
      const auto model = static_cast<uint32_t>(random.below(d.models.size()));
      std::optional<uint32_t> best;
      TimeNs least = kNever;
      for (const uint32_t p : d.models[model].pipelines) {
        const auto path = brute_probe(d, play.dispatcher().book(), p, 1, now);
        if (path.finish > now + d.models[model].slo_ns || path.wait >= least) continue;
        best = p;
        least = path.wait;
      }
      if (best) {
        expected[r] = *best;
      } else {
        dropped.push_back(r);
      }
      play.submit(model, r, now);
    }
    play.go_on(kNever - 1);
    EXPECT_EQ(play.pipeline, expected) << "seed " << seed;
    EXPECT_EQ(play.dropped, dropped);
  }
}

}  // namespace
}  // namespace heddle
