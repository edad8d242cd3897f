// Helpful changes of the hardware: times the same plan under one change at a time.
#pragma once

#include <vector>

#include "heddle/report/explain.h"

namespace heddle {

// Best first; changes that gain less than 0.1 % are left out.
std::vector<Suggestion> suggest(const Problem& problem, const Plan& plan, double value_us);

}  // namespace heddle
