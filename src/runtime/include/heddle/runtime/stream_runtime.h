// What an accelerator does asynchronously: streams, events, memory of its own and copies. Two
// implementations: `cuda` (the driver's interface, opened when it is needed) and `host` (threads as streams,
// real copies), on which everything above runs and is tested without an accelerator (docs/torch.md).
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

// A point in a stream's work. Belongs to the runtime that made it; may be destroyed while work is under way.
// Any thread; what is recorded and waited for at once must be put in order by the caller.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  // Blocks the calling thread until what was recorded last is reached; at once where nothing was. Returns the
  // device's error where one has happened since drain().
  virtual Status synchronize() const = 0;
  virtual Result<bool> done() const = 0;
  virtual std::string_view family() const = 0;  // of its runtime
};

// Work that was captured once and is launched again and again, at the addresses that it was captured with.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
};

enum class CopyKind : uint8_t { kHostToDevice, kDeviceToHost, kDeviceToDevice };

class StreamRuntime;

// Work in order. Every call returns when its work is enqueued. Thread-safe but for captures: what two threads
// enqueue at once comes in some order.
class DeviceStream {
 public:
  virtual ~DeviceStream() = default;
  virtual Status record(DeviceEvent& event) = 0;
  // What is enqueued from now on starts after the event's last record so far. An event of another family is
  // waited for on the calling thread.
  virtual Status wait(const DeviceEvent& event) = 0;
  // Host memory must be pinned by this runtime for the copy to be asynchronous.
  virtual Status copy(CopyKind kind, std::byte* to, const std::byte* from, int64_t bytes) = 0;
  // From the memory of `source` to that of this stream's device; both of one family, with peer access.
  virtual Status copy_peer(std::byte* to, const StreamRuntime& source, const std::byte* from,
                           int64_t bytes) = 0;
  // `work` enqueues kernels on native() (cuda: it is called at once), or computes (host: on the stream's
  // thread). An error of the latter shows at the next synchronisation; until drain(), what follows on this
  // device is passed over.
  virtual Status compute(std::function<Status()> work) = 0;
  // Between these two, copies and computations are noted instead of done; events may not be used.
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
  bool mapped_memory = false;  // pinned host memory can be read in place
};

// One device. Thread-safe. Streams, events and memory keep what they need of it alive.
class StreamRuntime {
 public:
  virtual ~StreamRuntime() = default;
  virtual const StreamRuntimeProperties& properties() const = 0;
  virtual Result<std::unique_ptr<DeviceStream>> make_stream() = 0;
  virtual Result<std::unique_ptr<DeviceEvent>> make_event() = 0;
  // Aligned to kDeviceAlignment. kInfeasible, naming the device, when there is not enough.
  virtual Result<std::shared_ptr<std::byte[]>> allocate(int64_t bytes) = 0;
  // Host memory that copies of every device of the family are asynchronous from and to, and that devices with
  // mapped_memory can read.
  virtual Result<std::shared_ptr<std::byte[]>> allocate_pinned(int64_t bytes) = 0;
  // Where the device finds pinned memory; unsupported without mapped_memory.
  virtual Result<std::byte*> mapped_address(std::byte* pinned) const = 0;
  // May this device's streams copy from that one's memory without the host?
  virtual bool reaches(const StreamRuntime& other) const = 0;
  // Between the last records of two of its events, both done.
  virtual Result<double> elapsed_us(const DeviceEvent& from, const DeviceEvent& to) const = 0;
  // When the event was last reached, by CLOCK_MONOTONIC; nothing where the device has a clock of its own.
  virtual std::optional<int64_t> host_ns(const DeviceEvent&) const { return std::nullopt; }
  // Makes the device current on the calling thread, for libraries that are given addresses of its memory.
  virtual Status use_on_this_thread() const { return {}; }
  // Waits for everything on the device and returns, and forgets, the error that has happened.
  virtual Status drain() = 0;
};

constexpr int64_t kDeviceAlignment = 512;

struct HostRuntimeOptions {
  std::string name = "host";
  int64_t memory_bytes = 0;  // of the made-up device; 0: not limited
  bool peers = true;         // other devices of the host can be copied from directly
  bool mapped = true;        // it can read pinned memory in place
};
// A device whose memory is the host's, with a thread for each stream.
std::shared_ptr<StreamRuntime> make_host_runtime(HostRuntimeOptions options = {});

}  // namespace heddle
