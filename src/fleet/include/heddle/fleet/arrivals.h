// Arrivals of requests: Poisson, diurnal, in bursts, from a trace of function invocations, recorded.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/fleet/data_plane_time.h"
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
  kFunctions,  // a trace of function invocations, folded onto the rate or compressed to it
};
const char* traffic_name(TrafficKind kind);  // "poisson", "diurnal", "bursty", "functions"
std::optional<TrafficKind> traffic_named(std::string_view name);

struct Traffic {
  TrafficKind kind = TrafficKind::kPoisson;
  // Diurnal: rate * (1 + swing * sin(2 pi t / period)), swing in [0, 1].
  double swing = .5, period_s = 10;
  // Bursty: in bursts the rate is `peak` times the mean; they take the share `burst_share` of the time and
  // last `burst_s` on average, exponentially distributed; peak * burst_share <= 1, and outside bursts the
  // rate is what keeps the mean.
  double peak = 2, burst_share = .2, burst_s = .2;
  // Functions: the trace, which must outlive the traffic; folded as PPipe's public code does (every start
  // modulo the time that so many invocations take at the wanted rate, which adds up all of the trace's folds
  // and smooths it), or compressed (the trace's own shape, played faster).
  const FunctionTrace* functions = nullptr;
  bool folded = true;
};

// The traffic's limit of variance / mean of the number of arrivals in long windows at a mean rate: 1 for
// Poisson, 1 + 2 rate (peak - 1)^2 burst_share burst_s for bursts. For folded or compressed traces and
// diurnal traffic it is not defined (it grows with the window): nullopt.
std::optional<double> index_of_dispersion(const Traffic& traffic, double rate_per_s);

// Variance / mean of the numbers of arrivals in windows of `window_s`; nullopt with fewer than two whole
// windows.
std::optional<double> measured_dispersion(std::span<const Arrival> arrivals, double duration_s,
                                          double window_s);

inline constexpr double kMostArrivals = 2e8;

// Arrivals in [0, duration) for models of these mean rates, sorted by time and model. Each model has a random
// stream of its own. Errors: rates or parameters that are not finite or out of range, more than kMostArrivals
// expected, kFunctions without a trace of at least two invocations. O(arrivals log arrivals).
Result<std::vector<Arrival>> make_arrivals(const Traffic& traffic, std::span<const double> rates_per_s,
                                           double duration_s, uint64_t seed);

// Recorded arrivals, CSV: the header `time_us` or `time_us,model`, then one arrival a line, in any order;
// models by name, the only one where there is no such column. Errors carry the line. O(size log size).
Result<std::vector<Arrival>> arrivals_from_csv(std::string_view text, std::span<const std::string> models);

// Multiplies the rate by `factor` by moving the arrivals closer together; no time may come above 1e18 ns.
void scale_arrivals(std::vector<Arrival>& arrivals, double factor);

}  // namespace heddle
