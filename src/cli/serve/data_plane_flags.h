// Schedulers and traffic as flags name them.
#pragma once

#include <string>
#include <vector>

#include "heddle/base/spelling.h"
#include "heddle/base/status.h"
#include "heddle/fleet/arrivals.h"
#include "heddle/fleet/simulator.h"

namespace heddle::cli {

inline std::vector<std::string> scheduler_names() { return {"reservation", "busy-until", "reactive"}; }

inline Error no_such(const char* flag, const char* what, const std::string& text,
                     const std::vector<std::string>& names) {
  return Error(Code::kInvalidInput, std::string(flag) + " " + text + ": no such " + what +
                                        did_you_mean(text, names) + "; there are " + join_names(names));
}

// --scheduler.
inline Result<SchedulerKind> scheduler_flag(const std::string& text) {
  if (const auto kind = scheduler_named(text)) return *kind;
  return no_such("--scheduler", "scheduler", text, scheduler_names());
}

// --traffic; "functions" only where there may be a trace of them.
inline Result<TrafficKind> traffic_flag(const std::string& text, bool functions) {
  const auto kind = traffic_named(text);
  if (kind && (functions || *kind != TrafficKind::kFunctions)) return *kind;
  std::vector<std::string> names = {"poisson", "diurnal", "bursty"};
  if (functions) names.emplace_back("functions");
  return no_such("--traffic", "traffic", text, names);
}

}  // namespace heddle::cli
