// How the caller of long work follows it and stops it.
#pragma once

#include "heddle/base/cancel.h"
#include "heddle/base/progress.h"

namespace heddle {

struct Control {
  CancelToken cancel;                // raised: the work ends soon, with the best that it has or an error
  ProgressSink* progress = nullptr;  // may be null; outlives the work

  // Without an end of its own.
  Deadline deadline() const { return Deadline::never(cancel); }
  void report(const std::string& what, double done, double total) const {
    if (progress != nullptr) progress->report({.what = what, .done = done, .total = total});
  }
};

}  // namespace heddle
