// What the last pings say of a worker: how long messages travel, and how far its clock is from the server's. A worker
// reads its clock somewhere between the ping and its answer, so an offset is known to half of the round trip. The
// quickest of the last pings decides.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace heddle {

// Not thread-safe.
class PingTimes {
 public:
  void sent(uint64_t number, int64_t now_ns) {
    under_way_[number] = now_ns;
    if (under_way_.size() > kKept) under_way_.erase(under_way_.begin());
  }
  // `wall_ns`, `worker_wall_ns`: the clocks at the answer's arrival and at its departure; 0: the worker does not say.
  void answered(uint64_t number, int64_t now_ns, int64_t wall_ns, int64_t worker_wall_ns) {
    const auto it = under_way_.find(number);
    if (it == under_way_.end()) return;
    const int64_t trip = std::max<int64_t>(0, now_ns - it->second);
    under_way_.erase(it);
    // A worker may name any time.
    int64_t offset = 0;
    if (worker_wall_ns != 0 && __builtin_sub_overflow(worker_wall_ns, wall_ns - trip / 2, &offset))
      offset = worker_wall_ns < 0 ? INT64_MIN : INT64_MAX;
    trips_[count_++ % kKept] = {trip, offset, worker_wall_ns != 0};
  }

  struct Estimate {
    size_t pings = 0;  // that it is from; 0: nothing is known
    int64_t least_ns = 0, median_ns = 0;
    bool has_clock = false;
    int64_t offset_ns = 0, error_ns = 0;  // the worker's clock is ahead by offset +- error
  };
  Estimate estimate() const {
    Estimate out;
    std::vector<Trip> trips(trips_.begin(),
                            trips_.begin() + static_cast<long>(std::min<uint64_t>(count_, kKept)));
    if (trips.empty()) return out;
    std::sort(trips.begin(), trips.end(), [](const Trip& a, const Trip& b) { return a.ns < b.ns; });
    out.pings = trips.size();
    out.least_ns = trips.front().ns;
    out.median_ns = trips[trips.size() / 2].ns;
    out.has_clock = trips.front().has_clock;
    out.offset_ns = trips.front().offset_ns;
    out.error_ns = trips.front().ns / 2;
    return out;
  }

 private:
  static constexpr size_t kKept = 16;
  struct Trip {
    int64_t ns = 0, offset_ns = 0;
    bool has_clock = false;
  };
  std::map<uint64_t, int64_t> under_way_;  // when each was sent
  std::array<Trip, kKept> trips_{};
  uint64_t count_ = 0;
};

}  // namespace heddle
