// docs/planners.md, made from the registry.
#pragma once

#include <string>

namespace heddle {

// The whole document: a table of all planners and a section for each.
std::string planners_markdown();

}  // namespace heddle
