#include "accelerators.h"

namespace heddle {

Result<Accelerators> Accelerators::find(const Cluster& cluster, const Seats& seats,
                                        const std::vector<std::unique_ptr<RuntimeDevice>>& devices) {
  Accelerators result;
  result.memory_of_.assign(cluster.num_devices(), 0);
  for (size_t seat = 0; seat < devices.size(); ++seat) {
    StreamRuntime* runtime = devices[seat] ? devices[seat]->stream_runtime() : nullptr;
    const DeviceId device = seats.seats[seat].device;
    if (runtime == nullptr) continue;
    if (const int32_t known = result.memory_of_[device.index()]; known != 0) {
      result.list_[static_cast<size_t>(known) - 1].runtimes.push_back(runtime);
      continue;
    }
    Accelerator a;
    a.device = device;
    a.name = cluster.device(device).name;
    a.runtime = runtime;
    a.runtimes = {runtime};
    for (auto* stream : {&a.to_device, &a.to_host, &a.peer, &a.clock}) {
      auto made = runtime->make_stream();
      if (!made.ok()) return std::move(made).error().with_context("device '" + a.name + "'");
      *stream = std::move(made).value();
    }
    result.list_.push_back(std::move(a));
    result.memory_of_[device.index()] = static_cast<int32_t>(result.list_.size());
  }
  return result;
}

void Accelerators::add_elsewhere(const std::vector<bool>& accelerated) {
  int32_t next = memories();
  for (size_t d = 0; d < accelerated.size(); ++d) {
    if (accelerated[d] && memory_of_[d] == 0) memory_of_[d] = next++;
  }
}

bool share_load_route(const Cluster& cluster, DeviceId a, DeviceId b) {
  const Route *one = cluster.load_route(a), *other = cluster.load_route(b);
  if (one == nullptr || other == nullptr) return false;
  for (const Hop& x : one->hops) {
    for (const Hop& y : other->hops) {
      const Link &l = cluster.link(x.link), &k = cluster.link(y.link);
      if (x.link == y.link || (l.bus.valid() && l.bus == k.bus)) return true;
    }
  }
  return false;
}

}  // namespace heddle
