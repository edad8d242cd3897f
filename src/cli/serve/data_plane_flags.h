// Schedulers and traffic as flags name them.
#pragma once

#include <string>
#include <vector>

#include "heddle/base/spelling.h"
#include "heddle/base/status.h"
#include "heddle/command/command.h"
#include "heddle/fleet/arrivals.h"
#include "heddle/fleet/simulator.h"

namespace heddle::cli {

inline std::vector<std::string> scheduler_names() { return {"reservation", "busy-until", "reactive"}; }

inline Error flag_error(const char* flag, const std::string& text, const std::string& expected) {
  return invalid_input(std::string(flag) + " " + text + ": expected " + expected);
}

inline Error no_such(const char* flag, const char* what, const std::string& text,
                     const std::vector<std::string>& names) {
  return invalid_input(std::string(flag) + " " + text + ": no such " + what + did_you_mean(text, names) +
                       "; there are " + join_names(names));
}

// --scheduler.
inline Result<SchedulerKind> scheduler_flag(const std::string& text) {
  if (const auto kind = scheduler_named(text)) return *kind;
  return no_such("--scheduler", "scheduler", text, scheduler_names());
}

// Generated traffic: its kind and shape.
struct TrafficFlags {
  std::string kind;  // empty: not given, which is poisson
  double peak = 2, burst_share = .2, burst_s = .2, swing = .5, period_s = 10;

  void declare(Command& command, const char* kinds) {
    command.option("--traffic", kind, kinds);
    command.option("--peak", peak, "bursty: rate in bursts over the mean (default 2)", 1, 1e6);
    command.option("--burst-share", burst_share, "bursty: share of the time (default .2)", 1e-6, 1);
    command.seconds("--burst", burst_s, "bursty: mean time of a burst (default 200ms)", 1e-6, 1e6);
    command.option("--swing", swing, "diurnal: swing of the rate around the mean (default .5)", 0, 1);
    command.seconds("--period", period_s, "diurnal: time of a period (default 10s)", 1e-3, 1e7);
  }

  // `functions`: there may be a trace of function invocations.
  Result<Traffic> traffic(bool functions) const {
    Traffic traffic;
    traffic.swing = swing;
    traffic.period_s = period_s;
    traffic.peak = peak;
    traffic.burst_share = burst_share;
    traffic.burst_s = burst_s;
    if (kind.empty()) return traffic;
    const auto named = traffic_named(kind);
    if (!named || (*named == TrafficKind::kFunctions && !functions)) {
      std::vector<std::string> names = {"poisson", "diurnal", "bursty"};
      if (functions) names.emplace_back("functions");
      return no_such("--traffic", "traffic", kind, names);
    }
    traffic.kind = *named;
    return traffic;
  }
};

}  // namespace heddle::cli
