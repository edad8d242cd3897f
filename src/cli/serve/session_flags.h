// Flags of `heddle serve` for models that keep state between the requests of a session.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heddle/command/command.h"
#include "heddle/serve/infer_service.h"
#include "heddle/serve/model_source.h"

namespace heddle::cli {

struct SessionFlags {
  std::vector<std::string> state;
  std::string idle, memory;
  std::optional<int64_t> most;

  void declare(Command& command);
  const char* of_models() const;  // the first that is given and means nothing for a fleet; null: none
  Status set(ModelSettings& settings) const;
  Result<SessionLimits> limits() const;
};

}  // namespace heddle::cli
