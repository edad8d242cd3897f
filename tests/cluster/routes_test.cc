#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "heddle/base/random.h"
#include "heddle/cluster/cluster.h"

namespace heddle {
namespace {

constexpr double kMessage = 1 << 20;

struct Best {
  double time_us = std::numeric_limits<double>::infinity();
  std::vector<int> links;
};

// Every simple path, in the definition's own words: least time for 1 MiB, then fewest hops, then smallest
// link ids.
Best best_path(const Cluster& c, NodeId from, NodeId to, bool through_devices) {
  Best best;
  std::vector<bool> seen(c.nodes().size(), false);
  std::vector<int> path;
  const std::function<void(NodeId, double, double)> walk = [&](NodeId at, double latency, double bandwidth) {
    if (at == to) {
      const double time = path.empty() ? 0 : latency + kMessage / bandwidth * 1e6;
      const auto key = std::tuple(time, path.size(), path);
      if (key < std::tuple(best.time_us, best.links.size(), best.links)) best = {time, path};
      return;
    }
    if (at != from && !through_devices && c.node(at).kind == Node::Kind::kDevice) return;
    seen[at.index()] = true;
    for (size_t i = 0; i < c.links().size(); ++i) {
      const Link& l = c.links()[i];
      NodeId next;
      if (l.a == at) next = l.b;
      if (l.b == at && l.duplex != Duplex::kOneWay) next = l.a;
      if (!next.valid() || seen[next.index()]) continue;
      double rate = l.bytes_per_s;
      if (l.bus.valid() && c.bus(l.bus).bytes_per_s > 0) rate = std::min(rate, c.bus(l.bus).bytes_per_s);
      path.push_back(static_cast<int>(i));
      walk(next, latency + l.latency_us, std::min(bandwidth, rate));
      path.pop_back();
    }
    seen[at.index()] = false;
  };
  walk(from, 0, std::numeric_limits<double>::infinity());
  return best;
}

std::shared_ptr<const Cluster> random_cluster(Random& rng) {
  ClusterBuilder b("random");
  std::vector<NodeId> nodes;
  std::vector<HostId> hosts;
  for (int i = 0; i < 2; ++i) {
    hosts.push_back(b.add_host({.name = "h" + std::to_string(i)}));
    nodes.push_back(b.host_node(hosts.back()));
  }
  for (int i = 0; i < 3; ++i) {
    Device d;
    d.name = "d" + std::to_string(i);
    d.host = hosts[rng.below(2)];
    nodes.push_back(b.device_node(b.add_device(d)));
  }
  for (int i = 0; i < 2; ++i) nodes.push_back(b.add_switch("s" + std::to_string(i)));
  const BusId bus = b.add_bus({.name = "bus", .bytes_per_s = rng.chance(0.5) ? 2e9 : 0});
  for (int64_t i = rng.between(4, 12); i > 0; --i) {
    const size_t x = rng.below(nodes.size()), y = rng.below(nodes.size());
    if (x == y) continue;
    // Powers of two, so that sums of latencies are exact in any order; few values, so that ties happen.
    Link l{
        .a = nodes[x], .b = nodes[y], .bytes_per_s = 1e9 * static_cast<double>(int64_t{1} << rng.below(4))};
    l.latency_us = static_cast<double>(rng.below(3)) * 512;
    l.duplex = rng.chance(0.3) ? Duplex::kOneWay : Duplex::kFull;
    if (rng.chance(0.2)) l.bus = bus;
    b.add_link(l);
  }
  return b.build().value();
}

TEST(Routes, EqualBruteForceOverAllSimplePathsOnRandomTopologies) {
  Random rng(7);
  int compared = 0, relayed = 0;
  for (int round = 0; round < 400; ++round) {
    const auto c = random_cluster(rng);
    for (size_t i = 0; i < c->nodes().size(); ++i) {
      for (size_t j = 0; j < c->nodes().size(); ++j) {
        Best expected = best_path(*c, NodeId(i), NodeId(j), false);
        if (expected.time_us == std::numeric_limits<double>::infinity()) {
          expected = best_path(*c, NodeId(i), NodeId(j), true);
          relayed += expected.time_us < 1e300;
        }
        const Route* route = c->route(NodeId(i), NodeId(j));
        ASSERT_EQ(route != nullptr, expected.time_us < 1e300);
        if (route == nullptr) continue;
        std::vector<int> links;
        for (const Hop& hop : route->hops) links.push_back(hop.link.value);
        ASSERT_EQ(links, expected.links) << "round " << round << " from " << i << " to " << j;
        ASSERT_DOUBLE_EQ(route->time_us(1 << 20), expected.time_us);
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 5000);
  EXPECT_GT(relayed, 10) << "the instances must contain pairs that only a device joins";
}

ClusterBuilder with_gpus(int n, HostId& host) {
  ClusterBuilder b("test");
  host = b.add_host({.name = "host", .memory_bytes = 1000});
  for (int i = 0; i < n; ++i) {
    Device d;
    d.name = "gpu" + std::to_string(i);
    d.host = host;
    d.memory_bytes = 100 + i;
    b.add_device(d);
  }
  return b;
}

TEST(Routes, ABusLimitsTheBandwidthOfItsLinks) {
  HostId host;
  ClusterBuilder b = with_gpus(1, host);
  const BusId bus = b.add_bus({.name = "bus", .bytes_per_s = 5e9});
  b.add_link({.a = b.host_node(host),
              .b = b.device_node(DeviceId(0)),
              .bytes_per_s = 9e9,
              .latency_us = 3,
              .bus = bus});
  const auto c = b.build().value();
  EXPECT_EQ(c->load_route(DeviceId(0))->bytes_per_s, 5e9);
  EXPECT_DOUBLE_EQ(c->load_route(DeviceId(0))->time_us(5'000'000), 3 + 1000);
}

TEST(Routes, AOneWayLinkHasNoWayBack) {
  HostId host;
  ClusterBuilder b = with_gpus(2, host);
  b.add_link({.a = b.device_node(DeviceId(0)),
              .b = b.device_node(DeviceId(1)),
              .bytes_per_s = 1e9,
              .duplex = Duplex::kOneWay});
  const auto c = b.build().value();
  EXPECT_NE(c->route(DeviceId(0), DeviceId(1)), nullptr);
  EXPECT_EQ(c->route(DeviceId(1), DeviceId(0)), nullptr);
}

TEST(Routes, ASlowDirectLinkIsNotReplacedByAFasterWayThroughAnotherDevice) {
  HostId host;
  ClusterBuilder b = with_gpus(3, host);
  const auto join = [&](int x, int y, double rate) {
    return b.add_link(
        {.a = b.device_node(DeviceId(x)), .b = b.device_node(DeviceId(y)), .bytes_per_s = rate});
  };
  const LinkId direct = join(0, 2, 1e9);
  join(0, 1, 9e9);
  join(1, 2, 9e9);
  const auto c = b.build().value();
  ASSERT_EQ(c->route(DeviceId(0), DeviceId(2))->hops.size(), 1U);
  EXPECT_EQ(c->route(DeviceId(0), DeviceId(2))->hops[0].link, direct);
}

TEST(Routes, WithoutADirectLinkDevicesRelayAtTheLeastBandwidth) {
  HostId host;
  ClusterBuilder b = with_gpus(3, host);
  b.add_link({.a = b.device_node(DeviceId(0)),
              .b = b.device_node(DeviceId(1)),
              .bytes_per_s = 9e9,
              .latency_us = 1});
  b.add_link({.a = b.device_node(DeviceId(2)),
              .b = b.device_node(DeviceId(1)),
              .bytes_per_s = 2e9,
              .latency_us = 4});
  const auto c = b.build().value();
  const Route* r = c->route(DeviceId(0), DeviceId(2));
  ASSERT_EQ(r->hops.size(), 2U);
  EXPECT_TRUE(r->hops[0].forward);
  EXPECT_FALSE(r->hops[1].forward);
  EXPECT_EQ(r->bytes_per_s, 2e9);
  EXPECT_EQ(r->latency_us, 5);
}

Device cpu(const std::string& name, HostId host, std::vector<int> cores) {
  Device d;
  d.name = name;
  d.kind = DeviceKind::kCpu;
  d.host = host;
  d.cores = std::move(cores);
  return d;
}

TEST(Cluster, CpuDevicesOverlapWhereTheyShareACoreOfOneHost) {
  ClusterBuilder b("test");
  const HostId x = b.add_host({.name = "x", .memory_bytes = 64});
  const HostId y = b.add_host({.name = "y"});
  b.add_device(cpu("all", x, {3, 0, 1, 2}));
  b.add_device(cpu("low", x, {0, 1}));
  b.add_device(cpu("high", x, {2, 3}));
  b.add_device(cpu("other", y, {0, 1}));
  b.add_device(cpu("unknown", x, {}));
  const auto c = b.build().value();
  const auto overlaps = [&](int d) {
    std::vector<int> ids;
    for (DeviceId o : c->overlaps(DeviceId(d))) ids.push_back(o.value);
    return ids;
  };
  EXPECT_EQ(overlaps(0), (std::vector<int>{1, 2}));
  EXPECT_EQ(overlaps(1), (std::vector<int>{0}));
  EXPECT_EQ(overlaps(2), (std::vector<int>{0}));
  EXPECT_TRUE(overlaps(3).empty());
  EXPECT_TRUE(overlaps(4).empty());
  EXPECT_EQ(c->memory_pool(DeviceId(0)), c->memory_pool(DeviceId(4)));
  EXPECT_NE(c->memory_pool(DeviceId(0)), c->memory_pool(DeviceId(3)));
  EXPECT_EQ(c->memory_pool_bytes(c->memory_pool(DeviceId(0))), 64);
  EXPECT_EQ(c->num_memory_pools(), 2);
}

TEST(Cluster, ACpuWithoutLinksSitsInItsHostsMemory) {
  HostId host;
  ClusterBuilder b = with_gpus(1, host);
  const DeviceId c0 = b.add_device(cpu("c0", host, {0})), c1 = b.add_device(cpu("c1", host, {1}));
  b.add_link({.a = b.host_node(host), .b = b.device_node(DeviceId(0)), .bytes_per_s = 1e9});
  const auto c = b.build().value();
  EXPECT_EQ(c->device_node(c0), c->host_node(host));
  EXPECT_EQ(c->route(c0, DeviceId(0))->hops.size(), 1U);
  EXPECT_TRUE(c->route(c0, c1)->hops.empty());
  EXPECT_EQ(c->route(c0, c1)->time_us(1 << 30), 0);
  EXPECT_TRUE(c->load_route(c0)->hops.empty());
}

TEST(Cluster, ACpuWithALinkPaysForTheHandOverButNotForItsParameters) {
  ClusterBuilder b("test");
  const HostId host = b.add_host({.name = "host"});
  const DeviceId c0 = b.add_device(cpu("c0", host, {0})), c1 = b.add_device(cpu("c1", host, {1}));
  for (DeviceId d : {c0, c1})
    b.add_link({.a = b.host_node(host), .b = b.device_node(d), .bytes_per_s = 1e9, .latency_us = 2});
  const auto c = b.build().value();
  EXPECT_EQ(c->route(c0, c1)->latency_us, 4);
  EXPECT_TRUE(c->load_route(c0)->hops.empty());
}

TEST(Cluster, EachNonCpuDeviceIsItsOwnMemoryPool) {
  HostId host;
  const auto c = with_gpus(2, host).build().value();
  EXPECT_EQ(c->memory_pool_bytes(c->memory_pool(DeviceId(0))), 100);
  EXPECT_EQ(c->memory_pool_bytes(c->memory_pool(DeviceId(1))), 101);
}

// The builder is the last line of defence: what no reader lets through is refused here too.
TEST(ClusterBuilder, RefusesWhatIsNoCluster) {
  const auto message = [](const std::function<void(ClusterBuilder&, HostId)>& spoil) {
    HostId host;
    ClusterBuilder b = with_gpus(2, host);
    spoil(b, host);
    const auto built = b.build();
    return built.ok() ? "built" : built.error().to_string();
  };
  const auto link = [](ClusterBuilder& b, Link l) {
    l.a = b.device_node(DeviceId(0));
    l.b = b.device_node(DeviceId(1));
    b.add_link(l);
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(message([&](auto& b, HostId) { link(b, {.name = "l", .bytes_per_s = 0}); }),
            "the bandwidth of link 'l' is 0; expected a finite number above 0");
  EXPECT_EQ(message([&](auto& b, HostId) { link(b, {.bytes_per_s = 1, .latency_us = nan}); }),
            "the latency of link 0 is nan; expected a finite number of at least 0");
  EXPECT_EQ(message([&](auto& b, HostId) { link(b, {.name = "l", .bytes_per_s = 1, .bus = BusId(3)}); }),
            "link 'l' is on no bus of this cluster");
  EXPECT_EQ(message([&](auto& b, HostId) {
              b.add_link({.name = "l", .a = NodeId(0), .b = NodeId(77), .bytes_per_s = 1});
            }),
            "link 'l' ends at no host, device or switch of this cluster");
  EXPECT_EQ(
      message([&](auto& b, HostId) { b.add_switch("gpu0"); }),
      "two hosts, devices or switches are named 'gpu0'; links refer to them by name, so each needs its own");
  EXPECT_EQ(message([&](auto& b, HostId) { b.add_switch("a\x01"); }),
            "the name of a host, device or switch is not UTF-8 text of at most 200 bytes without control "
            "characters");
  EXPECT_EQ(message([&](auto& b, HostId) { b.add_device({.name = "x"}); }),
            "device 'x' is on no host of this cluster");
  EXPECT_EQ(message([&](auto& b, HostId h) { b.add_device({.name = "x", .host = h, .speed = 0}); }),
            "the speed of device 'x' is 0; expected a finite number above 0");
  EXPECT_EQ(message([&](auto& b, HostId h) { b.add_device({.name = "x", .host = h, .cores = {1}}); }),
            "device 'x' has cores, but only a cpu may; remove them");
  EXPECT_EQ(message([&](auto& b, HostId h) {
              b.add_device(cpu("x", h, {1, 1}));
            }),
            "device 'x' names core 1 twice");
  EXPECT_EQ(ClusterBuilder("empty").build().error().to_string(),
            "the cluster has no device; add at least one");
}

TEST(ClusterBuilder, RefusesTopologiesWhoseRoutesWouldFillTheMemory) {
  ClusterBuilder b("chain");
  const HostId host = b.add_host({.name = "host"});
  b.add_device({.name = "gpu", .host = host});
  NodeId last = b.host_node(host);
  for (int i = 0; i < 1000; ++i) {
    const NodeId next = b.add_switch("s" + std::to_string(i));
    b.add_link({.a = last, .b = next, .bytes_per_s = 1e9});
    last = next;
  }
  const auto built = b.build();
  ASSERT_FALSE(built.ok());
  EXPECT_EQ(built.error().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace heddle
