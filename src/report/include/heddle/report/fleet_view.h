// Simulations of a fleet plan as machine-readable tables and as a page with charts.
#pragma once

#include <string>
#include <vector>

#include "heddle/base/json_fwd.h"
#include "heddle/fleet/sweep.h"

namespace heddle {

// One scheduler's simulations, ascending load factors.
struct FleetSimulationSeries {
  std::string scheduler;
  std::vector<SweepPoint> points;
};

struct FleetSimulationView {
  std::string title;    // fleet and plan
  std::string traffic;  // in words
  const Deployment* deployment = nullptr;
  std::vector<FleetSimulationSeries> series;
  double wanted_attainment = .99;
  TimeNs window_from = 0, window_to = 0;  // window of the timeline; empty: no timeline
};

// One simulation: counts, latencies and queueing in us, use per class, batch sizes, probes, events.
Json simulation_json(const SimulationResult& result);

// One line per scheduler, load factor and model, and one for all models together (model "*"); times in us.
std::string simulation_csv(const std::vector<FleetSimulationSeries>& series);

// A self-contained HTML page (no network, no script). Over the load factor: attainment, use per class,
// latency percentiles. For the highest load: its course. For the last point of the last series: the window as
// a timeline.
std::string fleet_simulation_html(const FleetSimulationView& view);

}  // namespace heddle
