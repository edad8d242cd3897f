// Devices in other processes, as a data plane sees them. It starts steps there and is notified how they
// end, and which devices come and go. No event counts twice: every step has an attempt number of
// its own, and events of an attempt that was given up are dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/fleet/data_plane_time.h"

namespace heddle {

// The bytes of one request; `owner` keeps them alive.
struct RemotePayload {
  std::shared_ptr<const void> owner;
  const std::byte* data = nullptr;
  size_t bytes = 0;
};

// A batch's run on a device, or the way of its feature maps from one device to another.
struct RemoteTask {
  uint64_t attempt = 0;
  uint64_t batch = 0;  // names the feature maps from step to step; no two batches have the same
  bool transfer = false;
  uint32_t device = 0, source = 0;  // virtual devices of the plane's deployment; a transfer's source
  uint32_t rows = 0;
  TimeNs expected_ns = 0;
  TimeNs device_ns = 0;  // what a timed device takes: expected_ns, but where the plan believes otherwise
  // [row] of a pipeline's first partition, the row's inputs one after the other; else empty.
  std::vector<std::vector<RemotePayload>> payloads;
};

struct RemoteAnswer {
  uint64_t attempt = 0;
  Status status;
  bool no_map = false;     // an error of a transfer: its source does not have the feature map
  TimeNs measured_ns = 0;  // of a run, by the device's own clock
  std::vector<uint64_t>
      digests;  // [row] from a pipeline's last partition: payload_digest() of what it was sent
  std::vector<RemotePayload> outputs;  // [row] from there, of models that are computed: one after the other
};

// FNV-1a over the bytes (64 bits): timed devices compute nothing else, and answer with it, so that a client
// can tell that its own request went the whole way. `before`: of the bytes that precede these.
inline constexpr uint64_t kDigestOfNothing = 0xcbf29ce484222325;
inline uint64_t payload_digest(const std::byte* data, size_t bytes, uint64_t before = kDigestOfNothing) {
  for (size_t i = 0; i < bytes; ++i) before = (before ^ static_cast<uint64_t>(data[i])) * 0x100000001b3;
  return before;
}

class RemoteListener {
 public:
  virtual ~RemoteListener() = default;
  virtual void answered(const RemoteAnswer& answer) = 0;
  // A step is under way for `elapsed_ns`, in `waited_ns` of which it could have gone on but had no core:
  // others on its host had them.
  virtual void still_running(uint64_t /*attempt*/, TimeNs /*elapsed_ns*/, TimeNs /*waited_ns*/) {}
  virtual void remote_lost(uint32_t device) = 0;  // with everything that it was doing
  virtual void remote_back(uint32_t device) = 0;  // idle
};

class RemoteDevices {
 public:
  virtual ~RemoteDevices() = default;
  // From now on `listener` gets events, on other threads; null: after this returns, no listener is called.
  // Returns which of the devices are there.
  virtual std::vector<char> listen(RemoteListener* listener) = 0;
  virtual uint64_t next_attempt() = 0;  // greater than all before, over all planes
  // Does not block and sends no event itself; on an absent device it does nothing, because the
  // listener gets or has got that event.
  virtual void begin(RemoteTask task) = 0;
  // The feature map of a batch is not needed there any more.
  virtual void release(uint64_t /*batch*/, uint32_t /*device*/) {}
  // The name of the process that has a device; empty: none has it.
  virtual std::string owner(uint32_t /*device*/) const { return {}; }
  // Why parts cannot be loaded on their devices, for people; empty: none was refused.
  virtual std::string refusal() const { return {}; }
};

}  // namespace heddle
