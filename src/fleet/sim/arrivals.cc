#include "heddle/fleet/arrivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "heddle/base/numbers.h"
#include "heddle/base/spelling.h"
#include "heddle/fleet/random.h"

namespace heddle {
namespace {

using Times = std::vector<TimeNs>;

TimeNs to_ns(double seconds) { return static_cast<TimeNs>(seconds * 1e9); }

// A Poisson process with rate `rate_at(t)` <= `most`, by thinning (Lewis and Shedler 1979).
template <class RateAt>
Times thinned(double most, double duration_s, Random& random, const RateAt& rate_at) {
  Times times;
  for (double t = exponential(random) / most; t < duration_s; t += exponential(random) / most)
    if (random.unit() * most < rate_at(t)) times.push_back(to_ns(t));
  return times;
}

Times poisson(double rate, double duration_s, Random& random) {
  Times times;
  for (double t = exponential(random) / rate; t < duration_s; t += exponential(random) / rate)
    times.push_back(to_ns(t));
  return times;
}

Times bursty(const Traffic& traffic, double rate, double duration_s, Random& random) {
  const double high = rate * traffic.peak;
  const double low = rate * (1 - traffic.peak * traffic.burst_share) / (1 - traffic.burst_share);
  const double calm_s = traffic.burst_s * (1 - traffic.burst_share) / traffic.burst_share;
  Times times;
  bool burst = random.chance(traffic.burst_share);  // the stationary probability of a burst
  for (double began = 0; began < duration_s;) {
    const double end = began + exponential(random) * (burst ? traffic.burst_s : calm_s);
    const double now_rate = burst ? high : low;
    if (now_rate > 0)
      for (double t = began + exponential(random) / now_rate; t < std::min(end, duration_s);
           t += exponential(random) / now_rate)
        times.push_back(to_ns(t));
    began = end;
    burst = !burst;
  }
  return times;
}

// As in PPipe's public code: repeats the folded trace; later rounds leave out its first invocation, so that
// gaps, not times, are repeated.
Times folded(const FunctionTrace& trace, double rate, double duration_s) {
  const double segment = static_cast<double>(trace.start_s.size() - 1) / rate;
  std::vector<double> at;
  at.reserve(trace.start_s.size());
  for (const double s : trace.start_s) at.push_back(std::fmod(s, segment));
  std::sort(at.begin(), at.end());
  Times times;
  for (double origin = 0; origin < duration_s; origin += segment)
    for (size_t i = origin == 0 ? 0 : 1; i < at.size(); ++i) {
      const double t = origin + at[i] - at.front();
      if (t >= duration_s) break;
      times.push_back(to_ns(t));
    }
  return times;
}

// The trace's own shape, played at the speed that gives the wanted mean rate, and repeated from its start.
Times compressed(const FunctionTrace& trace, double rate, double duration_s) {
  const double span = trace.start_s.back();
  const double faster = rate * span / static_cast<double>(trace.start_s.size() - 1);
  Times times;
  for (double origin = 0; origin < duration_s; origin += span / faster)
    for (size_t i = origin == 0 ? 0 : 1; i < trace.start_s.size(); ++i) {
      const double t = origin + trace.start_s[i] / faster;
      if (t >= duration_s) break;
      times.push_back(to_ns(t));
    }
  return times;
}

Status check_traffic(const Traffic& t) {
  switch (t.kind) {
    case TrafficKind::kPoisson:
      return {};
    case TrafficKind::kDiurnal:
      if (t.swing >= 0 && t.swing <= 1 && t.period_s > 0 && std::isfinite(t.period_s)) return {};
      return invalid_input("diurnal traffic needs a swing of 0 to 1 and a period above 0");
    case TrafficKind::kBursty:
      if (t.peak >= 1 && t.burst_share > 0 && t.burst_share < 1 && t.peak * t.burst_share <= 1 &&
          t.burst_s >= 1e-6 && t.burst_s <= 1e6)
        return {};
      return invalid_input(
          "bursty traffic needs a peak of at least 1, a burst share between 0 and 1 with peak * share "
          "<= 1, and bursts of 1 us to 1e6 s");
    case TrafficKind::kFunctions:
      if (t.functions != nullptr && t.functions->start_s.size() >= 2 && t.functions->start_s.back() > 0)
        return {};
      return invalid_input(
          "traffic from a function trace needs a trace of at least two invocations at different times");
  }
  return {};
}

Times times_of(const Traffic& traffic, double rate, double duration_s, Random& random) {
  switch (traffic.kind) {
    case TrafficKind::kPoisson:
      return poisson(rate, duration_s, random);
    case TrafficKind::kDiurnal:
      return thinned(rate * (1 + traffic.swing), duration_s, random, [&](double t) {
        return rate * (1 + traffic.swing * std::sin(2 * std::numbers::pi * t / traffic.period_s));
      });
    case TrafficKind::kBursty:
      return bursty(traffic, rate, duration_s, random);
    case TrafficKind::kFunctions:
      return traffic.folded ? folded(*traffic.functions, rate, duration_s)
                            : compressed(*traffic.functions, rate, duration_s);
  }
  return {};
}

void sort_arrivals(std::vector<Arrival>& arrivals) {
  std::stable_sort(arrivals.begin(), arrivals.end(), [](const Arrival& a, const Arrival& b) {
    return a.at != b.at ? a.at < b.at : a.model < b.model;
  });
}

constexpr const char* kTrafficNames[] = {"poisson", "diurnal", "bursty", "functions"};

}  // namespace

const char* traffic_name(TrafficKind kind) { return kTrafficNames[static_cast<size_t>(kind)]; }

std::optional<TrafficKind> traffic_named(std::string_view name) {
  for (size_t i = 0; i < std::size(kTrafficNames); ++i)
    if (name == kTrafficNames[i]) return static_cast<TrafficKind>(i);
  return std::nullopt;
}

std::optional<double> index_of_dispersion(const Traffic& t, double rate_per_s) {
  if (t.kind == TrafficKind::kPoisson) return 1;
  if (t.kind != TrafficKind::kBursty) return std::nullopt;
  return 1 + 2 * rate_per_s * (t.peak - 1) * (t.peak - 1) * t.burst_share * t.burst_s;
}

std::optional<double> measured_dispersion(std::span<const Arrival> arrivals, double duration_s,
                                          double window_s) {
  if (!(window_s > 0) || !(duration_s / window_s >= 2) || duration_s / window_s > 1e8) return std::nullopt;
  const auto windows = static_cast<size_t>(duration_s / window_s);
  std::vector<double> counts(windows, 0);
  for (const auto& a : arrivals) {
    const auto w = static_cast<size_t>(seconds_from_ns(a.at) / window_s);
    if (w < windows) ++counts[w];
  }
  double mean = 0, variance = 0;
  for (const double c : counts) mean += c / static_cast<double>(windows);
  for (const double c : counts) variance += (c - mean) * (c - mean) / static_cast<double>(windows - 1);
  if (!(mean > 0)) return std::nullopt;
  return variance / mean;
}

namespace {

// The arrivals of all models by `times(rate, random)`.
template <class TimesOf>
Result<std::vector<Arrival>> arrivals_by(std::span<const double> rates_per_s, double duration_s,
                                         uint64_t seed, const TimesOf& times) {
  if (!(duration_s > 0) || duration_s > 1e7)
    return invalid_input("the duration of the arrivals must be above 0 and at most 1e7 s");
  double expected = 0;
  for (const double rate : rates_per_s) {
    if (!(rate >= 0) || !std::isfinite(rate))
      return invalid_input("a rate of arrivals is negative or not a number");
    expected += rate * duration_s;
  }
  if (!(expected <= kMostArrivals))
    return unsupported("about " + std::to_string(expected) +
                       " arrivals; at most 2e8: simulate a shorter time or a lower load");
  std::vector<Arrival> arrivals;
  arrivals.reserve(static_cast<size_t>(expected * 1.1) + 16);
  for (uint32_t m = 0; m < rates_per_s.size(); ++m) {
    if (!(rates_per_s[m] * duration_s > 1e-9)) continue;
    Random random = random_stream(seed, m + 1);
    for (const TimeNs at : times(rates_per_s[m], random)) arrivals.push_back({at, m});
  }
  sort_arrivals(arrivals);
  return arrivals;
}

constexpr size_t kMostParts = 1440, kLeastInPart = 100;  // of a trace's shape

}  // namespace

Result<std::vector<Arrival>> make_arrivals(const Traffic& traffic, std::span<const double> rates_per_s,
                                           double duration_s, uint64_t seed) {
  HEDDLE_RETURN_IF_ERROR(check_traffic(traffic));
  if (traffic.kind == TrafficKind::kBursty && duration_s <= 1e7 &&
      duration_s * traffic.burst_share / traffic.burst_s > 1e8)
    return invalid_input("over 1e8 bursts; make them longer or the time shorter");
  return arrivals_by(rates_per_s, duration_s, seed, [&](double rate, Random& random) {
    return times_of(traffic, rate, duration_s, random);
  });
}

Result<std::vector<Arrival>> arrivals_in_shape(const FunctionTrace& trace,
                                               std::span<const double> rates_per_s, double duration_s,
                                               uint64_t seed) {
  HEDDLE_RETURN_IF_ERROR(check_traffic({.kind = TrafficKind::kFunctions, .functions = &trace}));
  std::vector<double> part(std::clamp<size_t>(trace.start_s.size() / kLeastInPart, 1, kMostParts), 0);
  const auto parts = static_cast<double>(part.size());
  const auto part_at = [&](double share) {
    return std::min(part.size() - 1, static_cast<size_t>(share * parts));
  };
  for (const double s : trace.start_s)
    part[part_at(s / trace.start_s.back())] += parts / static_cast<double>(trace.start_s.size());
  const double most = *std::ranges::max_element(part);
  return arrivals_by(rates_per_s, duration_s, seed, [&](double rate, Random& random) {
    return thinned(rate * most, duration_s, random,
                   [&](double t) { return rate * part[part_at(t / duration_s)]; });
  });
}

Result<std::vector<Arrival>> arrivals_from_csv(std::string_view text, std::span<const std::string> models) {
  std::vector<Arrival> arrivals;
  bool named = false;
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t end = text.find('\n');
    auto row = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!row.empty() && row.back() == '\r') row.remove_suffix(1);
    const auto fail = [&](const std::string& message) {
      return invalid_input("line " + std::to_string(line) + ": " + message);
    };
    if (line == 1) {
      named = row == "time_us,model";
      if (!named && row != "time_us")
        return fail("'" + std::string(row.substr(0, 80)) +
                    "', expected the header 'time_us' or 'time_us,model'");
      if (!named && models.size() != 1)
        return fail("no column 'model', but there are " + std::to_string(models.size()) + " models");
      continue;
    }
    if (row.empty()) continue;
    const size_t comma = row.find(',');
    const auto time = row.substr(0, comma);
    const double us = parse_number<double>(time).value_or(-1);
    if (!(us >= 0) || us > 1e12)
      return fail("'" + std::string(time.substr(0, 40)) + "' is not a time of 0 to 1e12 us");
    if (named != (comma != std::string_view::npos))
      return fail(named ? "the model is missing" : "more than the time");
    uint32_t model = 0;
    if (named) {
      const auto name = row.substr(comma + 1);
      while (model < models.size() && models[model] != name) ++model;
      if (model == models.size()) {
        const std::vector<std::string> known(models.begin(), models.end());
        return fail("no model is named '" + std::string(name.substr(0, 80)) + "'" +
                    did_you_mean(name, known) + "; there are " + join_names(known));
      }
    }
    arrivals.push_back({ns_from_us(us), model});
    if (static_cast<double>(arrivals.size()) > kMostArrivals) return fail("more than 2e8 arrivals");
  }
  if (arrivals.empty()) return invalid_input("there is no arrival");
  sort_arrivals(arrivals);
  return arrivals;
}

std::string arrivals_to_csv(const Fleet& fleet, std::span<const Arrival> arrivals) {
  std::string text = "time_us,model\n";
  for (const Arrival& a : arrivals)
    fmt::format_to(std::back_inserter(text), "{}.{:03},{}\n", a.at / 1000, a.at % 1000,
                   fleet.models[a.model].name);
  return text;
}

void scale_arrivals(std::vector<Arrival>& arrivals, double factor) {
  for (auto& a : arrivals) a.at = static_cast<TimeNs>(static_cast<double>(a.at) / factor);
}

}  // namespace heddle
