// Accelerators whose copies take the time that a test says, by a clock of their own: what is measured on them
// is exact.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "heddle/runtime/backend.h"
#include "heddle/runtime/stream_runtime.h"

namespace heddle::test {

// What the copies of one or more devices wait for; one thread at a time.
struct TimedMachine {
  double now_us = 0;
  std::map<std::string, double> free_us;  // per link, direction and bus
};

struct TimedCopies {
  double latency_us = 10;
  double to_device = 1e9, to_host = 1e9, peer = 1e9;  // bytes per second
  std::string bus;           // copies to devices of one bus wait for each other; empty: none
  bool half_duplex = false;  // so do copies to and from this one
  bool peers = false;        // it reads others' memory
  int64_t memory_bytes = 0;
};

// Enqueues are done at once; elapsed_us() tells the machine's time.
std::shared_ptr<StreamRuntime> make_timed_runtime(std::shared_ptr<TimedMachine> machine, std::string name,
                                                  const TimedCopies& copies);

// Opens the devices of these names; others are no devices of this machine.
std::function<Result<std::unique_ptr<RuntimeDevice>>(const Device&)> timed_opener(
    std::map<std::string, TimedCopies> devices);

}  // namespace heddle::test
