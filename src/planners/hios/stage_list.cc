// Stage list: list scheduling with insertion and with grouping while it constructs.
//
// Minimises the makespan of one request. Ops by falling upward rank (HEFT, equation 8; HIOS's priority
// indicator), several times with transfers weighted differently in it. An op goes to the slot, a new stage or
// one that it joins, where the longest path through it is shortest: what waits for it counts with its rank
// until it is placed, what is placed already with its true tail (stage_state.h), so that a slot that pushes
// others back is charged for it. The best list is then swept: op by op, forwards and backwards, each goes
// where the path through it is shortest. O(rules * ops * (slots + changed stages)). Exploits stages, unequal
// devices and transfer times; ignores contention and memory limits.

#include <algorithm>
#include <array>

#include "hios.h"
#include "stage_planner.h"
#include "stage_state.h"

namespace heddle {
namespace {

constexpr std::array<double, 4> kTransferWeights{1, 0.5, 0, 1.5};
constexpr int kSweeps = 6;
constexpr size_t kMostSweptOps = 5'000;  // a sweep takes ops^2

struct Ranks {
  std::vector<double> after;  // of an op: what follows its end
  std::vector<uint32_t> order;
};

Ranks ranks_of(const StageInstance& instance, const HiosPriorities& means, double transfer_weight) {
  const size_t n = instance.num_ops();
  Ranks ranks{std::vector<double>(n, 0), {}};
  std::vector<double> whole(n, 0);
  const auto topological = instance.topological();
  for (size_t i = n; i-- > 0;) {
    const uint32_t v = topological[i];
    for (const auto& out : instance.outputs(v)) {
      const double transfer = transfer_weight > 0 ? transfer_weight * means.transfer_us(out.bytes) : 0;
      ranks.after[v] = std::max(ranks.after[v], transfer + whole[out.op]);
    }
    whole[v] = ranks.after[v] + means.us[v];
  }
  ranks.order.assign(topological.begin(), topological.end());
  std::stable_sort(ranks.order.begin(), ranks.order.end(),
                   [&](uint32_t a, uint32_t b) { return whole[a] > whole[b]; });
  return ranks;
}

// The least longest path, then the earliest end; null when there is no slot.
const StageState::Insertion* shortest(const std::vector<StageState::Insertion>& slots) {
  const auto it = std::min_element(
      slots.begin(), slots.end(), [](const StageState::Insertion& a, const StageState::Insertion& b) {
        return a.length_us != b.length_us ? a.length_us < b.length_us : a.end_us < b.end_us;
      });
  return it == slots.end() ? nullptr : &*it;
}

bool construct(const StageInstance& instance, const Ranks& ranks, const Deadline& deadline,
               StageState& state) {
  std::vector<StageState::Insertion> slots;
  state.expect_tails(ranks.after);
  for (const uint32_t v : ranks.order) {
    if (deadline.cancelled()) return false;
    slots.clear();
    state.slots(v, StageState::kAny, std::numeric_limits<double>::max(), slots);
    const StageState::Insertion* slot = shortest(slots);
    if (slot == nullptr || !state.insert(v, *slot)) return false;
  }
  return instance.num_ops() > 0;
}

// One op after the other to where the path through it is shortest, while no schedule gets longer.
bool sweep(const std::vector<uint32_t>& order, const Deadline& deadline, StageState& state) {
  std::vector<StageState::Insertion> slots;
  bool changed = false;
  for (const uint32_t v : order) {
    if (deadline.should_stop()) return false;
    const double before = state.makespan_us(), length = state.length_us(v);
    state.remove(v);
    slots.clear();
    state.slots(v, StageState::kAny, before, slots);
    const StageState::Insertion* slot = shortest(slots);
    if (slot != nullptr && slot->length_us < length && state.insert(v, *slot) &&
        state.makespan_us() <= before) {
      state.keep();
      changed = true;
    } else {
      state.undo();
    }
  }
  return changed;
}

}  // namespace

Result<StageSchedule> construct_stages(const StageInstance& instance, const Deadline& deadline) {
  StageSchedule best;
  best.devices.resize(instance.num_devices());
  if (instance.num_ops() == 0) return best;
  const HiosPriorities means = hios_priorities(instance);
  std::vector<uint32_t> order;
  double best_us = kNoTime;
  for (const double weight : kTransferWeights) {
    if (best_us < kNoTime && deadline.should_stop()) break;
    const Ranks ranks = ranks_of(instance, means, weight);
    StageState state(instance);
    if (!construct(instance, ranks, deadline, state)) continue;
    const double us = state.makespan_us();
    if (us >= best_us) continue;
    best_us = us;
    best = state.schedule();
    order = ranks.order;
  }
  if (deadline.cancelled()) return stage_plan_cancelled();
  if (best_us == kNoTime) return no_stage_plan();
  StageState state(instance);
  state.load(best);
  for (int i = 0; i < kSweeps && instance.num_ops() <= kMostSweptOps; ++i) {
    std::reverse(order.begin(), order.end());
    if (!sweep(order, deadline, state)) break;
  }
  return state.schedule();
}

PlannerEntry stage_list_planner() {
  return {{.name = "stage-list",
           .description = "list scheduling with insertion that forms stages while it constructs",
           .source = "after HEFT, TPDS 2002, and HIOS, section IV",
           .objectives = {Objective::kLatency},
           .exploits = "stages, transfer times, unequal devices",
           .ignores = "contention, memory limits"},
          [](const Problem& problem, const PlannerOptions& options) {
            return plan_stages(problem, options, "stage-list", construct_stages);
          }};
}

}  // namespace heddle
