#include "heddle/fleet/deployment.h"

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <tuple>

#include "servers.h"

namespace heddle {
namespace {

constexpr TimeNs kLongest = 3600 * kNsPerSecond;
constexpr int64_t kMostVirtualDevices = 4'000'000;

std::string place_of(const Deployment& d, size_t pipeline, size_t partition) {
  const uint32_t model = d.pipelines[pipeline].model;
  return (model < d.models.size() ? "model '" + d.models[model].name + "', " : std::string()) + "pipeline " +
         std::to_string(pipeline) + ", partition " + std::to_string(partition);
}

Status check_times(const std::vector<TimeNs>& times, uint32_t batch, const char* what,
                   const std::string& place) {
  if (times.size() < batch)
    return invalid_input(place + ": " + std::to_string(times.size()) + " " + what + " times for a batch of " +
                         std::to_string(batch));
  for (const TimeNs t : times)
    if (t <= 0 || t > kLongest)
      return invalid_input(place + ": a " + what + " time of " + std::to_string(t) +
                           " ns; expected more than 0 and at most an hour");
  return {};
}

struct PoolPlace {
  size_t pipeline = 0, partition = 0;
  bool taken = false;
};

// Models may share a pool only as a whole, and only if each of their pipelines is one partition.
bool may_share(const Deployment& d, size_t p, const PoolPlace& other) {
  const auto &a = d.pipelines[p], &b = d.pipelines[other.pipeline];
  return a.model != b.model && a.partitions.size() == 1 && b.partitions.size() == 1 &&
         a.partitions[0].first_device == b.partitions[0].first_device &&
         a.partitions[0].num_devices == b.partitions[0].num_devices;
}

Status check_pool(const Deployment& d, size_t p, size_t k, std::vector<PoolPlace>& taken) {
  const auto& pool = d.pipelines[p].partitions[k];
  const auto place = place_of(d, p, k);
  if (pool.num_devices == 0) return invalid_input(place + ": the pool has no device");
  if (pool.first_device >= d.devices.size() || pool.num_devices > d.devices.size() - pool.first_device)
    return invalid_input(place + ": the pool's devices do not exist");
  for (uint32_t i = 0; i < pool.num_devices; ++i) {
    auto& at = taken[pool.first_device + i];
    if (at.taken && !may_share(d, p, at))
      return invalid_input(place + ": a device that another pool has, too");
    at = {p, k, true};
  }
  HEDDLE_RETURN_IF_ERROR(check_times(pool.run_ns, d.pipelines[p].batch, "run", place));
  if (!pool.timed_ns.empty())
    HEDDLE_RETURN_IF_ERROR(check_times(pool.timed_ns, d.pipelines[p].batch, "timed", place));
  if (k == 0) return {};
  return check_times(pool.transfer_ns, d.pipelines[p].batch, "transfer", place);
}

// A pool whose virtual devices have no whole device yet.
struct PoolInWork {
  uint32_t first = 0, count = 0;
  int share = 1;
};

// Packs virtual devices into whole ones: first groups that fill a device, then the remainders of all pools,
// first-fit decreasing. Returns how many whole devices it used, from `next` on.
uint32_t pack(const std::vector<PoolInWork>& pools, uint32_t next, std::vector<VirtualDevice>& devices) {
  constexpr int kUnits = 12;  // units of a device: shares of 1, 2, 3 and 4 are 12, 6, 4 and 3 units
  const uint32_t began = next;
  std::vector<std::pair<int, uint32_t>> rest;  // units, virtual device
  for (const auto& pool : pools) {
    const auto share = static_cast<uint32_t>(pool.share);
    const uint32_t whole = pool.count / share * share;
    for (uint32_t i = 0; i < whole; ++i) devices[pool.first + i].device = next + i / share;
    next += whole / share;
    for (uint32_t i = whole; i < pool.count; ++i) rest.emplace_back(kUnits / pool.share, pool.first + i);
  }
  std::stable_sort(rest.begin(), rest.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<int> room;
  for (const auto& [units, device] : rest) {
    size_t at = 0;
    while (at < room.size() && room[at] < units) ++at;
    if (at == room.size()) room.push_back(kUnits);
    room[at] -= units;
    devices[device].device = next + static_cast<uint32_t>(at);
  }
  return next + static_cast<uint32_t>(room.size()) - began;
}

// What each whole device needs of its server's links when all pipelines run at the rates that their pools sustain.
std::vector<LinkLoad> link_loads(const Deployment& d, uint32_t devices) {
  std::vector<LinkLoad> loads(devices);
  for (const auto& pipeline : d.pipelines) {
    const auto& pools = pipeline.partitions;
    double per_ns = std::numeric_limits<double>::max();  // batches
    for (const auto& pool : pools)
      per_ns = std::min(per_ns, pool.num_devices / static_cast<double>(pool.run_ns.back()));
    for (size_t k = 0; k < pools.size(); ++k) {
      const auto part = [&](const DevicePool& to) {
        return per_ns * static_cast<double>(to.transfer_ns.back()) / pools[k].num_devices;
      };
      const LinkLoad own{k + 1 < pools.size() ? part(pools[k + 1]) : 0, k > 0 ? part(pools[k]) : 0};
      for (uint32_t i = 0; i < pools[k].num_devices; ++i) {
        auto& load = loads[d.devices[pools[k].first_device + i].device];
        load.up += own.up;
        load.down += own.down;
      }
    }
  }
  return loads;
}

Result<std::vector<TimeNs>> run_times(const Fleet& fleet, const FleetModel& model, const FleetPartition& part,
                                      int batch, const std::string& place) {
  std::vector<TimeNs> times;
  for (int b = 1; b <= batch; ++b) {
    double us = 0;
    for (int i = part.block_from; i < part.block_to; ++i)
      us += model.block_us(static_cast<size_t>(part.device_class), part.share, b, i);
    if (!(us > 0) || us > us_from_ns(kLongest))
      return invalid_input(place + ": the fleet has no time for blocks " + std::to_string(part.block_from) +
                           " to " + std::to_string(part.block_to) + " on class '" +
                           fleet.classes[static_cast<size_t>(part.device_class)].name + "', share " +
                           std::to_string(part.share) + ", batch " + std::to_string(b));
    times.push_back(std::max<TimeNs>(1, ns_from_us(us)));
  }
  return times;
}

}  // namespace

Status check_deployment(const Deployment& d) {
  std::vector<PoolPlace> taken(d.devices.size());
  std::vector<char> listed(d.pipelines.size(), 0);
  for (const auto& model : d.models) {
    if (model.slo_ns <= 0 || model.slo_ns > kLongest)
      return invalid_input("model '" + model.name + "': an SLO of " + std::to_string(model.slo_ns) +
                           " ns; expected more than 0 and at most an hour");
    for (const uint32_t p : model.pipelines)
      if (p >= d.pipelines.size() ||
          d.pipelines[p].model != static_cast<uint32_t>(&model - d.models.data()) || listed[p]++)
        return invalid_input("model '" + model.name + "': pipeline " + std::to_string(p) +
                             " is not its own, or is named twice");
  }
  for (size_t i = 0; i < d.devices.size(); ++i) {
    const auto& v = d.devices[i];
    if (v.device_class >= d.classes.size() || v.server >= d.num_servers || v.share == 0)
      return invalid_input("virtual device " + std::to_string(i) +
                           ": its class, server or share does not exist");
  }
  for (size_t p = 0; p < d.pipelines.size(); ++p) {
    const auto& pipeline = d.pipelines[p];
    if (!listed[p] || pipeline.batch == 0 || pipeline.partitions.empty() ||
        pipeline.partitions.size() > kMaxPartitions)
      return invalid_input("pipeline " + std::to_string(p) +
                           ": expected a model, a batch of at least 1 and 1 to " +
                           std::to_string(kMaxPartitions) + " partitions");
    for (size_t k = 0; k < pipeline.partitions.size(); ++k)
      HEDDLE_RETURN_IF_ERROR(check_pool(d, p, k, taken));
  }
  for (size_t i = 0; i < taken.size(); ++i)
    if (!taken[i].taken) return invalid_input("virtual device " + std::to_string(i) + " is in no pool");
  return {};
}

void put_on_servers(Deployment& d, ServerOrder order) {
  uint32_t devices = 0;
  for (const auto& c : d.classes) devices += c.used;
  const auto loads = link_loads(d, devices);
  std::vector<uint32_t> server_of(devices);
  d.num_servers = 0;
  for (const auto& c : d.classes) {
    const auto own = std::span(loads).subspan(c.first_device, c.used);
    const auto spread = order == ServerOrder::kSpread ? spread_over_servers(own, c.devices, c.per_server)
                                                      : std::vector<uint32_t>();
    const uint32_t first = d.num_servers;
    for (uint32_t i = 0; i < c.used; ++i) {
      const uint32_t server = first + (spread.empty() ? i / c.per_server : spread[i]);
      server_of[c.first_device + i] = server;
      d.num_servers = std::max(d.num_servers, server + 1);
    }
  }
  for (auto& v : d.devices) v.server = server_of[v.device];
}

Result<Deployment> deploy(const Fleet& fleet, const FleetPlan& plan) {
  if (plan.models.size() != fleet.models.size())
    return invalid_input("the plan has " + std::to_string(plan.models.size()) + " models, the fleet " +
                         std::to_string(fleet.models.size()));
  Deployment d;
  for (const auto& c : fleet.classes)
    d.classes.push_back({c.name, c.count, 0, 0, static_cast<uint32_t>(std::max(1, c.devices_per_server))});
  // Pools that may share whole devices: same class, model and position.
  std::map<std::tuple<int, size_t, size_t>, std::vector<PoolInWork>> together;
  int64_t total = 0;
  for (size_t m = 0; m < fleet.models.size(); ++m) {
    const auto& model = fleet.models[m];
    d.models.push_back({model.name, ns_from_us(model.slo_us), plan.models[m].rate_per_s, {}});
    for (const auto& from : plan.models[m].pipelines) {
      DeployedPipeline p;
      p.model = static_cast<uint32_t>(m);
      p.rate_per_s = from.rate_per_s;
      const auto place =
          "model '" + model.name + "', pipeline " + std::to_string(d.models[m].pipelines.size());
      if (from.batch < 1 || from.batch > kMaxFleetBatch || from.partitions.empty() ||
          from.partitions.size() > kMaxPartitions)
        return invalid_input(place + ": expected a batch of 1 to " + std::to_string(kMaxFleetBatch) +
                             " and 1 to " + std::to_string(kMaxPartitions) + " partitions");
      p.batch = static_cast<uint32_t>(from.batch);
      for (size_t k = 0; k < from.partitions.size(); ++k) {
        const auto& part = from.partitions[k];
        const auto where = place + ", partition " + std::to_string(k);
        if (part.device_class < 0 || static_cast<size_t>(part.device_class) >= fleet.classes.size() ||
            part.share < 1 || part.share > kMaxShare || part.block_from < 0 || part.block_to > model.blocks ||
            part.block_from >= part.block_to || part.count < 1 || part.count > kMostVirtualDevices - total)
          return invalid_input(where + ": its class, share, blocks or count is out of range");
        const auto& own = fleet.classes[static_cast<size_t>(part.device_class)];
        DevicePool pool;
        pool.first_device = static_cast<uint32_t>(total);
        pool.num_devices = static_cast<uint32_t>(part.count);
        pool.role = {model.name, part.block_from, part.block_to, own.name, part.share};
        HEDDLE_ASSIGN_OR_RETURN(pool.run_ns, run_times(fleet, model, part, from.batch, where));
        if (k > 0) {
          const auto& sender = fleet.classes[static_cast<size_t>(from.partitions[k - 1].device_class)];
          const double nic = std::min(own.nic_bytes_per_s, sender.nic_bytes_per_s);
          if (!(nic > 0) || static_cast<size_t>(part.block_from) >= model.cut_bytes.size())
            return invalid_input(where + ": no bandwidth or no bytes to send it the cut with");
          const double us = model.cut_bytes[static_cast<size_t>(part.block_from)] / nic * 1e6;
          if (!(us * from.batch <= us_from_ns(kLongest)))
            return invalid_input(where + ": a transfer takes over an hour");
          for (int b = 1; b <= from.batch; ++b)
            pool.transfer_ns.push_back(std::max<TimeNs>(1, ns_from_us(b * us)));
        }
        VirtualDevice v;
        v.device_class = static_cast<uint32_t>(part.device_class);
        v.share = static_cast<uint32_t>(part.share);
        d.devices.insert(d.devices.end(), pool.num_devices, v);
        total += part.count;
        together[{part.device_class, m, k}].push_back({pool.first_device, pool.num_devices, part.share});
        p.partitions.push_back(std::move(pool));
      }
      d.models[m].pipelines.push_back(static_cast<uint32_t>(d.pipelines.size()));
      d.pipelines.push_back(std::move(p));
    }
  }
  for (const auto& [key, pools] : together) {
    auto& c = d.classes[static_cast<size_t>(std::get<0>(key))];
    c.used += pack(pools, c.used, d.devices);
  }
  uint32_t first_device = 0;
  for (size_t c = 0; c < d.classes.size(); ++c) {
    if (d.classes[c].used > d.classes[c].devices)
      return invalid_input("class '" + d.classes[c].name + "': the plan takes " +
                           std::to_string(d.classes[c].used) + " whole devices, the fleet has " +
                           std::to_string(d.classes[c].devices));
    d.classes[c].first_device = first_device;
    first_device += d.classes[c].used;
  }
  for (auto& v : d.devices) v.device += d.classes[v.device_class].first_device;
  put_on_servers(d, ServerOrder::kSpread);
  HEDDLE_RETURN_IF_ERROR(check_deployment(d));
  return d;
}

}  // namespace heddle
