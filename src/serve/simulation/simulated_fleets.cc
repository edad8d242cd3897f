#include "simulated_fleets.h"

#include "heddle/fleet/fleet_planner.h"

namespace heddle {
namespace {

// Two parts on two classes: feature maps travel.
Fleet two_parts() {
  Fleet fleet;
  fleet.name = "two-parts";
  fleet.classes = {{.name = "front", .count = 3, .nic_bytes_per_s = 1e8},
                   {.name = "back", .count = 3, .nic_bytes_per_s = 1e8}};
  FleetModel net;
  net.name = "net";
  net.blocks = 2;
  net.cut_bytes = {1000, 6000, 1000};
  net.slo_us = 600e3;
  net.latency_us = {{{{40e3, 800e3}}}, {{{800e3, 40e3}}}};
  fleet.models = {net};
  return fleet;
}

// Two models on one class, in batches.
Fleet two_models() {
  Fleet fleet;
  fleet.name = "two-models";
  fleet.classes = {{.name = "card", .count = 4, .nic_bytes_per_s = 1e9}};
  FleetModel one;
  one.name = "net";
  one.blocks = 1;
  one.cut_bytes = {1000, 1000};
  one.slo_us = 400e3;
  one.latency_us = {{{{40e3}, {60e3}, {80e3}}}};
  FleetModel two = one;
  two.name = "other";
  two.slo_us = 600e3;
  two.latency_us = {{{{60e3}, {90e3}}}};
  fleet.models = {one, two};
  return fleet;
}

// The same with runs that take longer than a request may wait after its deadline, in batches.
Fleet long_runs() {
  Fleet fleet = two_parts();
  fleet.name = "long-runs";
  fleet.models[0].slo_us = 1800e3;
  fleet.models[0].latency_us = {{{{300e3, 3000e3}, {400e3, 4000e3}}}, {{{3000e3, 300e3}, {4000e3, 400e3}}}};
  return fleet;
}

}  // namespace

const std::vector<PlannedFleet>& planned_fleets() {
  static const std::vector<PlannedFleet> kAll = [] {
    std::vector<PlannedFleet> all;
    for (auto& fleet : {two_parts(), two_models(), long_runs()})
      all.push_back({fleet, plan_fleet(fleet, "auto").value()});
    return all;
  }();
  return kAll;
}

}  // namespace heddle
