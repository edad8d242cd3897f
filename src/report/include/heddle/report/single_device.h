// The best single device for a problem: a plan's gain compares with it.
#pragma once

#include <optional>
#include <string>

#include "heddle/plan/problem.h"

namespace heddle {

struct SingleDevice {
  std::string device;
  double value_us = 0;  // of the whole model on it
};

// With the problem's costs; nothing if no device can run the whole model.
std::optional<SingleDevice> best_single_device(const Problem& problem);

}  // namespace heddle
