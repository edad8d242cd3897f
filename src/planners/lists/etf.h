// Earliest time first: of all ready ops and devices, the pair that can start first (Hwang, Chow, Anger and
// Lee, SIAM J. Computing 18(2), 1989). What m-SCT and GETF share.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "heddle/base/cancel.h"
#include "list_schedule.h"

namespace heddle {

inline constexpr uint32_t kNoOp = UINT32_MAX;

struct EtfRules {
  std::vector<double> priority;     // of ops that could start at once; the higher first
  std::vector<uint32_t> favourite;  // per op, the child that its device is kept for, or kNoOp; may be empty
  std::vector<std::vector<uint8_t>>
      tier;  // [op][device]: only devices of the least tier with room; empty: all
};

// nullopt when an op fits nowhere or the deadline was cancelled. Ignores contention.
// O((V k + E k) log V) for k devices.
std::optional<FlatPlan> earliest_time_first(const FlatProblem& flat, const EtfRules& rules,
                                            const Reserve& reserve, const Deadline& deadline);

}  // namespace heddle
