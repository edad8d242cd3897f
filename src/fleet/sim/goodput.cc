#include "heddle/fleet/goodput.h"

#include <algorithm>
#include <vector>

namespace heddle {
namespace {

constexpr double kLeastLoad = 1. / 1024, kMostLoad = 1 << 20;  // range of the search
constexpr double kStepAbove = 1.02;  // first step above a load that is expected to be near the greatest

// The worst model's attainment when the arrivals come `load` times as fast.
Result<double> attained(const Deployment& deployment, const std::vector<Arrival>& arrivals, double load,
                        const GoodputOptions& options, uint64_t& events) {
  auto closer = arrivals;
  scale_arrivals(closer, load);
  SimulationOptions o;
  o.scheduler = options.scheduler;
  o.dispatch = options.dispatch;
  o.cancel = options.cancel;
  HEDDLE_ASSIGN_OR_RETURN(const auto result, simulate(deployment, closer, o));
  events += result.events;
  double worst = 1;
  for (const auto& m : result.models)
    if (m.requests.arrivals > 0) worst = std::min(worst, m.requests.attainment());
  return worst;
}

}  // namespace

Result<Goodput> goodput(const Deployment& deployment, std::span<const double> rates_per_s,
                        const GoodputOptions& options) {
  double total = 0;
  std::vector<Arrival> arrivals;
  if (options.recorded != nullptr && !options.recorded->empty()) {
    arrivals = *options.recorded;
    total = static_cast<double>(arrivals.size()) / seconds_from_ns(arrivals.back().at + 1);
  } else {
    for (const double r : rates_per_s) total += r;
  }
  if (!(total > 0) || !(options.requests >= 1) || !(options.precision > 0))
    return invalid_input("goodput needs a rate, requests and a precision above 0");
  if (arrivals.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(
        arrivals, make_arrivals(options.traffic, rates_per_s, options.requests / total, options.seed));
  }
  // Doubles or halves the load until one load meets the attainment and another does not.
  double low = 0, high = 0, load = 1, step = 2;
  if (options.at_least > 0) {
    load = options.at_least / total;
    step = kStepAbove;
  }
  Goodput best;
  uint64_t events = 0;
  const auto try_load = [&]() -> Status {
    HEDDLE_ASSIGN_OR_RETURN(const double worst, attained(deployment, arrivals, load, options, events));
    if (worst >= options.attainment) {
      low = load;
      best = {load * total, worst, 0};
    } else {
      high = load;
    }
    return {};
  };
  while ((low == 0 || high == 0) && load >= kLeastLoad && load <= kMostLoad) {
    HEDDLE_RETURN_IF_ERROR(try_load());
    if (options.at_least > 0 && low == 0) return Goodput{.events = events};
    load *= low == load ? step : 1 / step;
    step = std::min(2., step * step);
  }
  while (low > 0 && high - low > options.precision * low) {
    load = (low + high) / 2;
    HEDDLE_RETURN_IF_ERROR(try_load());
  }
  best.events = events;
  return best;
}

}  // namespace heddle
