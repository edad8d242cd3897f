// What `heddle worker` and `heddle serve` share of their flags.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "heddle/base/status.h"

namespace heddle::cli {

// CLASS=N or CLASS=N,CLASS=N; a class that is named twice is an error.
Result<std::map<std::string, int64_t>> device_counts(const std::vector<std::string>& texts);

}  // namespace heddle::cli
