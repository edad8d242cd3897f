#include "heddle/runtime/rank_links.h"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "heddle/runtime/sampling.h"
#include "mailbox.h"

namespace heddle {
namespace {

constexpr int kLinkTag = 1;
constexpr int kFewest = 5, kMost = 500;

class PingPong {
 public:
  PingPong(Transport& transport, int peer, int64_t bytes)
      : transport_(transport), peer_(peer), memory_(static_cast<size_t>(bytes)) {}

  // One round trip, of which the one who `starts` learns the time in us.
  Result<double> trip(bool starts) {
    const int64_t begin = now_ns();
    HEDDLE_RETURN_IF_ERROR(move(starts));
    HEDDLE_RETURN_IF_ERROR(move(!starts));
    return static_cast<double>(now_ns() - begin) / 1000;
  }

 private:
  Status move(bool send) {
    HEDDLE_RETURN_IF_ERROR(send ? transport_.send(peer_, kLinkTag, memory_, 0)
                                : transport_.receive(peer_, kLinkTag, memory_, 0));
    for (done_.clear(); done_.empty();) {
      HEDDLE_RETURN_IF_ERROR(transport_.progress(done_));
      if (done_.empty()) sched_yield();
    }
    return {};
  }

  Transport& transport_;
  const int peer_;
  std::vector<std::byte> memory_;
  std::vector<int64_t> done_;
};

// The one that starts finds from a few round trips how many there are to be, and tells the other.
Result<double> one_way_us(RankGroup& group, const RankLink& link, int64_t bytes, double seconds) {
  const bool starts = group.rank() == link.a;
  PingPong pair(group.transport(), starts ? link.b : link.a, bytes);
  std::vector<double> trips;
  for (int i = 0; i < kFewest; ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const double us, pair.trip(starts));
    if (i > 0) trips.push_back(us);  // the first one sets up connections
  }
  const double trip_us = std::max(median_us(trips), 0.1);
  int left = std::clamp(static_cast<int>(seconds * 1e6 / trip_us), kFewest, kMost) - kFewest;
  if (starts) HEDDLE_RETURN_IF_ERROR(group.send_text(link.b, std::to_string(left)));
  if (!starts) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string text, group.receive_text(link.a));
    left = std::atoi(text.c_str());
  }
  for (; left > 0; --left) {
    HEDDLE_ASSIGN_OR_RETURN(const double us, pair.trip(starts));
    trips.push_back(us);
  }
  return median_us(trips) / 2;
}

}  // namespace

Result<std::vector<RankLink>> measure_links(RankGroup& group, const LinkOptions& options) {
  std::vector<RankLink> links;
  for (int a = 0; a < group.size(); ++a) {
    for (int b = a + 1; b < group.size(); ++b) {
      RankLink link{.a = a, .b = b};
      std::string text;
      for (const int64_t bytes : options.bytes) {
        link.times.push_back({bytes, 0});
        if (group.rank() != a && group.rank() != b) continue;
        HEDDLE_ASSIGN_OR_RETURN(link.times.back().us,
                                one_way_us(group, link, bytes, options.seconds_per_size));
      }
      if (group.rank() == a) {
        text.resize(link.times.size() * sizeof(MessageTime));
        std::memcpy(text.data(), link.times.data(), text.size());
      }
      HEDDLE_ASSIGN_OR_RETURN(const auto all, group.exchange(std::move(text)));
      const std::string& measured = all[static_cast<size_t>(a)];
      if (measured.size() != link.times.size() * sizeof(MessageTime))
        return Error(Code::kInternal,
                     "rank " + std::to_string(a) + " measured other sizes than were asked for");
      std::memcpy(link.times.data(), measured.data(), measured.size());
      const MessageTime small = link.times.front(), large = link.times.back();
      link.latency_us = small.us;
      link.bytes_per_s =
          static_cast<double>(large.bytes - small.bytes) / std::max(large.us - small.us, 1e-3) * 1e6;
      links.push_back(std::move(link));
    }
  }
  return links;
}

}  // namespace heddle
