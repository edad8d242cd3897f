// The loads up to which a plan serves the wanted share in time, in steps of .01, beside the bound on any scheduler.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "bench_ppipe_cases.h"

namespace heddle::bench {

struct PpipeLoads {
  double served = 0, bound = 0;  // greatest load factors, mean over the models
};

// A plan's simulations and bounds on the arrivals of one seed, each made when it is asked for.
class PpipeLoadShares {
 public:
  // All must outlive it. `functions` is the trace of traffic 1.
  PpipeLoadShares(const PpipeCase& c, const FunctionTrace& functions, uint64_t seed,
                  const CancelToken& cancel);

  // [model] requests, and how many are in time or could be, at a load factor.
  struct Counts {
    std::vector<uint64_t> requests, in_time;
  };
  Result<Counts> served(double load) const;
  Result<Counts> bound(double load) const;
  Result<PpipeLoads> greatest() const;
  Result<double> greatest_served() const;

 private:
  template <class CountsAt>
  Result<double> greatest_of(const CountsAt& counts_at) const;

  const PpipeCase& case_;
  SweepOptions options_;
};

// Plans are chosen on other arrivals than those that are measured.
inline constexpr uint64_t kPpipeOtherSeeds = 1000;

inline constexpr double kPpipePlanRequests = 20000;  // of each simulation that chooses a plan

// The planner `auto` with margins chosen for traffic 0 or 1 by simulations of `requests` each.
Result<FleetPlan> plan_for_traffic(const Fleet& fleet, size_t traffic, double requests,
                                   const PpipeBench& bench);
// Such plans for the instances of the cases of `auto`; the planner is "auto for the traffic".
Result<PpipePlans> ppipe_plans_for_traffic(const PpipeBench& bench, const PpipePlans& plans);

// The traces of `seeds` seeds. Bursty arrivals depend on the trace alone, so each seed has its own.
Result<std::vector<FunctionTrace>> ppipe_functions(const PpipeBench& bench, int seeds);

}  // namespace heddle::bench
