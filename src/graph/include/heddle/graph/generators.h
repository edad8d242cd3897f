// Random graphs of the papers, deterministic for a seed. The exact definitions, and what was chosen where a
// paper is silent, are in docs/generators.md.
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
  int deps = 400;
  uint64_t seed = 1;
  double min_us = 100, max_us = 4000;  // op times, uniform on a grid of 0.1 us
  double min_utilization = 0.6;        // uniform up to 1, on a grid of 0.0001
  double transfer_share = 0.8;         // p: transfer = max(min_transfer_us, p * time of the source)
  double min_transfer_us = 100;
  // Tensor bytes are chosen so that a link of this speed needs the transfer time.
  double link_bytes_per_s = 1e9;
  // One class "*" when empty; else one given time per class, each op's time on class i = base * factor_i *
  // U[1-s, 1+s].
  std::vector<std::pair<std::string, double>> device_class_factors;
  double device_spread = 0;
};
// Fails when an option is out of its range, when the layers need more ops than given, when neighbouring
// layers need more dependencies than given (the message says how many), or when the ops cannot have that
// many. O(ops + deps).
Result<std::shared_ptr<const Graph>> generate_layered(const LayeredOptions& options);

// DiviML's random wired networks (DiviML, section V): a stem, modules of random graphs in a row, a head. Two
// modules are tied by one edge per channel.
struct RandomWiredOptions {
  enum class Family { kErdosRenyi, kWattsStrogatz, kBarabasiAlbert };
  // kSeries (the paper's sdep): all paths of a module stem from one of its inputs and converge to one of its
  // outputs; the others are wired to a random sample of ops. kWeak (wdep): every input and output is wired to
  // a random sample. With one channel there is no difference.
  enum class Dependency { kSeries, kWeak };
  Family family = Family::kErdosRenyi;
  int nodes = 10;  // N per module
  double er_p = 0.2;
  int ws_k = 4;
  double ws_p = 0.75;
  int ba_m = 5;
  int modules = 10;
  int channels = 1;  // edges between two modules; up to `nodes`
  Dependency dependency = Dependency::kSeries;
  uint64_t seed = 1;
  int64_t batch = 1;
  int64_t image = 224;  // height and width of the input picture
  int64_t width = 78;   // feature maps of the first modules (Xie et al., small regime)
  // Given times for these classes; none when empty. On a class of factor f an op takes base * (1 + (f - 1)
  // w): base half the same for all and half in proportion to the bytes it moves, mean_us in the mean; w >= 0,
  // so that factor 1 is the fastest class for all ops, skewed by the affinity (0: w = 1 for all; near 1: a
  // few ops are much slower there, most hardly) and scaled so that the whole network takes exactly f times as
  // long as on a class of factor 1.
  std::vector<std::pair<std::string, double>> device_class_factors;
  double mean_us = 620;
  double device_affinity = 0.8;
  // Above 0, each op's time on each class other than the first of factor 1 is multiplied by e^(crossing g), g
  // normal, before it is scaled: some ops are then faster on a class that is slower in the mean.
  double device_crossing = 0;
};
// Fails when an option is out of its range, or when 10,000 tries gave no connected random graph.
Result<std::shared_ptr<const Graph>> generate_random_wired(const RandomWiredOptions& options);

// Small random DAGs for property tests: n ops, each earlier op a predecessor with probability p.
std::shared_ptr<const Graph> generate_random_dag(int ops, double edge_probability, uint64_t seed);

}  // namespace heddle
