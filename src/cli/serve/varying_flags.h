// Flags of `heddle serve` for inputs whose shape varies.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/command/command.h"
#include "heddle/serve/shape_buckets.h"

namespace heddle::cli {

struct VaryingFlags {
  std::vector<std::string> buckets, pad_values;
  std::string shapes_from, padding;
  std::optional<int64_t> count;

  void declare(Command& command);
  const char* first() const;  // that is given; null: none
  Result<VaryingSettings> settings() const;
};

}  // namespace heddle::cli
