// The time of several things that run at once on one device.
#pragma once

#include <algorithm>
#include <span>

namespace heddle {

// One of them: its time alone, and the part of it that the device is truly busy with (time x utilization).
struct StageItem {
  double us = 0;
  double busy_us = 0;
};

// t(S) of two items or more:
//   max( longest item, serial * sum of times + overlap * max(sum of busy times, longest item) + launch_us ).
// A single item takes its own time. serial = overlap = 1/2 is the simulation of HIOS (its released code; the
// paper takes t(S) as given); serial = 1, overlap = 0 runs things one after another; a fit to measured sets
// gives all three (runtime/stage_fit.h). All are finite and at least 0.
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
  // The same of two items or more, by what matters of them: sums of times and busy times, and the longest.
  double us(double sum_us, double busy_us, double longest_us) const {
    return std::max(longest_us, serial * sum_us + overlap * std::max(busy_us, longest_us) + launch_us);
  }
  // A stage takes at least the sum of this over its items (and each alone takes at least this): what a lower
  // bound on a device's work may count.
  double least_us(const StageItem& item) const {
    return std::min(item.us, serial * item.us + overlap * item.busy_us);
  }
};

// HIOS's simulation.
inline constexpr StageModel kSimulatedStages{.serial = 0.5, .overlap = 0.5, .launch_us = 0};

}  // namespace heddle
