// The time of several segments that run at once on one device.
#pragma once

#include <algorithm>
#include <span>

namespace heddle {

// One member of a stage: its time alone, and the part of it that keeps the device busy (time x utilization).
struct StageItem {
  double us = 0;
  double busy_us = 0;
};

// The time t(S) of a stage S of two items or more:
//   max(longest item, serial * sum of times + overlap * max(sum of busy times, longest item) + launch_us).
// A single item takes its own time. serial = overlap = 1/2: HIOS's simulation (its released code; the paper
// takes t(S) as given). serial = 1, overlap = 0: items run one after another. A fit to measured sets gives
// all three (runtime/segment_measurer.h). All three are finite and at least 0.
struct StageModel {
  double serial = 1, overlap = 0;
  double launch_us = 0;  // per stage, us

  bool operator==(const StageModel&) const = default;
  double us(std::span<const StageItem> items) const {
    double sum = 0, busy = 0, longest = 0;
    for (const StageItem& item : items) {
      sum += item.us;
      busy += item.busy_us;
      longest = std::max(longest, item.us);
    }
    return items.size() < 2 ? longest : us(sum, busy, longest);
  }
  // The same for two items or more, from the sums of their times and busy times and the longest time.
  double us(double sum_us, double busy_us, double longest_us) const {
    return std::max(longest_us, serial * sum_us + overlap * std::max(busy_us, longest_us) + launch_us);
  }
  // A stage takes at least the sum of this over its items, and each item alone takes at least this: usable in
  // lower bounds on a device's work.
  double least_us(const StageItem& item) const {
    return std::min(item.us, serial * item.us + overlap * item.busy_us);
  }
};

// The stage model of HIOS's simulation.
inline constexpr StageModel kSimulatedStages{.serial = 0.5, .overlap = 0.5, .launch_us = 0};

}  // namespace heddle
