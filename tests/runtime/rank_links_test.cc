// Measurements between ranks on emulated networks: they must detect who shares bandwidth, and a cluster file
// must describe it.
#include "heddle/runtime/rank_links.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "heddle/runtime/rank_network.h"
#include "local_transport.h"
#include "threads/mailbox.h"

namespace heddle {
namespace {

enum class Sharing { kNothing, kDirections, kPorts };

// For each part of the network, the time at which it is free again; common to all ranks.
struct Network {
  Sharing sharing;
  std::mutex mutex;
  std::map<std::pair<int, int>, int64_t> free_at_ns;

  // Arrival time of a message that is sent now.
  int64_t carry(int from, int to, size_t bytes) {
    constexpr int64_t kNsPerByte = 250;  // 4 MB/s
    std::vector<std::pair<int, int>> parts = {{from, to}};
    if (sharing == Sharing::kDirections) parts = {std::minmax(from, to)};
    if (sharing == Sharing::kPorts) parts = {{from, -1}, {-1, to}};
    const std::lock_guard lock(mutex);
    int64_t at = now_ns();
    for (const auto& part : parts) at = std::max(at, free_at_ns[part]);
    at += static_cast<int64_t>(bytes) * kNsPerByte;
    for (const auto& part : parts) free_at_ns[part] = at;
    return at;
  }
};

// Delivers messages when the network has carried them.
class SlowTransport final : public Transport {
 public:
  SlowTransport(std::unique_ptr<Transport> below, Network& network)
      : below_(std::move(below)), network_(network) {}
  int rank() const override { return below_->rank(); }
  int size() const override { return below_->size(); }
  std::string host_name() const override { return below_->host_name(); }
  int max_tag() const override { return below_->max_tag(); }

  Status send(int to, int tag, std::span<const std::byte> data, int64_t token) override {
    under_way_.push_back({network_.carry(rank(), to, data.size()), to, tag, data, token});
    return {};
  }
  Status receive(int from, int tag, std::span<std::byte> data, int64_t token) override {
    return below_->receive(from, tag, data, token);
  }
  Status progress(std::vector<int64_t>& done) override {
    const int64_t now = now_ns();
    std::deque<Sent> left;
    for (const Sent& s : under_way_) {
      if (s.arrives_ns > now) {
        left.push_back(s);
        continue;
      }
      Status sent = below_->send(s.to, s.tag, s.data, s.token);
      if (!sent.ok()) return sent;
    }
    under_way_.swap(left);
    return below_->progress(done);
  }
  void raise_alarm(const std::string& reason) override { below_->raise_alarm(reason); }
  const std::optional<std::string>& alarm() const override { return below_->alarm(); }
  Result<double> raw_message_us(int a, int b, int64_t bytes, int repeats) override {
    return below_->raw_message_us(a, b, bytes, repeats);
  }

 private:
  struct Sent {
    int64_t arrives_ns;
    int to, tag;
    std::span<const std::byte> data;
    int64_t token;
  };
  std::unique_ptr<Transport> below_;
  Network& network_;
  std::deque<Sent> under_way_;
};

RankLinks measured(int ranks, Sharing sharing) {
  Network network{.sharing = sharing, .mutex = {}, .free_at_ns = {}};
  std::vector<RankLinks> seen(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  auto ends = test::make_local_transports(ranks);
  for (size_t r = 0; r < ends.size(); ++r) {
    threads.emplace_back([&, r] {
      SlowTransport transport(std::move(ends[r]), network);
      RankGroup group(transport);
      auto links = measure_links(group, {.bytes = {8, 1 << 16}, .seconds_per_size = 0});
      EXPECT_TRUE(links.ok()) << links.error().to_string();
      if (links.ok()) seen[r] = std::move(links).value();
    });
  }
  for (auto& thread : threads) thread.join();
  for (const RankLinks& other : seen) {  // all ranks have the same result
    EXPECT_EQ(other.pairs.size(), seen.front().pairs.size());
    for (size_t i = 0; i < other.pairs.size(); ++i) {
      EXPECT_EQ(other.pairs[i].both_ways, seen.front().pairs[i].both_ways);
      EXPECT_EQ(other.pairs[i].bytes_per_s, seen.front().pairs[i].bytes_per_s);
    }
  }
  return seen.front();
}

// Differences from the network; empty if there are none.
std::string mistakes(const RankLinks& links, Sharing sharing) {
  std::string text;
  for (const RankLink& link : links.pairs) {
    if (link.half_duplex() != (sharing == Sharing::kDirections))
      text += " both ways " + std::to_string(link.both_ways);
  }
  for (const RankPort& port : links.ports) {
    if (port.shared() != (sharing == Sharing::kPorts))
      text += " out " + std::to_string(port.out) + " in " + std::to_string(port.in);
  }
  if (describes_ports(links) != (sharing == Sharing::kPorts)) text += " other links";
  return text;
}

// Other users of the cores may disturb a measurement, but not every attempt.
TEST(RankLinks, WhoSharesBandwidthIsFound) {
  for (const Sharing sharing : {Sharing::kNothing, Sharing::kDirections, Sharing::kPorts}) {
    std::string wrong = "not measured";
    for (int attempt = 0; attempt < 5 && !wrong.empty(); ++attempt) {
      const RankLinks links = measured(3, sharing);
      ASSERT_EQ(links.pairs.size(), 3U);
      ASSERT_EQ(links.ports.size(), 3U);
      wrong = mistakes(links, sharing);
    }
    EXPECT_EQ(wrong, "") << static_cast<int>(sharing);
  }
  EXPECT_TRUE(measured(2, Sharing::kNothing).ports.empty());
}

RankLink link_of(int a, int b, double bytes_per_s, double both_ways) {
  return {.a = a, .b = b, .times = {}, .latency_us = 10, .bytes_per_s = bytes_per_s, .both_ways = both_ways};
}

TEST(RankLinks, SharedPortsBecomeLinksToASwitch) {
  RankLinks links;
  links.pairs = {link_of(0, 1, 100e6, 1), link_of(0, 2, 25e6, 1), link_of(1, 2, 26e6, 1.1)};
  links.ports = {{1, 0.9}, {0.8, 1}, {0, 0}};
  ASSERT_TRUE(describes_ports(links));
  auto written = rank_links_json(links, {"a", "b", "c"});
  ASSERT_EQ(written.size(), 3U);
  EXPECT_EQ(written[0]["to"], kNetwork);
  EXPECT_EQ(written[0]["bytes_per_s"], 100e6);
  EXPECT_EQ(written[2]["bytes_per_s"], 26e6);
  EXPECT_EQ(written[2]["latency_us"], 5);
  EXPECT_EQ(written[2]["duplex"], "full");

  // a and b are near each other, c is far: no set of one link per rank describes this.
  links.pairs[1].bytes_per_s = links.pairs[2].bytes_per_s = 25e6;
  links.pairs.push_back(link_of(2, 3, 100e6, 2));
  links.pairs.push_back(link_of(0, 3, 100e6, 2));
  links.ports.push_back({0, 0});
  EXPECT_TRUE(shares_ports(links));
  EXPECT_FALSE(describes_ports(links));
  written = rank_links_json(links, {"a", "b", "c", "d"});
  ASSERT_EQ(written.size(), 5U);
  EXPECT_EQ(written[0]["to"], "b");
  EXPECT_EQ(written[4]["duplex"], "half");

  links.ports.assign(4, {0.2, 0.1});
  EXPECT_FALSE(shares_ports(links));
}

}  // namespace
}  // namespace heddle
