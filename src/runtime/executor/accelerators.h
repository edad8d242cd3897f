// The accelerators that a plan uses: their streams by role and the memory that holds what the plan puts
// there.
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

// One memory of its own. Members of a stage run on streams of their own and share the rest.
struct Accelerator {
  DeviceId device;
  std::string name;
  StreamRuntime* runtime = nullptr;  // the opened device's
  std::unique_ptr<DeviceStream> to_device, to_host, peer;
  std::unique_ptr<DeviceStream> clock;  // always idle: what is recorded there is reached at once
};

class Accelerators {
 public:
  // Of the devices opened per seat (null: not used). Makes the streams.
  static Result<Accelerators> find(const Cluster& cluster, const Seats& seats,
                                   const std::vector<std::unique_ptr<RuntimeDevice>>& devices);
  // Several ranks: devices of others that are accelerators get numbers behind memories(), so that every rank
  // tells the same memories apart.
  void add_elsewhere(const std::vector<bool>& accelerated);
  bool empty() const { return list_.empty(); }
  // ProgramInput::memory_of; the accelerator of memory m > 0, m < memories().
  const std::vector<int32_t>& memory_of() const { return memory_of_; }
  const Accelerator& of_memory(int32_t memory) const { return list_[static_cast<size_t>(memory) - 1]; }
  int32_t memories() const { return static_cast<int32_t>(list_.size()) + 1; }
  // The one that a device computes in; 0 where it is the host's.
  int32_t memory(DeviceId device) const { return memory_of_.empty() ? 0 : memory_of_[device.index()]; }

 private:
  std::vector<Accelerator> list_;
  std::vector<int32_t> memory_of_;  // per device; empty: no accelerator
};

// Do the parameters of both come over a link or bus that is the same?
bool share_load_way(const Cluster& cluster, DeviceId a, DeviceId b);

}  // namespace heddle
