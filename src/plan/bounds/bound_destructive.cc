// Destructive bounds: docs/bounds.md, section 10.
#include <algorithm>
#include <cmath>

#include "bound_blocks.h"
#include "bound_tables.h"
#include "heddle/base/units.h"
#include "heddle/plan/bounds.h"

namespace heddle {
namespace {

// Relative steps of T; limits on the values of T tried and on passes per value.
constexpr double kFirstStep = 0.05, kMostStep = 0.5, kLeastStep = 1e-3;
constexpr int kMostQuestions = 24, kMostPasses = 4;
// Relative margin for rounding errors of sums of heads and tails.
constexpr double kRefuted = 1e-9;

// Removes from each op the devices on which it cannot meet T. False when an op has no device left.
bool restrict_to(double us, std::span<const Block> blocks, BoundTables& tables) {
  const size_t n = tables.problem.graph->num_ops(), k = tables.devices.size();
  for (int pass = 0; pass < kMostPasses; ++pass) {
    const PathBounds paths = path_bounds(tables, blocks);
    bool changed = false;
    for (size_t v = 0; v < n; ++v) {
      bool anywhere = false;
      for (size_t i = 0; i < k; ++i) {
        double& t = tables.time[v * k + i];
        if (!(t < kInfinity)) continue;
        const double through = paths.finish[v * k + i] + paths.rest[v * k + i] - t;
        if (through <= us * (1 + kRefuted)) {
          anywhere = true;
        } else {
          t = tables.path_time[v * k + i] = kInfinity;
          if (tables.has_host_access())
            tables.host_time[v * k + i] = tables.loaded_time[v * k + i] = tables.loaded_path_time[v * k + i] =
                t;
          changed = true;
        }
      }
      if (!anywhere) return false;
    }
    if (!changed) break;
  }
  return true;
}

}  // namespace

Bound destructive_bound(const Problem& problem, const Bound& known, double value_us,
                        const Deadline& deadline) {
  if (problem.objective == Objective::kThroughput || problem.graph->num_ops() == 0) return known;
  const BoundTables tables(problem);
  const std::vector<Block> blocks = find_blocks(tables, kManyBlockSteps, deadline);
  Bound best = known;
  if (const Bound first = bound_of(tables, blocks, deadline); first.us > best.us) best = first;
  double step = kFirstStep;
  for (int i = 0; i < kMostQuestions && step >= kLeastStep; ++i) {
    if (deadline.should_stop() || !(best.us > 0) || !std::isfinite(best.us)) break;
    const double us = std::min(best.us * (1 + step), value_us * (1 - kRefuted));
    if (us <= best.us * (1 + kRefuted)) break;
    BoundTables left = tables;
    if (!restrict_to(us, blocks, left) || bound_of(left, blocks, deadline).us > us) {
      best = {us, "no plan that is faster fits"};
      step = std::min(2 * step, kMostStep);
    } else {
      step /= 2;
    }
  }
  return best;
}

}  // namespace heddle
