// A small fleet of timed devices.
#pragma once

#include "heddle/fleet/fleet.h"

namespace heddle {

// One model of two blocks on two fast and four slow devices.
inline Fleet two_classes(double slo_us = 2e6) {
  Fleet fleet;
  fleet.name = "two";
  fleet.classes = {{.name = "fast", .count = 2, .nic_bytes_per_s = 1e9},
                   {.name = "slow", .count = 4, .nic_bytes_per_s = 1e9}};
  FleetModel net;
  net.name = "net";
  net.blocks = 2;
  net.cut_bytes = {1000, 1000, 1000};
  net.slo_us = slo_us;
  net.latency_us = {{{{2000, 2000}}}, {{{4000, 5000}}}};
  fleet.models = {net};
  return fleet;
}

}  // namespace heddle
