// What a budget for the error of narrower types decided, as text.
#pragma once

#include <string>

#include "heddle/plan/problem.h"

namespace heddle {

// Begins with an empty line; nothing without a budget.
std::string precision_choice_text(const Problem& problem);

}  // namespace heddle
