#include "heddle/runtime/rank_links.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <span>

#include "heddle/base/quantiles.h"
#include "threads/mailbox.h"

namespace heddle {
namespace {

constexpr int kDataTag = 0, kWordTag = 1;
constexpr int kFewest = 5, kMost = 500;

// Messages in flight: data, and signals to start or to confirm data.
class Messages {
 public:
  explicit Messages(Transport& transport) : transport_(transport) {}

  Status send(int to, int tag, std::span<const std::byte> data) {
    ++under_way_[static_cast<size_t>(tag)];
    return transport_.send(to, kFirstTag + tag, data, tag);
  }
  Status receive(int from, int tag, std::span<std::byte> data) {
    ++under_way_[static_cast<size_t>(tag)];
    return transport_.receive(from, kFirstTag + tag, data, tag);
  }
  Status wait(int tag) {
    while (under_way_[static_cast<size_t>(tag)] > 0) {
      done_.clear();
      HEDDLE_RETURN_IF_ERROR(transport_.progress(done_));
      for (const int64_t token : done_) --under_way_[static_cast<size_t>(token)];
      if (done_.empty()) sched_yield();
    }
    return {};
  }

 private:
  static constexpr int kFirstTag = 1;  // tag 0 is RankGroup's
  Transport& transport_;
  std::array<int, 2> under_way_ = {};
  std::vector<int64_t> done_;
};

class Watch {
 public:
  explicit Watch(const LinkOptions& options) : options_(options), begin_ns_(now()) {}
  double us() const { return static_cast<double>(now() - begin_ns_) / 1000; }

 private:
  int64_t now() const { return options_.clock_ns ? options_.clock_ns() : now_ns(); }
  const LinkOptions& options_;
  const int64_t begin_ns_;
};

class Pair {
 public:
  Pair(Transport& transport, const RankLink& link, int64_t bytes, const LinkOptions& options)
      : options_(options),
        starts_(transport.rank() == link.a),
        peer_(starts_ ? link.b : link.a),
        messages_(transport),
        out_(static_cast<size_t>(bytes)),
        in_(static_cast<size_t>(bytes)) {}

  bool starts() const { return starts_; }
  // One round trip; the starting rank learns the time in us.
  Result<double> round_trip() {
    const Watch watch(options_);
    for (const bool send : {starts_, !starts_}) {
      HEDDLE_RETURN_IF_ERROR(send ? messages_.send(peer_, kDataTag, out_)
                                  : messages_.receive(peer_, kDataTag, in_));
      HEDDLE_RETURN_IF_ERROR(messages_.wait(kDataTag));
    }
    return watch.us();
  }

  // Messages both ways at once, after a start signal, whose sender learns the time in us.
  Result<double> both_ways() {
    HEDDLE_RETURN_IF_ERROR(messages_.receive(peer_, kDataTag, in_));
    if (!starts_) {
      HEDDLE_RETURN_IF_ERROR(messages_.receive(peer_, kWordTag, word_));
      HEDDLE_RETURN_IF_ERROR(messages_.wait(kWordTag));
    }
    const Watch watch(options_);
    if (starts_) HEDDLE_RETURN_IF_ERROR(messages_.send(peer_, kWordTag, word_));
    HEDDLE_RETURN_IF_ERROR(messages_.send(peer_, kDataTag, out_));
    HEDDLE_RETURN_IF_ERROR(messages_.wait(kDataTag));
    HEDDLE_RETURN_IF_ERROR(messages_.wait(kWordTag));
    return watch.us();
  }

 private:
  const LinkOptions& options_;
  const bool starts_;
  const int peer_;
  Messages messages_;
  std::vector<std::byte> out_, in_;
  std::array<std::byte, 1> word_ = {};
};

// The smallest result of `once`: other users of the cores make concurrent messages slower, never faster.
template <class Once>
Result<double> least_of(int times, const Once& once) {
  double least = std::numeric_limits<double>::max();
  for (int i = 0; i < times; ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const double us, once());
    least = std::min(least, us);
  }
  return least;
}

struct OneWay {
  double us = 0;     // median
  double least = 0;  // what messages at once, of which the fastest count, are compared with
};

// The starting rank computes the number of round trips from the first few and tells the other rank.
Result<OneWay> one_way(RankGroup& group, const RankLink& link, int64_t bytes, const LinkOptions& options) {
  Pair pair(group.transport(), link, bytes, options);
  std::vector<double> trips;
  for (int i = 0; i < kFewest; ++i) {
    HEDDLE_ASSIGN_OR_RETURN(const double us, pair.round_trip());
    if (i > 0) trips.push_back(us);  // the first trip sets up connections
  }
  const double trip_us = std::max(median_us(trips), 0.1);
  int left = std::clamp(static_cast<int>(options.seconds_per_size * 1e6 / trip_us), kFewest, kMost) - kFewest;
  if (pair.starts()) HEDDLE_RETURN_IF_ERROR(group.send_text(link.b, std::to_string(left)));
  if (!pair.starts()) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string text, group.receive_text(link.a));
    std::from_chars(text.data(), text.data() + text.size(), left);
  }
  for (; left > 0; --left) {
    HEDDLE_ASSIGN_OR_RETURN(const double us, pair.round_trip());
    trips.push_back(us);
  }
  return OneWay{median_us(trips) / 2, std::ranges::min(trips) / 2};
}

// Concurrent messages between one rank and all others.
class Star {
 public:
  Star(Transport& transport, int center, const LinkOptions& options)
      : options_(options), transport_(transport), center_(center), messages_(transport) {
    const bool is_center = transport.rank() == center;
    bytes_ = static_cast<size_t>(options.bytes.back());
    memory_.resize(bytes_ * (is_center ? static_cast<size_t>(transport.size()) : 1));
    words_.resize(static_cast<size_t>(transport.size()));
  }

  // From the center to all others, or from all others to the center, which learns the time in us.
  Result<double> trip(bool out) {
    const Watch watch(options_);
    if (transport_.rank() != center_) {
      HEDDLE_RETURN_IF_ERROR(move(out, center_, out ? kDataTag : kWordTag, false));
      HEDDLE_RETURN_IF_ERROR(messages_.wait(out ? kDataTag : kWordTag));
      HEDDLE_RETURN_IF_ERROR(move(out, center_, out ? kWordTag : kDataTag, true));
    } else {
      for (const bool send : {false, true}) {
        for (int other = 0; other < transport_.size(); ++other) {
          if (other == center_) continue;
          HEDDLE_RETURN_IF_ERROR(move(out, other, send == out ? kDataTag : kWordTag, send));
        }
      }
    }
    HEDDLE_RETURN_IF_ERROR(messages_.wait(kDataTag));
    HEDDLE_RETURN_IF_ERROR(messages_.wait(kWordTag));
    return watch.us();
  }

 private:
  Status move(bool out, int other, int tag, bool send) {
    const size_t place = !out && transport_.rank() == center_ ? static_cast<size_t>(other) : 0;
    const auto data = tag == kDataTag ? std::span(memory_).subspan(place * bytes_, bytes_)
                                      : std::span(words_).subspan(static_cast<size_t>(other), 1);
    return send ? messages_.send(other, tag, data) : messages_.receive(other, tag, data);
  }

  const LinkOptions& options_;
  Transport& transport_;
  const int center_;
  Messages messages_;
  std::vector<std::byte> memory_, words_;
  size_t bytes_ = 0;
};

double shared_part(double at_once, const std::vector<double>& alone) {
  double sum = 0, longest = 0;
  for (const double us : alone) {
    sum += us;
    longest = std::max(longest, us);
  }
  return sum > longest ? std::clamp((at_once - longest) / (sum - longest), 0.0, 1.0) : 0;
}

// Sends rank `rank`'s values to everyone.
Status share(RankGroup& group, int rank, std::span<double> values) {
  std::string text;
  if (group.rank() == rank) text.assign(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  HEDDLE_ASSIGN_OR_RETURN(const auto all, group.exchange(std::move(text)));
  const std::string& said = all[static_cast<size_t>(rank)];
  if (said.size() != values.size_bytes())
    return internal_error("rank " + std::to_string(rank) + " measured other sizes than requested");
  std::memcpy(values.data(), said.data(), said.size());
  return {};
}

Status measure_pair(RankGroup& group, const LinkOptions& options, RankLink& link) {
  // Of each size; then the largest alone at its fastest, and both ways at once.
  std::vector<double> us(options.bytes.size() + 2);
  if (group.rank() == link.a || group.rank() == link.b) {
    for (size_t i = 0; i < options.bytes.size(); ++i) {
      HEDDLE_ASSIGN_OR_RETURN(const auto measured, one_way(group, link, options.bytes[i], options));
      us[i] = measured.us;
      us[options.bytes.size()] = measured.least;
    }
    Pair pair(group.transport(), link, options.bytes.back(), options);
    HEDDLE_ASSIGN_OR_RETURN(us.back(), least_of(options.at_once, [&] { return pair.both_ways(); }));
  }
  HEDDLE_RETURN_IF_ERROR(share(group, link.a, us));
  for (size_t i = 0; i < options.bytes.size(); ++i) link.times.push_back({options.bytes[i], us[i]});
  const MessageTime small = link.times.front(), large = link.times.back();
  link.latency_us = small.us;
  link.bytes_per_s =
      static_cast<double>(large.bytes - small.bytes) / std::max(large.us - small.us, 1e-3) * 1e6;
  link.least_us = std::max(us[options.bytes.size()], 1e-3);
  link.both_ways = us.back() / link.least_us;
  return {};
}

Status measure_port(RankGroup& group, const LinkOptions& options, int rank, RankLinks& links) {
  std::vector<double> alone;
  for (const RankLink& link : links.pairs) {
    if (link.a == rank || link.b == rank) alone.push_back(link.least_us);
  }
  Star star(group.transport(), rank, options);
  std::array<double, 2> us{};
  for (const bool out : {true, false}) {
    HEDDLE_ASSIGN_OR_RETURN(us[out ? 0 : 1], least_of(options.at_once, [&] { return star.trip(out); }));
  }
  HEDDLE_RETURN_IF_ERROR(share(group, rank, us));
  links.ports.push_back({shared_part(us[0], alone), shared_part(us[1], alone)});
  return {};
}

}  // namespace

Result<RankLinks> measure_links(RankGroup& group, const LinkOptions& options) {
  RankLinks links;
  for (int a = 0; a < group.size(); ++a) {
    for (int b = a + 1; b < group.size(); ++b) {
      links.pairs.push_back({.a = a, .b = b, .times = {}});
      HEDDLE_RETURN_IF_ERROR(measure_pair(group, options, links.pairs.back()));
    }
  }
  for (int rank = 0; rank < group.size() && group.size() > 2; ++rank)
    HEDDLE_RETURN_IF_ERROR(measure_port(group, options, rank, links));
  return links;
}

}  // namespace heddle
