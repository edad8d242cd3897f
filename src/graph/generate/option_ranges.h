// Checks of generators' options.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "heddle/base/status.h"

namespace heddle {

struct OptionRange {
  template <class Value, class Least, class Most>
  OptionRange(std::string option, Value given, Least lo, Most hi)
      : name(std::move(option)),
        value(static_cast<double>(given)),
        least(static_cast<double>(lo)),
        most(static_cast<double>(hi)) {}

  std::string name;
  double value, least, most;
};

// The error names the first option outside its range.
inline Status check_ranges(const std::vector<OptionRange>& options) {
  for (const auto& [name, value, least, most] : options) {
    if (value >= least && value <= most) continue;
    return invalid_input(fmt::format("{} is {:.15g}, expected {:.15g} to {:.15g}", name, value, least, most));
  }
  return {};
}

}  // namespace heddle
