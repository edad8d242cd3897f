// Random graphs of the papers, deterministic for a seed. docs/generators.md has the exact definitions, and
// the choices made for details that a paper leaves open.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/graph/graph.h"

namespace heddle {

// HIOS's simulation instances (HIOS, section V-A).
struct LayeredOptions {
  int ops = 200;
  int layers = 14;
  int deps = 0;  // 0: twice the ops, or all that the layers allow if these are fewer
  uint64_t seed = 1;
  double min_us = 100, max_us = 4000;  // op times, uniform on a grid of 0.1 us
  double min_utilization = 0.6;        // uniform up to 1, on a grid of 0.0001
  double transfer_share = 0.8;         // p: transfer = max(min_transfer_us, p * time of the source)
  double min_transfer_us = 100;
  // Tensor sizes are set so that a link of this speed takes exactly the transfer time.
  double link_bytes_per_s = 1e9;
  // When empty: one class "*". Otherwise each class i gets a given time per op: base * factor_i * U[1-s,
  // 1+s], with s = device_spread.
  std::vector<std::pair<std::string, double>> device_class_factors;
  double device_spread = 0;
};
// Fails when an option is out of its range, or the layers need more ops. Also fails when matching
// neighbouring layers needs more than `deps` (the message says how many), or they allow fewer. O(ops + deps).
Result<std::shared_ptr<const Graph>> generate_layered(const LayeredOptions& options);

// DiviML's random wired networks (DiviML, section V): a stem, a row of modules (random graphs), a head. One
// edge per channel connects a module to the next.
struct RandomWiredOptions {
  enum class Family { kErdosRenyi, kWattsStrogatz, kBarabasiAlbert };
  // kSeries (the paper's sdep): all paths of a module start at one of its inputs and end at one of its
  // outputs; its other inputs and outputs are wired to random samples of ops. kWeak (wdep): every input and
  // output is wired to a random sample. With one channel both are the same.
  enum class Dependency { kSeries, kWeak };
  Family family = Family::kErdosRenyi;
  int nodes = 10;  // N per module
  double er_p = 0.2;
  int ws_k = 4;
  double ws_p = 0.75;
  int ba_m = 5;
  int modules = 10;
  int channels = 1;  // edges between consecutive modules; at most `nodes`
  Dependency dependency = Dependency::kSeries;
  uint64_t seed = 1;
  int64_t batch = 1;
  int64_t image = 224;  // height and width of the input picture
  int64_t width = 78;   // feature maps of the first modules (Xie et al., small regime)
  // Given times for these device classes; none when empty. On a class of factor f an op takes
  //   base * (1 + (f - 1) w),
  // base = half constant, half proportional to the bytes that the op moves, with mean mean_us over all ops.
  // The random weight w >= 0 is skewed by device_affinity: 0 gives w = 1 for all ops, near 1 a few ops are
  // much slower on that class and most hardly. So factor 1 is the fastest class for every op. w is scaled so
  // that the whole network takes exactly f times as long as on a class of factor 1.
  std::vector<std::pair<std::string, double>> device_class_factors;
  double mean_us = 620;
  double device_affinity = 0.8;
  // Above 0: before scaling, each op's time on each class except the first one of factor 1 is multiplied by
  // e^(crossing g), g standard normal. Some ops are then faster on a class that is slower on average.
  double device_crossing = 0;
};
// Fails when an option is out of its range or when no connected random graph came up in 10,000 tries.
Result<std::shared_ptr<const Graph>> generate_random_wired(const RandomWiredOptions& options);

}  // namespace heddle
