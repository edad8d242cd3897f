// Simulations of one deployment at several loads, side by side on the machine's cores. Each is independent
// and has its own arrivals from the seed, so that the results do not depend on the number of threads.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "heddle/base/progress.h"
#include "heddle/fleet/simulator.h"

namespace heddle {

struct SweepOptions {
  std::vector<double> load_factors = {1};
  Traffic traffic;
  // Recorded arrivals instead of `traffic`; a load factor moves them closer together. Must outlive the sweep.
  const std::vector<Arrival>* recorded = nullptr;
  std::vector<double> rates_per_s;  // [model] at load factor 1; empty: the deployment's
  double duration_s = 30;           // of the arrivals; recorded ones keep their own
  SimulationOptions simulation;     // its horizon is set by the sweep
  int threads = 0;                  // 0: as many as cores
  ProgressSink* progress = nullptr;
};

struct SweepPoint {
  double load_factor = 0;
  SimulationResult result;
};

// In the order of the load factors. Errors: those of make_arrivals() and simulate(), cancelled.
Result<std::vector<SweepPoint>> sweep_loads(const Deployment& deployment, const SweepOptions& options);

// Calls work(0) .. work(n - 1), each once, on up to `threads` threads; returns when all are done.
void for_each_on_threads(size_t n, int threads, const std::function<void(size_t)>& work);

// The greatest of the load factors (ascending) up to which every one is attained: attained(i) asks for the
// i-th. It is found by bisection, as attainment falls with the load; 0 when not even the least is.
double greatest_load(std::span<const double> load_factors, const std::function<bool(size_t)>& attained);

}  // namespace heddle
