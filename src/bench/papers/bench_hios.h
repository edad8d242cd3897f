// What the parts of the hios suite share.
#pragma once

#include <map>
#include <string>

#include "heddle/planners/planner.h"
#include "heddle/planners/shared_bound.h"
#include "rows.h"

namespace heddle::bench {

// The planners of HIOS's figures and Heddle's constructive ones, sequential first; with a time limit also
// the search, which takes all of it.
std::vector<std::string> hios_planners(const BenchOptions& options);

// One planner's figures on one instance, in ms.
struct HiosFigures {
  double latency_ms = 0, bound_ms = 0, planning_s = 0;
};
// Every planner of hios_planners() on the problem; the bound is the best of all.
Result<std::map<std::string, HiosFigures>> run_hios_planners(const Problem& problem,
                                                             const BenchOptions& options,
                                                             const Control& control);

BenchRow hios_row(const std::string& instance, const std::string& planner, const std::string& metric,
                  const std::string& unit, double value);
BenchRow hios_latency_row(const std::string& instance, const std::string& planner, const std::string& metric,
                          const HiosFigures& figures);

// A folder of simulation instances with the figures of others (reference.jsonl) beside.
Status bench_hios_input(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows);
// Real networks with roofline costs.
Status bench_hios_models(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows);

}  // namespace heddle::bench
