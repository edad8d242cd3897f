// Simulates one deployment at several loads in parallel. Each simulation derives its own arrivals from the
// seed, so the results do not depend on the number of threads.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "heddle/base/progress.h"
#include "heddle/fleet/fleet_plan.h"
#include "heddle/fleet/load_bound.h"
#include "heddle/fleet/simulator.h"

namespace heddle {

struct SweepOptions {
  std::vector<double> load_factors = {1};
  Traffic traffic;
  // Recorded arrivals instead of `traffic`; a load factor divides their times. Must outlive the sweep.
  const std::vector<Arrival>* recorded = nullptr;
  std::vector<double> rates_per_s;  // [model] at load factor 1; empty: the deployment's rates
  double duration_s = 30;           // of the generated arrivals; recorded ones keep their length
  SimulationOptions simulation;     // the sweep sets its horizon
  bool bound = false;               // bound the requests in time; needs exact times and no migration
  // What was deployed: kept in files if the requests in time contradict the bound. Null: nothing is kept.
  const Fleet* fleet = nullptr;
  const FleetPlan* plan = nullptr;
  int threads = 0;  // 0: as many as the machine has cores
  ProgressSink* progress = nullptr;
};

struct SweepPoint {
  double load_factor = 0;
  SimulationResult result;
  std::vector<uint64_t> bound;  // [model] most counted requests in time by any scheduler; empty: not asked
};

// More requests in time than the point's bound: kInternal, with the files that now have fleet, plan and arrivals.
Status check_point(const SweepPoint& point, std::span<const Arrival> arrivals, const SweepOptions& options);

// Results in the order of the load factors. Errors: those of make_arrivals(), simulate() and check_point(),
// cancellation.
Result<std::vector<SweepPoint>> sweep_loads(const Deployment& deployment, const SweepOptions& options);

// Calls work(0) .. work(n - 1), each once, on up to `threads` threads; returns when all are done.
void for_each_on_threads(size_t n, int threads, const std::function<void(size_t)>& work);

// The greatest load factor up to which all are attained; 0 if none is. `load_factors` ascend, and attained(i)
// tests the i-th. Bisection: attainment is assumed to fall with the load.
double greatest_load(std::span<const double> load_factors, const std::function<bool(size_t)>& attained);

}  // namespace heddle
