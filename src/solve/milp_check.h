// Checks of a MILP before any solver sees it.
#pragma once

#include <string>

#include "heddle/solve/milp.h"

namespace heddle {

// kInvalidInput for NaN, infinite coefficients, lower > upper, binaries with bounds beyond 0..1, indicators
// on variables that are not binary, and calls that named unknown variables. O(size of the model).
Status check_model(const Milp& model);

// "row 'capacity'", "row 3", "indicator 0".
std::string row_name(const Milp& model, size_t row);
std::string indicator_name(const Milp& model, size_t indicator);

}  // namespace heddle
