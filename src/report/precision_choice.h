// What a budget for the error of narrower types decided, as text.
#pragma once

#include <optional>
#include <string>

#include "heddle/plan/problem.h"
#include "heddle/report/text_table.h"

namespace heddle {

// How many units compute in int8, and at which rates they are estimated; empty if the model is not quantised.
std::string int8_text(const Problem& problem);
// A sentence; empty without a budget.
std::string precision_choice_text(const Problem& problem);
// The units that stay out of a narrower type; nothing if none does.
std::optional<TextTable> precision_units_table(const Problem& problem);

}  // namespace heddle
