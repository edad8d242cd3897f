// Goodput: the highest load that a deployment serves in time, found by simulation.
//
// A pool's sustained rate ignores waiting. Sharing a pool among several models raises no model's rate, but
// the pool serves more requests in time, since a device idles only when no model has work for it.
#pragma once

#include <span>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/status.h"
#include "heddle/fleet/arrivals.h"
#include "heddle/fleet/deployment.h"
#include "heddle/fleet/simulator.h"

namespace heddle {

struct GoodputOptions {
  SchedulerKind scheduler = SchedulerKind::kReactive;
  DispatchOptions dispatch;
  double attainment = .99;  // every model's required share of requests answered in time
  Traffic traffic;
  // Recorded arrivals instead of `traffic`, the rates and `requests`: load 1 is as they come. Must outlive the search.
  const std::vector<Arrival>* recorded = nullptr;
  double requests = 20000;  // approximate total of all models
  double precision = .01;   // relative, of the load
  double at_least = 0;      // requests/s of all models: where the search begins; if they are missed, it ends
  uint64_t seed = 1;
  CancelToken cancel;
};

struct Goodput {
  double per_s = 0;       // of all models; 0: the lowest load, or `at_least`, misses the attainment
  double attainment = 0;  // of the worst model at that load
  uint64_t events = 0;    // simulated
};

// Searches for a load factor on `rates_per_s`, [model], from 1/1024 to 2^20, by bisection under the
// assumption that attainment falls with the load. All loads use the same arrivals, scaled in time. As these end,
// they may all fit in their deadlines. So if they are not recorded, the result is at most what the devices sustain.
// Errors: those of simulate() and make_arrivals(). O(log(capacity / precision)) simulations.
Result<Goodput> goodput(const Deployment& deployment, std::span<const double> rates_per_s,
                        const GoodputOptions& options);

}  // namespace heddle
