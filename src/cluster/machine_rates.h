// Short measurements of what this machine's cores can do.
#pragma once

#include <span>

namespace heddle {

struct MachineRates {
  double flops_one = 0, flops_all = 0;  // float32 per second: one core, all cores together
  double read_bytes_per_s_one = 0, read_bytes_per_s_all = 0;  // main memory
  double handover_us = 0;  // from one thread's notify to the other's first instruction
};

// Takes about 150 ms. Threads are pinned to `cores` if the system permits.
MachineRates measure_machine(std::span<const int> cores);

}  // namespace heddle
