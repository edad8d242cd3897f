#include "heddle/runtime/copy_profile.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "heddle/base/quantiles.h"
#include "heddle/runtime/stream_runtime.h"
#include "run/sampling.h"

namespace heddle {
namespace {

constexpr int kFewest = 5, kMost = 200;
constexpr int kRounds = 3;  // of copies at once
constexpr int64_t kPartOfMemory = 4;
constexpr double kLeastUs = 1e-3;  // shorter than the clock's step

// An accelerator with buffers to copy from and to.
struct Station {
  DeviceId device;
  std::string name;
  std::unique_ptr<RuntimeDevice> opened;
  StreamRuntime* runtime = nullptr;
  std::vector<int64_t> bytes;                               // sizes that fit into its memory
  std::shared_ptr<std::byte[]> host_in, host_out, in, out;  // of the largest size
  std::unique_ptr<DeviceStream> to_device, to_host, peer;
  std::unique_ptr<DeviceEvent> start[3], end[3];

  int64_t largest() const { return bytes.back(); }
};

// A copy that is repeated on one stream.
struct CopyLane {
  Station* station = nullptr;
  DeviceStream* stream = nullptr;
  int events = 0;  // index of the station's events
  std::function<Status(int64_t bytes)> copy;
  double alone_us = 0;  // of the largest size
};

CopyLane load_lane(Station& s) {
  return {&s, s.to_device.get(), 0, [&s](int64_t bytes) {
            return s.to_device->copy(CopyKind::kHostToDevice, s.in.get(), s.host_in.get(), bytes);
          }};
}
CopyLane store_lane(Station& s) {
  return {&s, s.to_host.get(), 1, [&s](int64_t bytes) {
            return s.to_host->copy(CopyKind::kDeviceToHost, s.host_out.get(), s.out.get(), bytes);
          }};
}
// On the stream and with the events of peers, which nothing is copied to meanwhile.
CopyLane in_place_lane(Station& s, std::byte* mapped) {
  return {&s, s.peer.get(), 2, [&s, mapped](int64_t bytes) {
            return s.opened->read_in_place(*s.peer, s.out.get(), mapped, bytes);
          }};
}
CopyLane peer_lane(Station& from, Station& to) {
  return {&to, to.peer.get(), 2, [&from, &to](int64_t bytes) {
            return to.peer->copy_peer(to.in.get(), *from.runtime, from.out.get(), bytes);
          }};
}

// Events around `count` copies, and the time between them.
Status begin(const CopyLane& lane) { return lane.stream->record(*lane.station->start[lane.events]); }
Status finish(const CopyLane& lane) { return lane.stream->record(*lane.station->end[lane.events]); }
Result<double> elapsed_us(const CopyLane& lane) {
  Station& s = *lane.station;
  Status reached = s.end[lane.events]->synchronize();
  if (!reached.ok()) {
    static_cast<void>(s.runtime->drain().ok());  // clear the error for the next measurement
    return std::move(reached).error().with_context("copies of device '" + s.name + "'");
  }
  HEDDLE_ASSIGN_OR_RETURN(const double us, s.runtime->elapsed_us(*s.start[lane.events], *s.end[lane.events]));
  return std::max(us, kLeastUs);
}

class CopyMeasurer {
 public:
  CopyMeasurer(const Cluster& cluster, const CopyOptions& options) : cluster_(cluster), options_(options) {}

  Result<CopyProfile> run() {
    HEDDLE_RETURN_IF_ERROR(open_stations());
    const size_t n = stations_.size(), pairs = n * (n - 1) / 2;
    total_ = static_cast<double>(5 * n + 3 * pairs);
    for (Station& s : stations_) {
      HEDDLE_RETURN_IF_ERROR(measure_one(load_lane(s), DeviceId(), s.device, s.bytes));
      HEDDLE_RETURN_IF_ERROR(measure_one(store_lane(s), s.device, DeviceId(), s.bytes));
    }
    for (Station& a : stations_) {
      for (Station& b : stations_) {
        if (&a != &b) HEDDLE_RETURN_IF_ERROR(between(a, b));
      }
    }
    HEDDLE_RETURN_IF_ERROR(find_shared());
    for (Station& s : stations_) HEDDLE_RETURN_IF_ERROR(measure_in_place(s));
    for (const CopyRoute& route : profile_.routes)
      profile_.links.ways.push_back(
          {route.from, route.to, route.direct, route.line.latency_us, route.line.bytes_per_s});
    return std::move(profile_);
  }

 private:
  Status open_stations() {
    for (size_t d = 0; d < cluster_.num_devices(); ++d) {
      const Device& device = cluster_.device(DeviceId(d));
      if (device.kind == DeviceKind::kCpu) continue;
      auto opened = options_.open ? options_.open(device) : open_device(device);
      const Status made = opened.ok() ? add_station(DeviceId(d), std::move(opened).value())
                                      : Status(std::move(opened).error());
      if (!made.ok()) profile_.left_out.emplace_back(DeviceId(d), made.error().message());
    }
    if (stations_.empty()) {
      const auto& out = profile_.left_out;
      return unsupported(
          "cluster '" + cluster_.name() + "' has no accelerator that copies can be measured on" +
          (out.empty()
               ? ": its devices compute in host memory, where no copies are made"
               : ": device '" + cluster_.device(out.front().first).name + "': " + out.front().second));
    }
    for (const Station& s : stations_) {
      if (cluster_.device(s.device).host != cluster_.device(stations_.front().device).host)
        return unsupported("cluster '" + cluster_.name() + "': devices '" + stations_.front().name +
                           "' and '" + s.name + "' are of two hosts; measure each host's cluster file there");
    }
    return {};
  }

  Status add_station(DeviceId id, std::unique_ptr<RuntimeDevice> opened) {
    Station s;
    s.device = id;
    s.name = cluster_.device(id).name;
    s.runtime = opened->stream_runtime();
    if (s.runtime == nullptr)
      return unsupported("its backend '" + cluster_.device(id).backend +
                         "' has no streams that copies could be measured on");
    s.opened = std::move(opened);
    const int64_t memory = s.runtime->properties().memory_bytes;
    for (const int64_t bytes : options_.bytes) {
      if (memory == 0 || bytes <= memory / kPartOfMemory) s.bytes.push_back(bytes);
    }
    if (s.bytes.empty()) return infeasible("its memory is too small for the smallest copy");
    for (auto* memory_of : {&s.host_in, &s.host_out}) {
      HEDDLE_ASSIGN_OR_RETURN(*memory_of, s.runtime->allocate_pinned(s.largest()));
      std::memset(memory_of->get(), 1, static_cast<size_t>(s.largest()));  // touch every page
    }
    for (auto* memory_of : {&s.in, &s.out}) {
      HEDDLE_ASSIGN_OR_RETURN(*memory_of, s.runtime->allocate(s.largest()));
    }
    for (auto* stream : {&s.to_device, &s.to_host, &s.peer}) {
      HEDDLE_ASSIGN_OR_RETURN(*stream, s.runtime->make_stream());
    }
    for (int i = 0; i < 3; ++i) {
      HEDDLE_ASSIGN_OR_RETURN(s.start[i], s.runtime->make_event());
      HEDDLE_ASSIGN_OR_RETURN(s.end[i], s.runtime->make_event());
    }
    // Initialise the device's memory, too.
    for (std::byte* there : {s.in.get(), s.out.get()})
      HEDDLE_RETURN_IF_ERROR(s.to_device->copy(CopyKind::kHostToDevice, there, s.host_in.get(), s.largest()));
    HEDDLE_RETURN_IF_ERROR(s.to_device->synchronize());
    stations_.push_back(std::move(s));
    return {};
  }

  Status go_on() {
    if (options_.deadline.should_stop()) return cancelled_error("stopped before all copies were measured");
    if (options_.progress)
      options_.progress->report({.what = "measuring copies", .done = done_++, .total = total_});
    return {};
  }

  static Result<double> once(const CopyLane& lane, int64_t bytes) {
    HEDDLE_RETURN_IF_ERROR(begin(lane));
    HEDDLE_RETURN_IF_ERROR(lane.copy(bytes));
    HEDDLE_RETURN_IF_ERROR(finish(lane));
    return elapsed_us(lane);
  }

  Status measure_one(const CopyLane& lane, DeviceId from, DeviceId to, std::span<const int64_t> sizes) {
    CopyRoute route{.from = from, .to = to, .direct = true, .times = {}};
    HEDDLE_RETURN_IF_ERROR(measure_sizes(lane, sizes, route.times, route.rel_spread));
    route.line = fit_copies(route.times);
    profile_.routes.push_back(std::move(route));
    return {};
  }

  Status measure_sizes(const CopyLane& lane, std::span<const int64_t> sizes, std::vector<CopyTime>& medians,
                       double& rel_spread) {
    HEDDLE_RETURN_IF_ERROR(go_on());
    for (const int64_t bytes : sizes) {
      HEDDLE_ASSIGN_OR_RETURN(const double first_us, once(lane, bytes));  // sets up what is needed
      const int count =
          std::clamp(static_cast<int>(options_.seconds_per_size * 1e6 / first_us), kFewest, kMost);
      std::vector<double> times;
      for (int i = 0; i < count; ++i) {
        HEDDLE_ASSIGN_OR_RETURN(const double us, once(lane, bytes));
        times.push_back(us);
      }
      medians.push_back({bytes, median_us(times)});
      rel_spread = relative_spread(times);
    }
    return {};
  }

  Status measure_in_place(Station& s) {
    if (!s.runtime->properties().mapped_memory) return {};
    HEDDLE_ASSIGN_OR_RETURN(std::byte* const mapped, s.runtime->mapped_address(s.host_in.get()));
    CopyLane reads = in_place_lane(s, mapped);
    InPlaceReads found{.device = s.device, .times = {}, .beside_copies = {}};
    const Status measured = measure_sizes(reads, s.bytes, found.times, found.rel_spread);
    if (!measured.ok() && measured.error().code() == Code::kUnsupported) return {};
    HEDDLE_RETURN_IF_ERROR(measured);
    found.line = fit_copies(found.times);
    reads.alone_us = found.times.back().us;
    HEDDLE_ASSIGN_OR_RETURN(found.beside_copies,
                            at_once({reads, timed(load_lane(s), DeviceId(), s.device)}, {s.device}));
    profile_.in_place.push_back(std::move(found));
    return {};
  }

  const CopyRoute& route(DeviceId from, DeviceId to) const {
    return *std::find_if(profile_.routes.begin(), profile_.routes.end(),
                         [&](const CopyRoute& w) { return w.from == from && w.to == to; });
  }

  Status between(Station& from, Station& to) {
    if (to.runtime->reaches(*from.runtime)) {
      const auto& sizes = from.bytes.size() < to.bytes.size() ? from.bytes : to.bytes;
      return measure_one(peer_lane(from, to), from.device, to.device, sizes);
    }
    const CopyRoute &up = route(from.device, DeviceId()), &down = route(DeviceId(), to.device);
    CopyRoute both{.from = from.device, .to = to.device, .direct = false, .times = {}};
    for (size_t i = 0; i < std::min(up.times.size(), down.times.size()); ++i)
      both.times.push_back({up.times[i].bytes, up.times[i].us + down.times[i].us});
    both.rel_spread = std::max(up.rel_spread, down.rel_spread);
    both.line = fit_copies(both.times);
    profile_.routes.push_back(std::move(both));
    return {};
  }

  // Median over rounds of concurrent copies; each lane copies as much as takes it the same time alone.
  Result<CopiesAtOnce> at_once(const std::vector<CopyLane>& lanes, std::vector<DeviceId> devices) {
    HEDDLE_RETURN_IF_ERROR(go_on());
    double window_us = options_.at_once_s * 1e6;
    for (const CopyLane& lane : lanes) window_us = std::max(window_us, 2 * lane.alone_us);
    std::vector<int> counts;
    double alone_us = 0, bytes = 0;
    for (const CopyLane& lane : lanes) {
      counts.push_back(std::max(1, static_cast<int>(std::lround(window_us / lane.alone_us))));
      alone_us = std::max(alone_us, counts.back() * lane.alone_us);
      bytes += static_cast<double>(counts.back()) * static_cast<double>(lane.station->largest());
    }
    std::vector<double> rounds;
    for (int round = 0; round < kRounds; ++round) {
      for (const CopyLane& lane : lanes) HEDDLE_RETURN_IF_ERROR(begin(lane));
      HEDDLE_RETURN_IF_ERROR(enqueue(lanes, counts));
      for (const CopyLane& lane : lanes) HEDDLE_RETURN_IF_ERROR(finish(lane));
      double longest = 0;
      for (const CopyLane& lane : lanes) {
        HEDDLE_ASSIGN_OR_RETURN(const double us, elapsed_us(lane));
        longest = std::max(longest, us);
      }
      rounds.push_back(longest);
    }
    const double us = median_us(rounds);
    CopiesAtOnce result{.devices = std::move(devices), .bytes_per_s = bytes / us * 1e6};
    result.part = std::min(1.0, alone_us / us);
    result.shared = result.part < (1 + 1 / static_cast<double>(lanes.size())) / 2;
    return result;
  }

  // Enqueues in turns, so that all lanes have begun before the first is done.
  static Status enqueue(const std::vector<CopyLane>& lanes, std::vector<int> left) {
    for (bool more = true; more;) {
      more = false;
      for (size_t i = 0; i < lanes.size(); ++i) {
        if (left[i]-- <= 0) continue;
        HEDDLE_RETURN_IF_ERROR(lanes[i].copy(lanes[i].station->largest()));
        more = more || left[i] > 0;
      }
    }
    return {};
  }

  CopyLane timed(CopyLane lane, DeviceId from, DeviceId to) const {
    lane.alone_us = route(from, to).times.back().us;
    return lane;
  }
  Result<CopiesAtOnce> loads_at_once(const std::vector<Station*>& stations) {
    std::vector<CopyLane> lanes;
    std::vector<DeviceId> devices;
    for (Station* s : stations) {
      lanes.push_back(timed(load_lane(*s), DeviceId(), s->device));
      devices.push_back(s->device);
    }
    return at_once(lanes, std::move(devices));
  }

  // Joins pairs that share into sets, and measures what each larger set carries.
  Status find_shared() {
    std::vector<size_t> set(stations_.size());
    for (size_t i = 0; i < stations_.size(); ++i) {
      Station& s = stations_[i];
      set[i] = i;
      HEDDLE_ASSIGN_OR_RETURN(auto both, at_once({timed(load_lane(s), DeviceId(), s.device),
                                                  timed(store_lane(s), s.device, DeviceId())},
                                                 {s.device}));
      if (both.shared) profile_.links.half_duplex.push_back(s.device);
      profile_.at_once.push_back(std::move(both));
    }
    std::vector<CopiesAtOnce> pairs;
    for (size_t i = 0; i < stations_.size(); ++i) {
      for (size_t j = i + 1; j < stations_.size(); ++j) {
        HEDDLE_ASSIGN_OR_RETURN(auto pair, loads_at_once({&stations_[i], &stations_[j]}));
        const size_t from = set[j], to = set[i];
        if (pair.shared) std::replace(set.begin(), set.end(), from, to);
        pairs.push_back(std::move(pair));
      }
    }
    for (size_t i = 0; i < stations_.size(); ++i) {
      std::vector<Station*> members;
      for (size_t j = 0; j < stations_.size(); ++j) {
        if (set[j] == i) members.push_back(&stations_[j]);
      }
      if (members.size() < 2) continue;
      std::optional<CopiesAtOnce> all;
      if (members.size() > 2) {
        HEDDLE_ASSIGN_OR_RETURN(all, loads_at_once(members));
        all->shared = true;
        pairs.push_back(*all);
      } else {
        all = *std::find_if(pairs.begin(), pairs.end(), [&](const CopiesAtOnce& pair) {
          return pair.devices[0] == members[0]->device && pair.devices[1] == members[1]->device;
        });
      }
      profile_.links.shared.push_back({all->devices, all->bytes_per_s});
    }
    profile_.at_once.insert(profile_.at_once.end(), pairs.begin(), pairs.end());
    return {};
  }

  const Cluster& cluster_;
  const CopyOptions& options_;
  std::vector<Station> stations_;
  CopyProfile profile_;
  double done_ = 0, total_ = 0;
};

}  // namespace

Result<CopyProfile> measure_copies(const Cluster& cluster, const CopyOptions& options) {
  return CopyMeasurer(cluster, options).run();
}

}  // namespace heddle
