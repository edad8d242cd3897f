// Copies that were measured on this machine's accelerators, as tables and JSON.
#pragma once

#include <string>

#include "heddle/base/json_fwd.h"
#include "heddle/runtime/copy_profile.h"

namespace heddle {

// Beside the rates that `before` had.
std::string copies_text(const Cluster& before, const CopyProfile& copies);
// {"copies": [...], "at_once": [...], "left_out": [...]}
Json copies_json(const Cluster& before, const CopyProfile& copies);

}  // namespace heddle
