#include "heddle/fleet/goodput.h"

#include <algorithm>
#include <cmath>
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

// Rows per second of one device of the pool, at its best batch size.
double best_rate(const DevicePool& pool) {
  double best = 0;
  for (size_t b = 0; b < pool.run_ns.size(); ++b)
    best = std::max(best, static_cast<double>(b + 1) / seconds_from_ns(pool.run_ns[b]));
  return best;
}

// The load that the devices cannot exceed for ever, however long requests may wait: each model's pools have that many
// rows per second, and all devices that much time.
double most_sustained(const Deployment& deployment, std::span<const double> rates_per_s) {
  double most = kMostLoad, device_time = 0;
  for (size_t m = 0; m < rates_per_s.size(); ++m) {
    double capacity = 0, least_time = INFINITY;
    for (const uint32_t p : deployment.models[m].pipelines) {
      double of_pipeline = INFINITY, time = 0;
      for (const auto& pool : deployment.pipelines[p].partitions) {
        const double rate = best_rate(pool);
        of_pipeline = std::min(of_pipeline, pool.num_devices * rate);
        time += 1 / rate;
      }
      capacity += of_pipeline;
      least_time = std::min(least_time, time);
    }
    if (!(rates_per_s[m] > 0) || deployment.models[m].pipelines.empty()) continue;
    most = std::min(most, capacity / rates_per_s[m]);
    device_time += rates_per_s[m] * least_time;
  }
  if (device_time > 0) most = std::min(most, static_cast<double>(deployment.devices.size()) / device_time);
  return most;
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
  // Where the deadlines are longer than all these requests take, none is late, however close they come.
  if (options.recorded == nullptr || options.recorded->empty()) {
    const double most = most_sustained(deployment, rates_per_s) / std::max(options.attainment, .01);
    if (best.per_s > most * total) best.per_s = most * total;
  }
  best.events = events;
  return best;
}

}  // namespace heddle
