// Arrivals of requests: Poisson, diurnal, bursty, from a trace of function invocations, or recorded.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/fleet/data_plane_time.h"
#include "heddle/fleet/fleet.h"
#include "heddle/fleet/function_trace.h"

namespace heddle {

struct Arrival {
  TimeNs at = 0;
  uint32_t model = 0;
  bool operator==(const Arrival&) const = default;
};

enum class TrafficKind {
  kPoisson,    // independent gaps
  kDiurnal,    // Poisson with a rate that swings as a sine around the mean
  kBursty,     // Poisson whose rate changes between two values (a Markov-modulated Poisson process)
  kFunctions,  // a trace of function invocations, folded or compressed to the wanted rate
};
const char* traffic_name(TrafficKind kind);  // "poisson", "diurnal", "bursty", "functions"
std::optional<TrafficKind> traffic_named(std::string_view name);

struct Traffic {
  TrafficKind kind = TrafficKind::kPoisson;
  // Diurnal: rate * (1 + swing * sin(2 pi t / period)), swing in [0, 1].
  double swing = .5, period_s = 10;
  // Bursty: in bursts the rate is `peak` times the mean. Bursts take the share `burst_share` of the time and
  // last `burst_s` on average (exponential); peak * burst_share <= 1. The rate outside bursts keeps the mean.
  double peak = 2, burst_share = .2, burst_s = .2;
  // Functions: the trace, which must outlive this struct. Folded, as in PPipe's public code: every start is
  // taken modulo the time that the trace's invocations need at the wanted rate. The folds add up and smooth
  // the trace. Compressed: the trace keeps its shape and is played faster.
  const FunctionTrace* functions = nullptr;
  bool folded = true;
};

// Limit of variance / mean of the number of arrivals in long windows. Poisson: 1; bursty: 1 + 2 rate (peak -
// 1)^2 burst_share burst_s. Diurnal traffic and traces: nullopt, as the ratio grows with the window.
std::optional<double> index_of_dispersion(const Traffic& traffic, double rate_per_s);

// Variance / mean of the number of arrivals in windows of `window_s`; nullopt if there are fewer than two
// whole windows.
std::optional<double> measured_dispersion(std::span<const Arrival> arrivals, double duration_s,
                                          double window_s);

inline constexpr double kMostArrivals = 2e8;

// Arrivals in [0, duration) at these mean rates per model, sorted by time, then model. Each model has its own
// random stream. Errors: rates or parameters that are not finite or out of range, more than kMostArrivals
// expected, kFunctions without a trace of at least two invocations. O(arrivals log arrivals).
Result<std::vector<Arrival>> make_arrivals(const Traffic& traffic, std::span<const double> rates_per_s,
                                           double duration_s, uint64_t seed);

// Arrivals whose rate over [0, duration) has the shape of the trace: counts of its invocations in equal parts of its
// time, at most 1440 parts with at least 100 invocations on average. Within a part arrivals are Poisson. Errors: as
// make_arrivals().
Result<std::vector<Arrival>> arrivals_in_shape(const FunctionTrace& trace,
                                               std::span<const double> rates_per_s, double duration_s,
                                               uint64_t seed);

// Recorded arrivals as CSV: the header `time_us` or `time_us,model`, then one arrival per line in any order.
// `model` is a name, optional if there is only one model. Errors name the line. O(size log size).
Result<std::vector<Arrival>> arrivals_from_csv(std::string_view text, std::span<const std::string> models);

// Arrivals of the fleet's models as that reads them, to the nanosecond up to some weeks.
std::string arrivals_to_csv(const Fleet& fleet, std::span<const Arrival> arrivals);

// Multiplies the rate by `factor`: divides every time by it. No result may exceed 1e18 ns.
void scale_arrivals(std::vector<Arrival>& arrivals, double factor);

}  // namespace heddle
