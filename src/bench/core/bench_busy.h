// Does a plan hold while other work runs on the machine? Latency of the usual plan beside engines that run the model
// alone on all cores, in turns, with busy neighbours.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "bench_files.h"

namespace heddle::bench {

// To the better engine, one figure for each model.
struct LoadRatios {
  std::vector<double> median, p95;
};
using BusyRatios = std::array<LoadRatios, 3>;  // beside 0, 1 and 2 threads that each keep a core busy

Status bench_busy(const BenchModel& model, const BenchOptions& options, const Control& control,
                  std::vector<BenchRow>& rows, BusyRatios& ratios);
// What their metrics begin with.
std::string with_neighbours(size_t count);

}  // namespace heddle::bench
