#include "heddle/fleet/deployment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "data_plane_support.h"
#include "fleet_support.h"
#include "heddle/base/file.h"
#include "heddle/fleet/fleet_plan.h"
#include "heddle/fleet/ppipe_data.h"
#include "heddle/fleet/sweep.h"

namespace heddle {
namespace {

using testing::HasSubstr;

// One model of two blocks: 100 us each on "a" (times batch), 250 us on "b"; 1000 bytes between them.
Fleet two_class_fleet() {
  Fleet fleet;
  fleet.classes = {
      {.name = "a", .count = 4, .share_levels = 4, .devices_per_server = 2, .nic_bytes_per_s = 1e8},
      {.name = "b", .count = 3, .share_levels = 1, .devices_per_server = 1, .nic_bytes_per_s = 5e7}};
  FleetModel m;
  m.name = "m";
  m.blocks = 2;
  m.cut_bytes = {10, 1000, 10};
  m.slo_us = 5000;
  m.latency_us.resize(2);
  for (const double us : {100., 250.}) {
    auto& of_class = m.latency_us[us == 100. ? 0 : 1];
    for (int share = 1; share <= 4; ++share) {
      of_class.emplace_back();
      for (int batch = 1; batch <= 2; ++batch)
        of_class.back().push_back({us * share * batch, us * share * batch});
    }
  }
  fleet.models = {m};
  return fleet;
}

FleetPlan plan_of(std::vector<FleetPipeline> pipelines) {
  FleetPlan plan;
  plan.models.push_back({std::move(pipelines), 100});
  return plan;
}

TEST(Deploy, TimesTransfersAndServersAreTheFleets) {
  const auto fleet = two_class_fleet();
  const auto d = deploy(fleet, plan_of({{.partitions = {{0, 1, 1, 1, 3}, {1, 2, 0, 2, 5}}, .batch = 2}}));
  ASSERT_TRUE(d.ok()) << d.error().to_string();
  const auto& p = d->pipelines[0];
  EXPECT_EQ(p.partitions[0].run_ns, (std::vector<TimeNs>{250'000, 500'000}));
  EXPECT_EQ(p.partitions[1].run_ns, (std::vector<TimeNs>{200'000, 400'000}));
  EXPECT_EQ(p.partitions[1].transfer_ns, (std::vector<TimeNs>{20'000, 40'000})) << "the slower NIC: 50 MB/s";
  EXPECT_TRUE(p.partitions[0].transfer_ns.empty());
  EXPECT_EQ(d->models[0].slo_ns, 5'000'000);
  EXPECT_EQ(d->classes[0].used, 3u) << "five halves";
  EXPECT_EQ(d->num_servers, 5u) << "three devices of b on one each, three of a by two";
}

TEST(Deploy, SharesFillWholeDevicesOfOnePositionOnly) {
  // Halves and quarters of one position: 1/2 + 1/4 + 1/4 fill one device; the second position's half takes
  // another.
  const auto fleet = two_class_fleet();
  const auto d = deploy(fleet, plan_of({{.partitions = {{0, 2, 0, 2, 1}}},
                                        {.partitions = {{0, 1, 0, 4, 2}, {1, 2, 0, 2, 1}}}}));
  ASSERT_TRUE(d.ok()) << d.error().to_string();
  EXPECT_EQ(d->classes[0].used, 2u);
  EXPECT_EQ(d->devices[0].device, d->devices[1].device);
  EXPECT_EQ(d->devices[1].device, d->devices[2].device);
  EXPECT_NE(d->devices[3].device, d->devices[0].device);
}

// Of four devices two send and two receive. On each server one of both keeps its links half as busy.
TEST(Deploy, PoolsThatSendAndPoolsThatReceiveShareServers) {
  const auto fleet = two_class_fleet();
  auto d = deploy(fleet, plan_of({{.partitions = {{0, 1, 0, 1, 2}, {1, 2, 1, 1, 1}}},
                                  {.partitions = {{0, 1, 1, 1, 2}, {1, 2, 0, 1, 2}}}}));
  ASSERT_TRUE(d.ok()) << d.error().to_string();
  const auto servers = [&](size_t pipeline, size_t partition) {
    const auto& pool = d->pipelines[pipeline].partitions[partition];
    std::set<uint32_t> all;
    for (uint32_t i = 0; i < pool.num_devices; ++i) all.insert(d->devices[pool.first_device + i].server);
    return all;
  };
  EXPECT_EQ(servers(0, 0).size(), 2u);
  EXPECT_EQ(servers(0, 0), servers(1, 1));
  EXPECT_EQ(d->num_servers, 5u);
  put_on_servers(*d, ServerOrder::kConsecutive);
  EXPECT_EQ(servers(0, 0).size(), 1u);
  EXPECT_NE(servers(0, 0), servers(1, 1));
  EXPECT_EQ(d->num_servers, 5u);
}

// No server holds more devices than the class's servers do.
TEST(Deploy, ServersHoldWhatTheyHaveRoomFor) {
  Random random(4);
  for (int i = 0; i < 100; ++i) {
    Deployment d = random_deployment(random);
    for (auto& c : d.classes) {
      c.per_server = 1 + static_cast<uint32_t>(random.below(4));
      c.devices += static_cast<int64_t>(random.below(4));
    }
    for (const auto order : {ServerOrder::kSpread, ServerOrder::kConsecutive}) {
      put_on_servers(d, order);
      std::map<uint32_t, std::set<uint32_t>> devices;
      for (const auto& v : d.devices) devices[v.server].insert(v.device);
      EXPECT_EQ(devices.size(), d.num_servers);
      for (const auto& [server, on] : devices) {
        const auto c = std::ranges::find_if(d.devices, [server = server](const auto& v) {
                         return v.server == server;
                       })->device_class;
        EXPECT_LE(on.size(), d.classes[c].per_server);
      }
      EXPECT_TRUE(check_deployment(d).ok());
    }
  }
}

TEST(Deploy, WhatDoesNotFitIsNamed) {
  const auto fleet = two_class_fleet();
  const auto message = [&](const FleetPlan& plan) {
    const auto d = deploy(fleet, plan);
    return d.ok() ? std::string("accepted") : d.error().to_string();
  };
  EXPECT_THAT(message(plan_of({{.partitions = {{0, 2, 1, 1, 4}}}})),
              HasSubstr("class 'b': the plan takes 4"));
  EXPECT_THAT(message(plan_of({{.partitions = {{0, 2, 0, 1, 1}}, .batch = 3}})),
              HasSubstr("model 'm', pipeline 0, partition 0: the fleet has no time for blocks 0 to 2"));
  EXPECT_THAT(message(plan_of({{.partitions = {{0, 2, 7, 1, 1}}}})), HasSubstr("out of range"));
  EXPECT_THAT(message(plan_of({{.partitions = {{0, 3, 0, 1, 1}}}})), HasSubstr("out of range"));
  EXPECT_THAT(message(plan_of({{.partitions = {{0, 2, 0, 1, 0}}}})), HasSubstr("out of range"));
  EXPECT_THAT(message(plan_of({{.partitions = {}}})), HasSubstr("1 to 4 partitions"));
  EXPECT_THAT(message({}), HasSubstr("the plan has 0 models"));
}

// No whole device is overfilled, and every published plan can be laid out and served.
TEST(Deploy, EveryPublishedPlanIsServedAtALowLoad) {
  const char* shared = std::getenv("HEDDLE_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "HEDDLE_SHARED is not set";
  const std::string folder = std::string(shared) + "/data/ppipe";
  const auto data = read_ppipe_data(folder);
  if (!data.ok()) GTEST_SKIP() << data.error().to_string();
  const auto references = read_ppipe_references(*data, folder);
  ASSERT_TRUE(references.ok()) << references.error().to_string();
  EXPECT_EQ(references->size(), 72u);
  for (const auto& r : *references) {
    const auto d = deploy(r.fleet, r.plan);
    ASSERT_TRUE(d.ok()) << r.plan_id << ": " << d.error().to_string();
    std::map<uint32_t, int> units;
    for (const auto& v : d->devices) units[v.device] += 12 / static_cast<int>(v.share);
    for (const auto& [device, sum] : units) ASSERT_LE(sum, 12) << r.plan_id << " device " << device;
    SweepOptions o;
    o.load_factors = {.3};
    o.duration_s = .5;
    o.threads = 1;
    const auto points = sweep_loads(*d, o);
    ASSERT_TRUE(points.ok());
    EXPECT_GT((*points)[0].result.total.attainment(), .99) << r.plan_id;
  }
}

TEST(Sweep, DoesNotDependOnTheThreads) {
  const auto fleet = two_class_fleet();
  const auto d = deploy(fleet, plan_of({{.partitions = {{0, 1, 1, 1, 3}, {1, 2, 0, 1, 2}}, .batch = 1}}));
  ASSERT_TRUE(d.ok());
  SweepOptions o;
  o.load_factors = {10, 50, 90, 120};
  o.duration_s = 1;
  o.simulation.noise.jitter = .1;
  o.threads = 1;
  const auto one = sweep_loads(*d, o);
  o.threads = 4;
  const auto four = sweep_loads(*d, o);
  ASSERT_TRUE(one.ok() && four.ok());
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ((*one)[i].load_factor, (*four)[i].load_factor);
    EXPECT_EQ((*one)[i].result.total.in_time, (*four)[i].result.total.in_time);
    EXPECT_EQ((*one)[i].result.end, (*four)[i].result.end);
    EXPECT_EQ((*one)[i].result.latency.mean_ns(), (*four)[i].result.latency.mean_ns());
  }
  o.load_factors = {-1};
  EXPECT_FALSE(sweep_loads(*d, o).ok());
}

TEST(Sweep, MoreInTimeThanTheBoundIsAnErrorThatKeepsFleetPlanAndArrivals) {
  const auto fleet = two_class_fleet();
  const auto plan = plan_of({{.partitions = {{0, 1, 1, 1, 3}, {1, 2, 0, 1, 2}}, .batch = 1}});
  const auto d = deploy(fleet, plan);
  ASSERT_TRUE(d.ok());
  SweepOptions o;
  o.load_factors = {.5};
  o.duration_s = 1;
  o.bound = true;
  o.fleet = &fleet;
  o.plan = &plan;
  auto points = sweep_loads(*d, o);
  ASSERT_TRUE(points.ok()) << points.error().to_string();
  SweepPoint wrong = points->front();
  ASSERT_GT(wrong.result.models[0].requests.in_time, 0u);
  wrong.bound[0] = wrong.result.models[0].requests.in_time - 1;
  const std::vector<Arrival> arrivals = {{1'234'567, 0}};
  const auto status = check_point(wrong, arrivals, o);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::kInternal);
  const std::string text = status.error().to_string();
  EXPECT_NE(text.find("requests in time are more than the bound, " + std::to_string(wrong.bound[0])),
            std::string::npos)
      << text;
  const std::string name = kept_files(text);
  const auto kept = read_fleet(name + "-fleet.json");
  ASSERT_TRUE(kept.ok()) << text;
  EXPECT_TRUE(read_fleet_plan(name + "-plan.json", *kept).ok());
  const auto csv = read_file(name + "-arrivals.csv");
  ASSERT_TRUE(csv.ok());
  EXPECT_EQ(*csv, "time_us,model\n1234.567," + fleet.models[0].name + "\n");
  for (const char* end : {"-fleet.json", "-plan.json", "-arrivals.csv"}) std::filesystem::remove(name + end);
  o.fleet = nullptr;
  o.plan = nullptr;
  EXPECT_NE(check_point(wrong, arrivals, o).error().to_string().find("report this with the fleet file"),
            std::string::npos);
}

TEST(Sweep, TheGreatestLoadIsFoundByBisection) {
  const std::vector<double> grid = {.1, .2, .3, .4, .5};
  for (size_t n = 0; n <= grid.size(); ++n) {
    std::set<size_t> asked;
    const double load = greatest_load(grid, [&](size_t i) {
      EXPECT_TRUE(asked.insert(i).second) << "asked twice";
      return i < n;
    });
    EXPECT_EQ(load, n == 0 ? 0 : grid[n - 1]);
    EXPECT_LE(asked.size(), 3u);
  }
}

}  // namespace
}  // namespace heddle
