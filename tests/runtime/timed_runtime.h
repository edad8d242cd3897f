// Accelerators with an emulated clock, whose copies take the times that the test sets. Measurements on them
// are exact.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "heddle/runtime/backend.h"
#include "heddle/runtime/stream_runtime.h"

namespace heddle::test {

// The state that copies of all devices share; for one thread at a time.
struct TimedMachine {
  double now_us = 0;
  std::map<std::string, double> free_us;  // [link, direction or bus] time at which it is free
};

struct TimedCopies {
  double latency_us = 10;
  double to_device = 1e9, to_host = 1e9, peer = 1e9;  // bytes per second
  std::string bus;           // copies to devices on the same bus wait for each other; empty: no bus
  bool half_duplex = false;  // copies to and from the device wait for each other
  bool peers = false;        // can read other devices' memory
  int64_t memory_bytes = 0;
};

// Enqueued work completes at once; elapsed_us() returns emulated time.
std::shared_ptr<StreamRuntime> make_timed_runtime(std::shared_ptr<TimedMachine> machine, std::string name,
                                                  const TimedCopies& copies);

// Opens the devices with these names; all others are absent.
std::function<Result<std::unique_ptr<RuntimeDevice>>(const Device&)> timed_opener(
    std::map<std::string, TimedCopies> devices);

}  // namespace heddle::test
