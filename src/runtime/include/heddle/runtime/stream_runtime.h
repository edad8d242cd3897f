// The asynchronous interface of accelerators: streams, events, device memory and copies. Two implementations:
// `cuda` (the driver's interface, opened on first use) and `host` (threads as streams, real copies). On
// `host`, all layers above run and are tested without an accelerator (docs/torch.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "heddle/base/status.h"

namespace heddle {

// A point in a stream's work. Belongs to the runtime that made it; may be destroyed while work is in flight.
// Any thread may use it; the caller must order concurrent record and wait calls.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  // Blocks the calling thread until the last recorded point is reached; returns at once if nothing was
  // recorded. Returns the device's error if one has occurred since drain().
  virtual Status synchronize() const = 0;
  virtual Result<bool> done() const = 0;
  virtual std::string_view family() const = 0;  // of the runtime
};

// Captured work that can be launched repeatedly, always at the addresses of the capture.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
};

enum class CopyKind : uint8_t { kHostToDevice, kDeviceToHost, kDeviceToDevice };

class StreamRuntime;

// An ordered queue of work. Every call returns when its work is enqueued. Thread-safe except for captures;
// work that two threads enqueue concurrently has an arbitrary order.
class DeviceStream {
 public:
  virtual ~DeviceStream() = default;
  virtual Status record(DeviceEvent& event) = 0;
  // Later work starts after the event's last record so far. For an event of another family, the calling
  // thread waits.
  virtual Status wait(const DeviceEvent& event) = 0;
  // The copy is asynchronous only if this runtime has pinned the host memory.
  virtual Status copy(CopyKind kind, std::byte* to, const std::byte* from, int64_t bytes) = 0;
  // From memory of `source` to this stream's device. Both must be of one family, with peer access.
  virtual Status copy_peer(std::byte* to, const StreamRuntime& source, const std::byte* from,
                           int64_t bytes) = 0;
  // cuda: `work` is called at once and enqueues kernels on native(). host: `work` computes on the stream's
  // thread. An error there appears at the next synchronisation; later work on this device is skipped until
  // drain().
  virtual Status compute(std::function<Status()> work) = 0;
  // In between, copies and computations are recorded instead of executed; events are not allowed.
  virtual Status begin_capture() = 0;
  virtual Result<std::unique_ptr<DeviceGraph>> end_capture() = 0;
  virtual Status launch(DeviceGraph& graph) = 0;
  virtual Status synchronize() = 0;
  virtual void* native() const { return nullptr; }  // cuda: the CUstream
};

struct StreamRuntimeProperties {
  std::string family;          // "host" or "cuda"
  std::string name;            // of the device, for messages and profiles
  int index = 0;               // among the family's devices
  int64_t memory_bytes = 0;    // of the device; 0: not limited
  bool mapped_memory = false;  // the device can read pinned host memory in place
};

// One device. Thread-safe. Its streams, events and memory keep alive what they need of it.
class StreamRuntime {
 public:
  virtual ~StreamRuntime() = default;
  virtual const StreamRuntimeProperties& properties() const = 0;
  virtual Result<std::unique_ptr<DeviceStream>> make_stream() = 0;
  virtual Result<std::unique_ptr<DeviceEvent>> make_event() = 0;
  // Aligned to kDeviceAlignment. kInfeasible, naming the device, if there is too little memory.
  virtual Result<std::shared_ptr<std::byte[]>> allocate(int64_t bytes) = 0;
  // Host memory for asynchronous copies with every device of the family. Devices with mapped_memory can also
  // read it in place.
  virtual Result<std::shared_ptr<std::byte[]>> allocate_pinned(int64_t bytes) = 0;
  // The device's address of pinned memory; unsupported without mapped_memory.
  virtual Result<std::byte*> mapped_address(std::byte* pinned) const = 0;
  // True if this device's streams can copy from that device's memory without the host.
  virtual bool reaches(const StreamRuntime& other) const = 0;
  // Time between the last records of two of its events; both must be done.
  virtual Result<double> elapsed_us(const DeviceEvent& from, const DeviceEvent& to) const = 0;
  // Time at which the event was last reached, by CLOCK_MONOTONIC; nullopt if the device has its own clock.
  virtual std::optional<int64_t> host_ns(const DeviceEvent&) const { return std::nullopt; }
  // Makes the device current on the calling thread, as libraries need that work on its memory.
  virtual Status use_on_this_thread() const { return {}; }
  // Waits for all work on the device; returns and clears its error.
  virtual Status drain() = 0;
  // Changes when work fails, and when drain() clears that: what was enqueued in between was left out, though nothing
  // tells so after drain(). Constant on cuda, whose errors stay.
  virtual uint64_t faults() const { return 0; }
};

constexpr int64_t kDeviceAlignment = 512;
// Rounds up to the granularity of device memory.
constexpr int64_t device_aligned(int64_t bytes) {
  return (bytes + kDeviceAlignment - 1) / kDeviceAlignment * kDeviceAlignment;
}

struct HostRuntimeOptions {
  std::string name = "host";
  int64_t memory_bytes = 0;  // of the emulated device; 0: not limited
  bool peers = true;         // can copy directly from other devices of this family
  bool mapped = true;        // can read pinned memory in place
};
// A device in host memory, with one thread per stream.
std::shared_ptr<StreamRuntime> make_host_runtime(HostRuntimeOptions options = {});

}  // namespace heddle
