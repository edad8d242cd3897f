// The registry as a document.
#pragma once

#include <string>

namespace heddle {

// The whole text of docs/planners.md; a test compares the two.
std::string planners_markdown();

}  // namespace heddle
