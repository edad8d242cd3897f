// Set-up of the tests of placement-search's methods: a random problem with its instance.
#pragma once

#include <limits>
#include <memory>

#include "partition/placement_instance.h"
#include "plan/workload_support.h"

namespace heddle::test {

inline constexpr PlacementOptions kContiguousStream{.objective = Objective::kThroughput, .contiguous = true};
inline constexpr PlacementOptions kFreeStream{.objective = Objective::kThroughput};
inline constexpr PlacementOptions kOnePiece{};
inline constexpr PlacementOptions kPiecesOfTwo{.pieces = 2};

// The instance points to the problem, so both stay where they are.
struct RandomInstance {
  RandomInstance(const RandomPlacement& shape, uint64_t seed, const PlacementOptions& options)
      : problem(random_placement_problem(shape, seed, options)),
        instance(made(PlacementInstance::make(problem))) {}
  RandomInstance(const RandomInstance&) = delete;
  RandomInstance& operator=(const RandomInstance&) = delete;

  const PlacementGraph& graph() const { return instance.workload(); }
  // The evaluator's value of what the checker accepts; infinity when it does not.
  double value_us(const PlacementSplit& split) const {
    return instance.value_us(split).value_or(std::numeric_limits<double>::infinity());
  }

  const Problem problem;
  const PlacementInstance instance;
};

}  // namespace heddle::test
