// The accelerators of a plan: their streams by role, and the numbers of their memories.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heddle/cluster/cluster.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/stream_runtime.h"
#include "seats.h"

namespace heddle {

// An accelerator with its own memory. Members of a stage run on separate streams and share the rest.
struct Accelerator {
  DeviceId device;
  std::string name;
  StreamRuntime* runtime = nullptr;      // the opened device's
  std::vector<StreamRuntime*> runtimes;  // it and those of the other members of its stages
  std::unique_ptr<DeviceStream> to_device, to_host, peer;
  std::unique_ptr<DeviceStream> clock;  // always idle, so an event recorded on it is reached at once
};

class Accelerators {
 public:
  // `devices`: opened devices per seat; null: not used. Creates the streams.
  static Result<Accelerators> find(const Cluster& cluster, const Seats& seats,
                                   const std::vector<std::unique_ptr<RuntimeDevice>>& devices);
  // Several ranks: other ranks' accelerators get numbers from memories() on, so that every rank distinguishes
  // the same memories.
  void add_elsewhere(const std::vector<bool>& accelerated);
  bool empty() const { return list_.empty(); }
  // memory_of() is ProgramInput::memory_of; of_memory(m) is the accelerator of memory 0 < m < memories().
  const std::vector<int32_t>& memory_of() const { return memory_of_; }
  const Accelerator& of_memory(int32_t memory) const { return list_[static_cast<size_t>(memory) - 1]; }
  int32_t memories() const { return static_cast<int32_t>(list_.size()) + 1; }
  // The memory that a device computes in; 0: the host's.
  int32_t memory(DeviceId device) const { return memory_of_[device.index()]; }

 private:
  std::vector<Accelerator> list_;
  std::vector<int32_t> memory_of_;  // per device
};

// True if the parameter loads of both devices use a common link or bus.
bool share_load_route(const Cluster& cluster, DeviceId a, DeviceId b);

}  // namespace heddle
