// Measures copies between the memories of accelerators and the host, by events on their streams. It measures one copy
// at a time, both directions, and several devices at once, which shows the bandwidth that devices share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/ids.h"
#include "heddle/base/progress.h"
#include "heddle/base/status.h"
#include "heddle/cluster/measured_links.h"
#include "heddle/runtime/backend.h"

namespace heddle {

struct CopyTime {
  int64_t bytes = 0;
  double us = 0;  // median
};

// Fits t(bytes) = latency_us + bytes / bytes_per_s to `times` (at least one; sizes and times positive).
// Minimises the sum of squared relative errors, with both parameters at least 0. O(times).
struct CopyLine {
  double latency_us = 0, bytes_per_s = 0;
};
CopyLine fit_copies(std::span<const CopyTime> times);

struct CopyRoute {
  DeviceId from, to;  // invalid: the host's memory, pinned
  // Between devices: true for one copy by the reader. False: one copy to the host and one from there; the
  // times are the sums of both.
  bool direct = true;
  std::vector<CopyTime> times;  // by size, ascending
  double rel_spread = 0;        // of the largest size
  CopyLine line;
};

// Concurrent copies. Each device makes as many as take the same time alone.
struct CopiesAtOnce {
  std::vector<DeviceId> devices;  // one: in both directions; several: from the host to each of them
  double bytes_per_s = 0;         // total of all, until the last copy is done
  // bytes_per_s / the sum of the bandwidths alone: 1 if nothing is shared, down to 1 / (number of copies) if
  // they take turns.
  double part = 0;
  bool shared = false;  // `part` is nearer to the lower limit
};

// Direct host access: kernels of the device read mapped host memory.
struct InPlaceReads {
  DeviceId device;
  std::vector<CopyTime> times;  // by size, ascending
  double rel_spread = 0;        // of the largest size
  CopyLine line;
  CopiesAtOnce beside_copies;  // reads, and copies from the host, at once; plans let them take turns
};

struct CopyProfile {
  std::vector<CopyRoute> routes;                           // from and to the host, then between devices
  std::vector<CopiesAtOnce> at_once;                       // each device, each pair, each set that shares
  std::vector<InPlaceReads> in_place;                      // of the devices that can
  std::vector<std::pair<DeviceId, std::string>> left_out;  // accelerators that were not measured, and why
  MeasuredLinks links;                                     // what of it a cluster file states
};

struct CopyOptions {
  // Ascending. For each device, sizes above a quarter of its memory are left out.
  std::vector<int64_t> bytes = {1 << 12, 1 << 16, 1 << 20, 1 << 24};
  double seconds_per_size = 0.04;  // 5 to 200 copies
  double at_once_s = 0.03;         // time of each copy alone in a round; three rounds
  Deadline deadline;               // when it expires: an error (cancelled)
  ProgressSink* progress = nullptr;
  // Opens a device; empty: open_device().
  std::function<Result<std::unique_ptr<RuntimeDevice>>(const Device&)> open;
};

// Measures the accelerators of `cluster` on this machine. Fails if there are none (unsupported, with the
// reason), or if they are on several hosts: each host is measured on its own. O(devices^2) measurements.
Result<CopyProfile> measure_copies(const Cluster& cluster, const CopyOptions& options = {});

}  // namespace heddle
