// Copies between the memories of accelerators and the host, measured by events on their streams: one at a
// time, in both directions, and of several devices at once, which shows what they share.
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

// t(bytes) = latency_us + bytes / bytes_per_s with the least sum of squared relative errors over `times` (at
// least one, sizes and times positive), neither below 0. O(times).
struct CopyLine {
  double latency_us = 0, bytes_per_s = 0;
};
CopyLine fit_copies(std::span<const CopyTime> times);

struct CopyWay {
  DeviceId from, to;  // invalid: the host's memory, pinned
  // Between devices: by one copy, the reader's. Otherwise by one to the host and one from there, and the
  // times are the sums of theirs.
  bool direct = true;
  std::vector<CopyTime> times;  // by size, ascending
  double rel_spread = 0;        // of the largest size
  CopyLine line;
};

// Copies at once, each device with as many as take it an equal time alone.
struct CopiesAtOnce {
  std::vector<DeviceId> devices;  // one: in both directions; several: from the host to each
  double bytes_per_s = 0;         // all of them together, until the last was done
  // Of what they would carry if they shared nothing: 1, down to 1 / (number of them) where one waits for the
  // other.
  double part = 0;
  bool shared = false;  // nearer to the latter
};

struct CopyProfile {
  std::vector<CopyWay> ways;                               // from and to the host, then between devices
  std::vector<CopiesAtOnce> at_once;                       // each device, each pair, each shared set
  std::vector<std::pair<DeviceId, std::string>> left_out;  // not a CPU, and why it was not measured
  MeasuredLinks links;                                     // what of it a cluster says
};

struct CopyOptions {
  // Ascending. Those above a quarter of a device's memory are left out for it.
  std::vector<int64_t> bytes = {1 << 12, 1 << 16, 1 << 20, 1 << 24};
  double seconds_per_size = 0.04;  // at least 5 copies, at most 200
  double at_once_s = 0.03;         // alone, of each; three times
  Deadline deadline;               // beyond it: an error (cancelled)
  ProgressSink* progress = nullptr;
  // Opens a device; open_device() where it is empty.
  std::function<Result<std::unique_ptr<RuntimeDevice>>(const Device&)> open;
};

// Measures the accelerators of `cluster` that this machine has. Fails where there are none (unsupported,
// saying why), and where they are of several hosts: each is measured on its own. O(devices^2) measurements.
Result<CopyProfile> measure_copies(const Cluster& cluster, const CopyOptions& options = {});

}  // namespace heddle
