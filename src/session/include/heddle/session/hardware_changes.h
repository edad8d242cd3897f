// Changes of a problem's hardware by the names that people know: a device, a class of devices, a link.
#pragma once

#include <string>

#include "heddle/session/replan.h"

namespace heddle {

// All of these: invalid input, with the nearest name, if there is no such device, class or link.

// `count` more devices like `name`, a device or a class, with the same links.
Result<HardwareChange> more_devices(const Problem& problem, const std::string& name, int count = 1);
// Without the device, or without `count` of the class.
Result<HardwareChange> fewer_devices(const Problem& problem, const std::string& name, int count = 1);
// A device, all of a class or a link `factor` times as fast (above 0 and at most a million), every limited memory
// ("memory") as large, or the transfers whose times are given ("transfers") as fast.
Result<HardwareChange> scaled_hardware(const Problem& problem, const std::string& name, double factor);

}  // namespace heddle
