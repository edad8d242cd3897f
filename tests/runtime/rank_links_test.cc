// Measurements between ranks on emulated networks: they must detect who shares bandwidth, and a cluster file
// must describe it.
#include "heddle/runtime/rank_links.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "heddle/runtime/rank_network.h"
#include "local_transport.h"

namespace heddle {
namespace {

enum class Sharing { kNothing, kDirections, kPorts };

// A network with a clock of its own, common to all ranks: time passes when each of them waits.
struct Network {
  Network(Sharing who, size_t its_ranks) : sharing(who), ranks(its_ranks) {}

  // Arrival time of a message that is sent now.
  int64_t carry(int from, int to, size_t bytes) {
    constexpr int64_t kNsPerByte = 250;  // 4 MB/s
    std::vector<std::pair<int, int>> parts = {{from, to}};
    if (sharing == Sharing::kDirections) parts = {std::minmax(from, to)};
    if (sharing == Sharing::kPorts) parts = {{from, -1}, {-1, to}};
    int64_t at = now_ns;
    for (const auto& part : parts) at = std::max(at, free_at_ns[part]);
    at += static_cast<int64_t>(bytes) * kNsPerByte;
    for (const auto& part : parts) free_at_ns[part] = at;
    under_way.insert(at);
    waiting.clear();
    return at;
  }
  void arrive(int64_t at) {
    under_way.erase(under_way.find(at));
    waiting.clear();
  }
  void pass_time() {
    if (waiting.size() < ranks || under_way.empty()) return;
    now_ns = *under_way.begin();
    waiting.clear();
  }

  const Sharing sharing;
  std::mutex mutex;  // of all else, and of what ranks do with their transports
  size_t ranks;      // that are not done
  int64_t now_ns = 0;
  std::set<int> waiting;             // ranks that found nothing done since something happened
  std::multiset<int64_t> under_way;  // when messages arrive
  std::map<std::pair<int, int>, int64_t> free_at_ns;  // [part of the network]
};

// Delivers messages when the network has carried them.
class SlowTransport final : public Transport {
 public:
  SlowTransport(std::unique_ptr<Transport> below, Network& network)
      : below_(std::move(below)), network_(network) {}
  ~SlowTransport() override {
    const std::lock_guard lock(network_.mutex);
    network_.waiting.erase(below_->rank());
    --network_.ranks;
    network_.pass_time();
  }
  int rank() const override { return below_->rank(); }
  int size() const override { return below_->size(); }
  std::string host_name() const override { return below_->host_name(); }
  int max_tag() const override { return below_->max_tag(); }

  Status send(int to, int tag, std::span<const std::byte> data, int64_t token) override {
    const std::lock_guard lock(network_.mutex);
    under_way_.push_back({network_.carry(rank(), to, data.size()), to, tag, data, token});
    return {};
  }
  Status receive(int from, int tag, std::span<std::byte> data, int64_t token) override {
    const std::lock_guard lock(network_.mutex);
    network_.waiting.clear();
    return below_->receive(from, tag, data, token);
  }
  Status progress(std::vector<int64_t>& done) override {
    const std::lock_guard lock(network_.mutex);
    std::deque<Sent> left;
    for (const Sent& s : under_way_) {
      if (s.arrives_ns > network_.now_ns) {
        left.push_back(s);
        continue;
      }
      network_.arrive(s.arrives_ns);
      Status sent = below_->send(s.to, s.tag, s.data, s.token);
      if (!sent.ok()) return sent;
    }
    under_way_.swap(left);
    const size_t before = done.size();
    Status made = below_->progress(done);
    if (done.size() > before) {
      network_.waiting.clear();
    } else {
      network_.waiting.insert(rank());
      network_.pass_time();
    }
    return made;
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
  Network network(sharing, static_cast<size_t>(ranks));
  std::vector<RankLinks> seen(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  auto ends = test::make_local_transports(ranks);
  for (size_t r = 0; r < ends.size(); ++r) {
    threads.emplace_back([&, r] {
      SlowTransport transport(std::move(ends[r]), network);
      RankGroup group(transport);
      const auto now = [&network] {
        const std::lock_guard lock(network.mutex);
        return network.now_ns;
      };
      auto links = measure_links(group, {.bytes = {8, 1 << 16}, .seconds_per_size = 0, .clock_ns = now});
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

TEST(RankLinks, WhoSharesBandwidthIsFound) {
  for (const Sharing sharing : {Sharing::kNothing, Sharing::kDirections, Sharing::kPorts}) {
    SCOPED_TRACE(static_cast<int>(sharing));
    const RankLinks links = measured(3, sharing);
    ASSERT_EQ(links.pairs.size(), 3U);
    ASSERT_EQ(links.ports.size(), 3U);
    for (const RankLink& link : links.pairs) {
      EXPECT_NEAR(link.bytes_per_s, 4e6, 1);
      EXPECT_NEAR(link.both_ways, sharing == Sharing::kDirections ? 2 : 1, .01);
    }
    for (const RankPort& port : links.ports) {
      EXPECT_NEAR(port.out, sharing == Sharing::kPorts ? 1 : 0, .01);
      EXPECT_NEAR(port.in, sharing == Sharing::kPorts ? 1 : 0, .01);
    }
    EXPECT_EQ(describes_ports(links), sharing == Sharing::kPorts);
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
