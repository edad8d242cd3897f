#include "heddle/fleet/sweep.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <optional>
#include <thread>

namespace heddle {
namespace {

Result<std::vector<Arrival>> arrivals_at(const Deployment& deployment, const SweepOptions& o, double factor) {
  if (!(factor > 0 && factor <= 1000))
    return Error(Code::kInvalidInput,
                 "load factor " + std::to_string(factor) + ": expected more than 0, at most 1000");
  if (o.recorded != nullptr) {
    auto arrivals = *o.recorded;
    if (!arrivals.empty() && static_cast<double>(arrivals.back().at) / factor > 1e18)
      return Error(Code::kInvalidInput, "load factor " + std::to_string(factor) +
                                            ": spreads the recorded arrivals over more than 30 years");
    scale_arrivals(arrivals, factor);
    return arrivals;
  }
  std::vector<double> rates = o.rates_per_s;
  if (rates.empty())
    for (const auto& m : deployment.models) rates.push_back(m.rate_per_s);
  for (double& r : rates) r *= factor;
  return make_arrivals(o.traffic, rates, o.duration_s, o.simulation.seed);
}

Result<SweepPoint> one(const Deployment& deployment, const SweepOptions& o, double factor) {
  SweepPoint point{factor, {}, {}};
  HEDDLE_ASSIGN_OR_RETURN(const auto arrivals, arrivals_at(deployment, o, factor));
  auto simulation = o.simulation;
  simulation.horizon = o.recorded == nullptr ? ns_from_us(o.duration_s * 1e6)
                       : arrivals.empty()    ? 0
                                             : arrivals.back().at + 1;
  HEDDLE_ASSIGN_OR_RETURN(point.result, simulate(deployment, arrivals, simulation));
  if (!o.bound) return point;
  HEDDLE_ASSIGN_OR_RETURN(
      point.bound, goodput_bound(deployment, arrivals, {.deadline = Deadline::never(simulation.cancel)}));
  // A bound below what was served is an error of the bound.
  if (point.bound->share() + 1e-6 < point.result.total.attainment())
    return Error(Code::kInternal, "at load factor " + std::to_string(factor) +
                                      " the bound on requests in time, " +
                                      std::to_string(point.bound->share()) + ", is below what was served, " +
                                      std::to_string(point.result.total.attainment()) +
                                      "; please report this with the fleet file");
  return point;
}

}  // namespace

void for_each_on_threads(size_t n, int threads, const std::function<void(size_t)>& work) {
  if (threads <= 0) threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  threads = static_cast<int>(std::min<size_t>(static_cast<size_t>(threads), n));
  std::atomic<size_t> next{0};
  const auto loop = [&] {
    for (size_t i; (i = next.fetch_add(1)) < n;) work(i);
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(loop);
  loop();
  for (auto& t : others) t.join();
}

Result<std::vector<SweepPoint>> sweep_loads(const Deployment& deployment, const SweepOptions& options) {
  const size_t n = options.load_factors.size();
  const auto& s = options.simulation;
  if (options.bound && (s.noise.any() || !s.faults.empty() || s.migration || s.warmup > 0))
    return Error(
        Code::kInvalidInput,
        "the bound on requests in time is for exact times from the first request on: simulate it without "
        "jitter, stragglers, lost devices, change of plan and warm-up");
  std::vector<SweepPoint> points(n);
  std::vector<std::optional<Error>> errors(n);
  std::mutex mutex;
  size_t done = 0;
  for_each_on_threads(n, options.threads, [&](size_t i) {
    auto point = one(deployment, options, options.load_factors[i]);
    if (point.ok()) {
      points[i] = std::move(point).value();
    } else {
      errors[i] = point.error();
    }
    const std::lock_guard lock(mutex);
    ++done;
    if (options.progress)
      options.progress->report(
          {.what = "simulating loads", .done = static_cast<double>(done), .total = static_cast<double>(n)});
  });
  for (auto& e : errors)
    if (e) return std::move(*e);
  return points;
}

double greatest_load(std::span<const double> load_factors, const std::function<bool(size_t)>& attained) {
  size_t low = 0, high = load_factors.size();  // below `low`: attained; from `high` on: not
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (attained(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low == 0 ? 0 : load_factors[low - 1];
}

}  // namespace heddle
