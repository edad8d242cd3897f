// Counts that clients read off v2/status.
#pragma once

#include "heddle/base/json_fields.h"

namespace heddle {

struct SettledRequests {
  double all = 0, in_time = 0;
};

// The requests of a model that have their outcome, since its server began; those that were malformed do not count.
inline SettledRequests settled_requests(const Json& model) {
  const Json& requests = object_in(model, "requests");
  SettledRequests out{0, number_in(requests, "in_time")};
  for (const char* outcome : {"in_time", "late", "dropped", "failed", "withdrawn"})
    out.all += number_in(requests, outcome);
  return out;
}

}  // namespace heddle
