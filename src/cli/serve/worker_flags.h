// The devices that `heddle worker` is given.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "heddle/base/status.h"

namespace heddle::cli {

struct ClassDevices {
  std::map<std::string, int64_t> counts;                  // by class
  std::map<std::string, std::vector<std::string>> names;  // of those that were named
};
// CLASS=N or CLASS=NAME+NAME (devices of this host), several of them with commas; a class that is named twice
// is an error.
Result<ClassDevices> class_devices(const std::vector<std::string>& texts);

}  // namespace heddle::cli
