#include "heddle/cluster/measured_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heddle/cluster/cluster_yaml.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

// g0 and g1 behind a switch and on one bus; g2 on a link of its own; g3 without any.
std::shared_ptr<const Cluster> declared() {
  auto cluster = parse_cluster_yaml(R"(
name: four
hosts: [{name: h}]
devices:
  - {name: c, kind: cpu}
  - {name: g0, kind: gpu}
  - {name: g1, kind: gpu}
  - {name: g2, kind: gpu}
  - {name: g3, kind: gpu}
switches: [s]
buses:
  - {name: root, bandwidth: 20GB/s, duplex: full}
  - {name: empty, bandwidth: 1GB/s}
links:
  - {name: up, from: h, to: s, bandwidth: 8GB/s, latency: 4us}
  - {name: l0, from: s, to: g0, bandwidth: 16GB/s, latency: 6us, bus: root}
  - {name: l1, from: s, to: g1, bandwidth: 16GB/s, latency: 6us, bus: root}
  - {name: l2, from: h, to: g2, bandwidth: 16GB/s, latency: 10us}
  - {name: p, from: g0, to: g1, bandwidth: 16GB/s, latency: 5us}
)",
                                    "four.yaml");
  EXPECT_TRUE(cluster.ok()) << cluster.error().to_string();
  return *cluster;
}

class MeasuredLinksTest : public ::testing::Test {
 protected:
  DeviceId device(const char* name) const { return before_->find_device(name); }
  void measured(const char* name, double latency_us, double bytes_per_s) {
    links_.ways.push_back({DeviceId(), device(name), true, latency_us, bytes_per_s});
    links_.ways.push_back({device(name), DeviceId(), true, latency_us, bytes_per_s});
  }
  void edit() {
    auto edited = with_measured_links(*before_, links_);
    ASSERT_TRUE(edited.ok()) << edited.error().to_string();
    after_ = *edited;
    // It is a cluster file like any other, and of the same devices.
    const auto text = cluster_to_yaml(*after_);
    const auto again = parse_cluster_yaml(text, "again.yaml");
    ASSERT_TRUE(again.ok()) << again.error().to_string();
    EXPECT_EQ(cluster_to_yaml(**again), text);
    for (size_t d = 0; d < before_->num_devices(); ++d)
      EXPECT_EQ(after_->device(DeviceId(d)).name, before_->device(DeviceId(d)).name);
  }
  const Link& link(const std::string& name) const {
    for (const Link& l : after_->links()) {
      if (l.name == name) return l;
    }
    throw std::logic_error("no link " + name);
  }
  std::string bus_of(const std::string& name) const {
    const BusId bus = link(name).bus;
    return bus.valid() ? after_->bus(bus).name : "";
  }

  std::shared_ptr<const Cluster> before_ = declared(), after_;
  MeasuredLinks links_;
};

TEST_F(MeasuredLinksTest, ALinkTakesTheSlowerDirectionsRateAndWhatWasNotMeasuredStays) {
  links_.ways = {{DeviceId(), device("g2"), true, 7, 12.3456e9},
                 {device("g2"), DeviceId(), true, 9.8765, 13e9}};
  edit();
  EXPECT_EQ(link("l2").bytes_per_s, 12.3e9);
  EXPECT_EQ(link("l2").latency_us, 9.88);
  EXPECT_EQ(link("l1").bytes_per_s, 16e9);
  EXPECT_EQ(bus_of("l1"), "root");
  EXPECT_EQ(after_->links().size(), before_->links().size());
  EXPECT_EQ(after_->buses().size(), 2u);
}

TEST_F(MeasuredLinksTest, OnAWayOfSeveralLinksTheLastOneIsMeasuredAndTheOthersCarryAsMuch) {
  measured("g0", 9, 12e9);
  edit();
  EXPECT_EQ(link("l0").bytes_per_s, 12e9);
  EXPECT_EQ(link("l0").latency_us, 5);
  EXPECT_EQ(link("up").bytes_per_s, 12e9);
  EXPECT_EQ(after_->load_route(device("g0"))->bytes_per_s, 12e9);
  EXPECT_EQ(after_->load_route(device("g0"))->latency_us, 9);
  // Whether it shares anything with g1 was not measured.
  EXPECT_EQ(bus_of("l0"), "root");
}

TEST_F(MeasuredLinksTest, WhatSharesNothingHasNoBus) {
  measured("g0", 10, 12e9);
  measured("g1", 10, 12e9);
  edit();
  EXPECT_EQ(bus_of("l0"), "");
  EXPECT_EQ(bus_of("l1"), "");
  // One that nothing was on is none that was measured.
  ASSERT_EQ(after_->buses().size(), 1u);
  EXPECT_EQ(after_->buses()[0].name, "empty");
}

TEST_F(MeasuredLinksTest, ASharedSetKeepsItsBusWithTheRateThatWasMeasured) {
  measured("g0", 10, 12e9);
  measured("g1", 10, 11e9);
  links_.shared = {{{device("g0"), device("g1")}, 13.04e9}};
  links_.half_duplex = {device("g1")};
  edit();
  EXPECT_EQ(bus_of("l0"), "root");
  EXPECT_EQ(bus_of("l1"), "root");
  EXPECT_EQ(after_->bus(link("l0").bus).bytes_per_s, 13e9);
  EXPECT_EQ(after_->bus(link("l0").bus).duplex, Duplex::kHalf);
  EXPECT_EQ(link("l0").duplex, Duplex::kFull);
  EXPECT_EQ(link("l1").duplex, Duplex::kHalf);
  EXPECT_EQ(link("up").bytes_per_s, 13e9);
}

TEST_F(MeasuredLinksTest, ASetThatNoBusJoinedGetsOneThatIsNoSlowerThanItsLinks) {
  measured("g1", 10, 12e9);
  measured("g2", 10, 14e9);
  links_.shared = {{{device("g1"), device("g2")}, 11e9}};
  edit();
  EXPECT_EQ(bus_of("l1"), "shared0");
  EXPECT_EQ(bus_of("l2"), "shared0");
  EXPECT_EQ(bus_of("l0"), "root");
  EXPECT_EQ(after_->bus(link("l1").bus).bytes_per_s, 14e9);
  EXPECT_EQ(after_->load_route(device("g2"))->bytes_per_s, 14e9);
}

TEST_F(MeasuredLinksTest, PeersAndDevicesWithoutALinkGetOne) {
  measured("g3", 8, 5e9);
  const auto pair = [&](const char* a, const char* b, bool direct) {
    links_.ways.push_back({device(a), device(b), direct, 3, 40e9});
    links_.ways.push_back({device(b), device(a), direct, 2, 50e9});
  };
  pair("g0", "g1", true);
  pair("g0", "g2", true);
  pair("g1", "g2", false);
  edit();
  EXPECT_EQ(link("p").bytes_per_s, 40e9);
  EXPECT_EQ(link("p").latency_us, 3);
  EXPECT_EQ(after_->route(device("g0"), device("g2"))->hops.size(), 1u);
  // Two copies are no link.
  EXPECT_EQ(after_->links().size(), before_->links().size() + 2);
  EXPECT_EQ(after_->load_route(device("g3"))->bytes_per_s, 5e9);
  EXPECT_EQ(before_->load_route(device("g3")), nullptr);
}

TEST_F(MeasuredLinksTest, AWayWithoutARateIsRefused) {
  for (const MeasuredWay& way : {MeasuredWay{DeviceId(), device("g0"), true, 1, 0},
                                 MeasuredWay{DeviceId(), device("g0"), true, -1, 1e9},
                                 MeasuredWay{DeviceId(), DeviceId(), true, 1, 1e9}}) {
    links_.ways = {way};
    const auto edited = with_measured_links(*before_, links_);
    ASSERT_FALSE(edited.ok());
    EXPECT_THAT(edited.error().to_string(), HasSubstr("expected a device at one end"));
  }
}

}  // namespace
}  // namespace heddle
