#include "heddle/serve/simulate_service.h"

#include "service_run.h"
#include "simulated_fleets.h"

namespace heddle {

ServiceSimulationResult simulate_service(const ServiceSimulationOptions& options) {
  planned_fleets();
  ServiceSimulationResult result;
  ThreadSimulationOptions simulated;
  simulated.seed = options.seed;
  simulated.trace = options.trace;
  simulated.switching = Random(options.seed).uniform(.02, .5);
  Simulation simulation(simulated);
  const auto start = std::make_shared<int64_t>(0);
  auto counts = std::make_shared<ServiceSimulationCounts>();
  Random choices(options.seed ^ 0x5354414e'44425953);
  ServiceRunKind kind;
  kind.standbys = choices.chance(.4) ? static_cast<size_t>(choices.between(1, 2)) : 0;
  kind.keeps_files = choices.chance(kind.standbys > 0 ? .5 : .2);
  kind.steady = choices.chance(.5);
  result.status = simulation.run([&simulation, counts, start, kind] {
    *start = simulation.now();
    ServiceRun(*counts, kind).run();
  });
  result.digest = simulation.digest();
  result.counts = *counts;
  result.counts.steps = simulation.steps();
  result.simulated_s = seconds_from_ns(simulation.now() - *start);
  return result;
}

}  // namespace heddle
