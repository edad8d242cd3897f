// A fleet's server, workers, bus and links as a deterministic simulation. The code that serves runs on a simulated
// clock, scheduler and network (heddle/base/simulation.h). A seed decides fleet, load, delays and faults.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "heddle/base/control.h"
#include "heddle/base/status.h"

namespace heddle {

struct ServiceSimulationOptions {
  uint64_t seed = 1;
  // Gets faults and events as lines for people, with the simulated time; may be empty.
  std::function<void(int64_t now_ns, const std::string& line)> trace;
};

struct ServiceSimulationCounts {
  uint64_t requests = 0, in_time = 0;  // of all servers; in_time: answered by the deadline
  uint64_t faults = 0;                 // that were injected
  uint64_t crashes = 0;                // of these, of servers and workers
  uint64_t plan_changes = 0;           // that were asked for
  uint64_t steps = 0;                  // choices of the scheduler
};

struct ServiceSimulationResult {
  // kVerificationFailed: what does not hold. The same seed gives the same error and digest.
  Status status;
  uint64_t digest = 0;  // of all choices and events
  double simulated_s = 0;
  ServiceSimulationCounts counts;
};

// For a time (kSimulatedFaults_s) the seed's faults happen; then all faults end. What must hold:
// - each request that a live server has accepted gets one answer, which has the digest of its own payload;
// - no step is sent twice, and no device is given two runs at once or two workers at once, or runs for two servers;
// - memory and queues of servers, workers and streams stay bounded at all times, and in the end none is left;
// - kSimulatedRecovery_s after the last fault at least kSimulatedAttainment of the requests are in time again;
// - the server's counts of requests and of each worker's runs are those of the clients, the network and the devices.
ServiceSimulationResult simulate_service(const ServiceSimulationOptions& options);

inline constexpr double kSimulatedFaults_s = 8;
inline constexpr double kSimulatedRecovery_s = 10;
inline constexpr double kSimulatedAttainment = .95;

struct FailedSeed {
  uint64_t seed = 0;
  std::string why;
};

struct SimulatedSeeds {
  int64_t seeds = 0;  // the one that failed included
  double simulated_s = 0, seconds = 0;
  uint64_t requests = 0, faults = 0, plan_changes = 0;
  std::optional<FailedSeed> failed;
};

// In processes of their own: a seed that crashes one has failed, too. SIGINT or SIGTERM ends such a process; the result
// then has the seeds that were complete before. Errors: kCancelled, without any.
Result<SimulatedSeeds> simulate_seeds(int64_t first, int64_t seeds, const Control& control);

// What happens in a seed, line by line, in a process of its own.
void trace_seed(uint64_t seed, const std::function<void(int64_t now_ns, const std::string& line)>& trace);

}  // namespace heddle
