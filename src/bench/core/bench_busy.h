// Does a plan hold while other work runs on the machine? Latency of the usual plan beside engines that run the model
// alone on all cores, in turns, with busy neighbours.
#pragma once

#include <array>

#include "bench_files.h"

namespace heddle::bench {

// To the better engine, one figure for each model.
struct LoadRatios {
  std::vector<double> median, p95;
};
using BusyRatios = std::array<LoadRatios, 3>;  // beside 0, 1 and 2 threads that each keep a core busy

Status bench_busy(const BenchModel& model, const BenchOptions& options, const Control& control,
                  std::vector<BenchRow>& rows, BusyRatios& ratios);
// The largest ratios of all models.
void add_busy_totals(const BusyRatios& ratios, std::vector<BenchRow>& rows);

}  // namespace heddle::bench
