// What the simulated parts of the ppipe suite share: a plan on an instance, and the greatest load at which
// its requests are answered in time.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench_ppipe.h"
#include "heddle/fleet/sweep.h"

namespace heddle::bench {

inline constexpr const char* kPpipeTraffics[] = {"poisson", "bursty"};  // PpipeCase::traffic
inline constexpr double kPpipeSeconds = 10;  // of arrivals; the paper's simulator plays 30
inline constexpr double kPpipeAttainment = .99;

// One plan on one instance under one traffic and scheduler.
struct PpipeCase {
  std::string cluster, group, planner;
  size_t traffic = 0;  // 0: Poisson, 1: the folded trace of functions
  SchedulerKind scheduler = SchedulerKind::kReservation;
  const Deployment* deployment = nullptr;
  std::vector<double> rates;  // of load factor 1: the PPipe plan's, in whole requests per second
  DispatchOptions dispatch;
};
std::string ppipe_instance(const PpipeCase& c);  // "HC1-L/G1"

// The published plans and `auto`'s for the same instances, each with the traffics and schedulers that are
// simulated.
struct PpipePlans {
  std::vector<Deployment> deployments;  // reserved once: cases point into it
  std::vector<PpipeCase> cases;
};

struct PpipeOutcome {
  double load = 0;                               // greatest at the wanted attainment, mean over the models
  double low_use = 0, high_use = 0, probes = 0;  // at that load
  double simulating_s = 0;
};
// Of several, for their mean.
struct PpipeSum {
  double load = 0, low_use = 0, high_use = 0, probes = 0;
  int n = 0;
  void add(const PpipeOutcome& o) {
    load += o.load;
    low_use += o.low_use;
    high_use += o.high_use;
    probes += o.probes;
    ++n;
  }
};

// Of --only what is no part's name: clusters (HC1-L) and instances (HC1-L/G1); none: all.
bool ppipe_instance_wanted(const BenchOptions& options, const std::string& cluster, const std::string& group);

// Of the wanted instances. Errors name the plan that cannot be laid out.
Result<PpipePlans> make_ppipe_plans(const std::vector<PpipeReference>& references,
                                    const BenchOptions& options);

// The cases side by side on the machine's cores, in their order, with progress. `functions` is the trace of
// traffic 1. The same for every number of threads.
Result<std::vector<PpipeOutcome>> measure_ppipe_cases(std::span<const PpipeCase> cases,
                                                      const FunctionTrace& functions, int64_t seed,
                                                      const Control& control);

}  // namespace heddle::bench
