// The tables of an explanation and the words above them, for text and for the page.
#pragma once

#include <string>

#include "heddle/report/explain.h"
#include "heddle/report/text_table.h"

namespace heddle {

inline constexpr char kVariantsNote[] =
    "* is the plan's choice; a segment that was not measured as one has the sum of its units";
inline constexpr char kSuggestionsNote[] = "the same plan under one change; planning anew may gain more";
inline constexpr char kNoSuggestion[] = "No single change of a device or link makes this plan faster.";
inline constexpr char kRobustnessNote[] = "the same plan; the device or core whose loss costs most";

// "compute 84.6 %, transfers 15.4 %, loads 0.0 %"
std::string path_shares_text(const Explanation& explanation);

// A row for each segment, a column for each variant that any of them has; the chosen time is marked.
TextTable variants_table(const Explanation& explanation);
TextTable path_table(const Explanation& explanation);
TextTable suggestions_table(const Explanation& explanation);
// explanation.robustness must be there.
TextTable robustness_table(const Explanation& explanation);

}  // namespace heddle
