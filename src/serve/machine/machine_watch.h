// Says in one line when the runs of a model take another time than was measured, and whether the machine or the
// measurement is the reason.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "heddle/runtime/core_use.h"

namespace heddle {

// Of one model, since its plan began.
struct ModelRuns {
  uint64_t runs = 0;
  double busy_s = 0, predicted_s = 0;
};

struct WatchReading {
  double now_s = 0;  // by any steady clock
  std::optional<CoreUse> cores;
  std::map<std::string, ModelRuns> models;
};

// It has no clock and no thread: the same readings give the same lines.
class MachineWatch {
 public:
  // Compares with the reading before. A line for each model whose runs in between, at least kLeastRuns of them, are
  // slower or faster than planned by kShare for the first time, change their cause, or are as planned again.
  std::vector<std::string> look(const WatchReading& reading);

  static constexpr uint64_t kLeastRuns = 20;
  static constexpr double kShare = 0.25;     // of the planned time
  static constexpr double kOtherWork = 0.2;  // of one core: less is no reason

 private:
  enum class Cause { kNone, kMachine, kMeasurement };
  std::optional<WatchReading> before_;
  std::map<std::string, Cause> said_;
};

}  // namespace heddle
