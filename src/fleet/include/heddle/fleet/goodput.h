// Goodput: the greatest load that a deployment serves in time, by simulation.
//
// What a plan's pools sustain says nothing of waiting: a pool that several models share has a greater rate
// for none of them and still serves more in time, since a device is idle only when nobody wants it.
#pragma once

#include <span>

#include "heddle/base/cancel.h"
#include "heddle/base/status.h"
#include "heddle/fleet/arrivals.h"
#include "heddle/fleet/deployment.h"
#include "heddle/fleet/simulator.h"

namespace heddle {

struct GoodputOptions {
  SchedulerKind scheduler = SchedulerKind::kReactive;
  DispatchOptions dispatch;
  double attainment = .99;  // every model's share of requests that are answered in time
  Traffic traffic;
  double requests = 20000;  // of all models, about
  double precision = .01;   // of the load
  uint64_t seed = 1;
  CancelToken cancel;
};

struct Goodput {
  double per_s = 0;       // of all models; 0: not even a trickle is served so well
  double attainment = 0;  // of the worst model there
};

// The load is a multiple of `rates_per_s`, [model], from 1/1024 to 2^20; arrivals are the same at every load,
// only closer together. Found by bisection, as if attainment fell with the load. Errors: simulate()'s and
// make_arrivals()'s. O(log(capacity / precision)) simulations.
Result<Goodput> goodput(const Deployment& deployment, std::span<const double> rates_per_s,
                        const GoodputOptions& options);

}  // namespace heddle
