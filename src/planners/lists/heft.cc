// Heterogeneous Earliest Finish Time with insertion. H. Topcuoglu, S. Hariri, M.-Y. Wu,
// "Performance-effective and low-complexity task scheduling for heterogeneous computing", IEEE TPDS 13(3),
// 2002, section 4.1.
//
// Minimises the makespan of one request. Ops by falling upward rank (equation 8, means over devices and over
// links), each on the device where it ends first, in a gap where one is long enough. O(E k + V k log V) for k
// devices. Exploits unequal devices, transfer times and memory limits (full devices are skipped). "heft"
// ignores that transfers wait for links; "heft-links" lets each transfer wait for its links, buses and
// engines when it weighs a device.
#include "construction.h"
#include "diviml/batched_list.h"

namespace heddle {
namespace {

Result<PlannerOutput> plan_heft(const Problem& problem, const PlannerOptions& options) {
  const bool links = options.is_set("contention", "links");
  const std::string name = links ? "heft-links" : "heft";
  if (auto batched = plan_batched(problem, options, name, BatchRule::kHeft)) return std::move(*batched);
  const ListOptions list{.insertion = true, .contention = links};
  return plan_by_construction(problem, options, name, [&](const FlatProblem& flat, const Reserve& reserve) {
    return list_plan(flat, list, reserve, order_by_priority(flat, upward_ranks(flat)), options.deadline,
                     [](uint32_t, const auto& slots) { return earliest_finish(slots); });
  });
}

}  // namespace

PlannerEntry heft_planner() {
  return {
      {.name = "heft",
       .description = "heterogeneous earliest finish time with insertion",
       .source = "Topcuoglu et al., TPDS 2002, section 4.1",
       .objectives = {Objective::kLatency, Objective::kColdLatency},
       .exploits = "unequal devices, transfers, parameter loads, memory limits",
       .ignores = "contention",
       .settings = {{"contention", {"none", "links"}, "what transfers wait for"}},
       .aliases = {{.name = "heft-links",
                    .settings = {{"contention", "links"}},
                    .description = "HEFT whose transfers wait for links, buses and copy engines",
                    .exploits = "unequal devices, transfers with contention, parameter loads, memory limits",
                    .ignores = "that a later decision may delay an earlier transfer"}}},
      plan_heft};
}

}  // namespace heddle
