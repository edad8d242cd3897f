// Random graphs of the papers, deterministic for a seed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "heddle/graph/graph.h"

namespace heddle {

// HIOS's simulation instances (HIOS, section V-A; exact definition in docs/generators.md).
struct LayeredOptions {
  int ops = 200;
  int layers = 14;
  int deps = 400;
  uint64_t seed = 1;
  double min_us = 100, max_us = 4000;       // op times, uniform
  double min_utilization = 0.6;             // uniform up to 1
  double transfer_share = 0.8;              // p: transfer = max(min_transfer_us, p * time of the source)
  double min_transfer_us = 100;
  // Tensor bytes are chosen so that a link of this speed needs the transfer time.
  double link_bytes_per_s = 1e9;
  // One class "*" when empty; else one given time per class, each op's time on class i = base * factor_i * U[1-s, 1+s].
  std::vector<std::pair<std::string, double>> device_class_factors;
  double device_spread = 0;
};
Result<std::shared_ptr<const Graph>> generate_layered(const LayeredOptions& options);

// DiviML's random wired networks (DiviML, section V-A): modules of random graphs in one or more channels.
struct RandomWiredOptions {
  enum class Family { kErdosRenyi, kWattsStrogatz, kBarabasiAlbert };
  enum class Dependency { kSeries, kWeak };  // sdep: every module output feeds all of the next; wdep: per channel, sometimes across
  Family family = Family::kErdosRenyi;
  int nodes = 10;                            // N per module
  double er_p = 0.2;
  int ws_k = 4;
  double ws_p = 0.75;
  int ba_m = 5;
  int modules = 10;
  int channels = 1;
  Dependency dependency = Dependency::kSeries;
  uint64_t seed = 1;
};
Result<std::shared_ptr<const Graph>> generate_random_wired(const RandomWiredOptions& options);

// Small random DAGs for property tests: n ops, each earlier op a predecessor with probability p.
std::shared_ptr<const Graph> generate_random_dag(int ops, double edge_probability, uint64_t seed);

}  // namespace heddle
