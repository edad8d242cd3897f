#include "heddle/fleet/outcome.h"

namespace heddle {

const char* outcome_name(Outcome outcome) {
  constexpr const char* kNames[kOutcomes] = {"open",   "in_time",   "late",   "dropped",
                                             "failed", "withdrawn", "invalid"};
  return kNames[static_cast<size_t>(outcome)];
}

}  // namespace heddle
