#include "heddle/fleet/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <optional>
#include <thread>

#include "plan/kept_instance.h"

namespace heddle {
namespace {

// Requests that arrive during the warm-up are not counted, and without them the others have more room.
Result<SweepPoint> play(const Deployment& deployment, const SweepOptions& o, double factor,
                        std::span<const Arrival> arrivals, const SimulationOptions& simulation) {
  SweepPoint point{.load_factor = factor};
  HEDDLE_ASSIGN_OR_RETURN(point.result, simulate(deployment, arrivals, simulation));
  if (!o.bound) return point;
  const auto counted = std::find_if(arrivals.begin(), arrivals.end(),
                                    [&](const Arrival& a) { return a.at >= simulation.warmup; });
  HEDDLE_ASSIGN_OR_RETURN(
      point.bound,
      bound_in_time(deployment, arrivals.subspan(static_cast<size_t>(counted - arrivals.begin()))));
  HEDDLE_RETURN_IF_ERROR(check_point(point, arrivals, o));
  return point;
}

Result<SweepPoint> one(const Deployment& deployment, const SweepOptions& o, double factor) {
  if (!(factor > 0 && factor <= 1000))
    return invalid_input("load factor " + std::to_string(factor) + ": expected more than 0, at most 1000");
  auto simulation = o.simulation;
  if (o.recorded != nullptr) {
    auto arrivals = *o.recorded;
    if (!arrivals.empty() && static_cast<double>(arrivals.back().at) / factor > 1e18)
      return invalid_input("load factor " + std::to_string(factor) +
                           ": spreads the recorded arrivals over more than 30 years");
    scale_arrivals(arrivals, factor);
    simulation.horizon = arrivals.empty() ? 0 : arrivals.back().at + 1;
    return play(deployment, o, factor, arrivals, simulation);
  }
  std::vector<double> rates = o.rates_per_s;
  if (rates.empty())
    for (const auto& m : deployment.models) rates.push_back(m.rate_per_s);
  for (double& r : rates) r *= factor;
  HEDDLE_ASSIGN_OR_RETURN(const auto arrivals,
                          make_arrivals(o.traffic, rates, o.duration_s, o.simulation.seed));
  simulation.horizon = ns_from_us(o.duration_s * 1e6);
  return play(deployment, o, factor, arrivals, simulation);
}

}  // namespace

Status check_point(const SweepPoint& point, std::span<const Arrival> arrivals, const SweepOptions& options) {
  for (size_t m = 0; m < point.bound.size(); ++m) {
    const auto& model = point.result.models[m];
    if (model.requests.in_time <= point.bound[m]) continue;
    return internal_error(fmt::format(
        "model '{}' at load factor {:.6g}: {} requests in time are more than the bound, {} (proven: each "
        "stage's requests in order of arrival); one of the two is wrong; {}",
        model.model, point.load_factor, model.requests.in_time, point.bound[m],
        options.fleet == nullptr
            ? "please report this with the fleet file"
            : keep_instance(*options.fleet, options.plan, arrivals_to_csv(*options.fleet, arrivals))));
  }
  return {};
}

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
  if (options.bound && (options.simulation.noise.any() || !options.simulation.migrations.empty()))
    return invalid_input(
        "a bound holds for one plan and exact times: leave out jitter, "
        "stragglers and migration");
  const size_t n = options.load_factors.size();
  std::vector<SweepPoint> points(n);
  std::vector<std::optional<Error>> errors(n);
  std::mutex mutex;
  size_t done = 0;
  for_each_on_threads(n, options.threads, [&](size_t i) {
    auto result = one(deployment, options, options.load_factors[i]);
    if (result.ok()) {
      points[i] = std::move(result).value();
    } else {
      errors[i] = result.error();
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
