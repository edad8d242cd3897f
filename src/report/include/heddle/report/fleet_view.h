// Simulations of a fleet plan as machine-readable tables and as a page with charts.
#pragma once

#include <optional>
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

// The highest load factor of the series up to which the wanted attainment holds at every one; nullopt: at none.
std::optional<double> load_attained(const FleetSimulationSeries& series, double wanted);

// One simulation: counts, latencies and queueing in us, use per class, batch sizes, probes, events.
Json simulation_json(const SimulationResult& result);
// The same with the load factor and, if it was asked for, the bound.
Json simulation_point_json(const SweepPoint& point);

// One line per scheduler, load factor and model, and one for all models together (model "*"); times in us.
std::string simulation_csv(const std::vector<FleetSimulationSeries>& series);

// Tables for people: a line per scheduler and load factor, then the models of the last series at its highest
// load, then the load factors up to which the wanted attainment holds.
std::string simulation_text(const FleetSimulationView& view);

// A self-contained HTML page (no network, no script): tiles with the last series' figures, attainment, use per class
// and latency percentiles over the load factor, the course of the highest load, and the window of the last series'
// last point as a timeline.
std::string fleet_simulation_html(const FleetSimulationView& view);

}  // namespace heddle
