// What a choice of slots comes to: equations 9 to 23 of SortingHat (ICS'25) as a calculation. The model is not the
// evaluator's, so no other timer can stand in. A choice for a submodel of GPT-2 large takes 4,000 instructions.
#pragma once

#include <vector>

#include "slot_problem.h"

namespace heddle {

// Per node its slot, or kNoSlot while it is not placed.
using Slots = std::vector<uint32_t>;
inline constexpr uint32_t kNoSlot = UINT32_MAX;

// Not thread-safe; the problem must outlive it.
class SlotTimer {
 public:
  explicit SlotTimer(const SlotProblem& problem);

  // False when equations 2 to 8 do not hold, or a time is infinite. Nodes without a slot, and their edges, do
  // not count. O(nodes + edges + slots).
  bool time(const Slots& slots);
  // Of the last choice: TotalLatency (23); the bytes above the limits (11); when buses and devices are free,
  // as a sum, which decides between equals.
  double total_us() const { return total_; }
  double excess_bytes() const { return excess_; }
  double free_us() const;
  // Equation 14, and 17 to 22: per slot.
  const std::vector<double>& load_start() const { return load_start_; }
  const std::vector<double>& load_finish() const { return load_finish_; }
  const std::vector<double>& start() const { return start_; }
  const std::vector<double>& finish() const { return finish_; }
  // All slots but 0, by start, each after those that it reads from.
  std::vector<uint32_t> sequence() const;

 private:
  bool place_loads(const Slots& slots);
  bool count_copies(const Slots& slots);
  bool run_slots(const Slots& slots);
  bool returns(const Slots& slots, uint32_t from, uint32_t slot);
  void count_memory(const Slots& slots);

  const SlotProblem& p_;
  std::vector<std::vector<uint32_t>> readers_;  // per node
  std::vector<double> load_start_, load_finish_, start_, finish_, run_, ready_;
  std::vector<uint32_t> missing_, stack_, rank_;
  std::vector<std::vector<uint32_t>> next_;  // per slot
  std::vector<uint32_t> mark_;               // node x slot: copied in this round
  uint32_t round_ = 0;
  std::vector<uint32_t> seen_;  // per op node
  uint32_t search_ = 0;
  std::vector<double> memory_;
  double total_ = 0, excess_ = 0;
};

}  // namespace heddle
