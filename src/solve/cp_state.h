// The contents of a CpModel as CP-SAT's own message, for the check and the solver.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "heddle/solve/cp.h"
#include "ortools/sat/cp_model.pb.h"

namespace heddle {

// Sums that cannot overflow.
__extension__ using Wide = __int128;

struct CpModel::State {
  cp_sat::CpModelProto proto;  // variables and constraints
  // start + size == end of the intervals. These constraints follow all others, so that the
  // number of a constraint in an error is the caller's.
  std::vector<cp_sat::ConstraintProto> interval_sums;
  std::optional<cp_sat::LinearExpressionProto> objective;
  std::map<int32_t, int64_t> hints;  // by variable
  std::optional<CpLit> always;

  cp_sat::ConstraintProto& add(std::span<const CpLit> when);
};

// kInvalidInput for unknown variables and intervals, literals of non-binaries, lower > upper, expressions of
// several variables if only one is allowed, and values so large that CP-SAT's 64-bit sums could overflow.
Status check_model(const CpModel& model);

// The model's parts beside its variables and constraints. Two serialised messages in a row are one.
cp_sat::CpModelProto rest_of(const CpModel::State& state);

Wide evaluate(const cp_sat::LinearExpressionProto& expr, std::span<const int64_t> values);

// The smallest and the largest value of an expression within its variables' bounds.
std::pair<Wide, Wide> range_of(const cp_sat::LinearExpressionProto& expr, const CpModel::State& state);

}  // namespace heddle
