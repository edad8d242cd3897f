// Small deployments for the data plane's tests.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "heddle/fleet/deployment.h"
#include "heddle/fleet/random.h"

namespace heddle {

inline constexpr TimeNs kMilli = 1'000'000;

struct PoolSpec {
  uint32_t devices = 1;
  std::vector<TimeNs> run_ns;
  std::vector<TimeNs> transfer_ns;
};

// One model. Every virtual device is a whole device on its own server; one class per partition position.
inline Deployment small_deployment(TimeNs slo_ns, const std::vector<std::vector<PoolSpec>>& pipelines) {
  Deployment d;
  d.models.push_back({"m", slo_ns, 1000, {}});
  for (const auto& spec : pipelines) {
    DeployedPipeline p;
    p.batch = static_cast<uint32_t>(spec[0].run_ns.size());
    p.rate_per_s = 1;
    for (uint32_t k = 0; k < spec.size(); ++k) {
      if (d.classes.size() <= k) d.classes.push_back({"c" + std::to_string(k), 0, 0, 0});
      DevicePool pool;
      pool.first_device = static_cast<uint32_t>(d.devices.size());
      pool.num_devices = spec[k].devices;
      pool.run_ns = spec[k].run_ns;
      pool.transfer_ns = spec[k].transfer_ns;
      pool.role = {"m", static_cast<int>(k), static_cast<int>(k) + 1, d.classes[k].name, 1};
      d.devices.insert(d.devices.end(), pool.num_devices, VirtualDevice{.device_class = k});
      d.classes[k].devices += pool.num_devices;
      d.classes[k].used += pool.num_devices;
      p.partitions.push_back(std::move(pool));
    }
    d.models[0].pipelines.push_back(static_cast<uint32_t>(d.pipelines.size()));
    d.pipelines.push_back(std::move(p));
  }
  uint32_t first = 0;
  for (uint32_t c = 0; c < d.classes.size(); ++c) {
    d.classes[c].first_device = first;
    for (auto& v : d.devices)
      if (v.device_class == c) v.device = v.server = first++;
  }
  d.num_servers = first;
  EXPECT_TRUE(check_deployment(d).ok());
  return d;
}

// Up to three models with up to three pipelines of up to three partitions; servers are shared at random.
inline Deployment random_deployment(Random& random) {
  Deployment d;
  const auto models = 1 + random.below(3);
  for (uint32_t c = 0; c < 2; ++c) d.classes.push_back({"c" + std::to_string(c), 0, 0, 0});
  d.num_servers = 1 + static_cast<uint32_t>(random.below(6));
  for (uint32_t m = 0; m < models; ++m) {
    d.models.push_back({"m" + std::to_string(m), 0, 0, {}});
    TimeNs longest = 0;
    for (uint64_t n = 1 + random.below(3); n-- > 0;) {
      DeployedPipeline p;
      p.model = m;
      p.batch = 1 + static_cast<uint32_t>(random.below(4));
      p.rate_per_s = 1 + static_cast<double>(random.below(100));
      TimeNs sum = 0;
      const auto partitions = 1 + random.below(3);
      for (uint32_t k = 0; k < partitions; ++k) {
        DevicePool pool;
        pool.first_device = static_cast<uint32_t>(d.devices.size());
        pool.num_devices = 1 + static_cast<uint32_t>(random.below(4));
        const auto c = static_cast<uint32_t>(random.below(2));
        const auto base = 1000 + static_cast<TimeNs>(random.below(20000));
        const auto send = 100 + static_cast<TimeNs>(random.below(5000));
        for (uint32_t b = 1; b <= p.batch; ++b) {
          pool.run_ns.push_back(base + static_cast<TimeNs>(b) * base / 3);
          if (k > 0) pool.transfer_ns.push_back(send * b);
        }
        sum += pool.run_ns.back() + (k > 0 ? pool.transfer_ns.back() : 0);
        pool.role = {d.models[m].name, static_cast<int>(k), static_cast<int>(k) + 1, d.classes[c].name, 1};
        for (uint32_t i = 0; i < pool.num_devices; ++i) {
          const uint32_t device = d.classes[c].used++;
          ++d.classes[c].devices;
          d.devices.push_back({c, device, static_cast<uint32_t>(random.below(d.num_servers)), 1});
        }
        p.partitions.push_back(std::move(pool));
      }
      longest = std::max(longest, sum);
      d.models[m].pipelines.push_back(static_cast<uint32_t>(d.pipelines.size()));
      d.pipelines.push_back(std::move(p));
    }
    d.models[m].slo_ns = longest + static_cast<TimeNs>(random.below(static_cast<uint64_t>(longest)));
  }
  d.classes[1].first_device = d.classes[0].used;
  for (auto& v : d.devices) v.device += d.classes[v.device_class].first_device;
  EXPECT_TRUE(check_deployment(d).ok());
  return d;
}

}  // namespace heddle
