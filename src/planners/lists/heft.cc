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

namespace heddle {
namespace {

ListDecisions by_upward_rank(const FlatProblem& flat) {
  return {order_by_priority(flat, upward_ranks(flat)), earliest_finish};
}

Result<PlannerOutput> plan_heft(const Problem& problem, const PlannerOptions& options) {
  const bool links = options.is_set("contention", "links");
  return plan_by_list(problem, options, links ? "heft-links" : "heft",
                      {.list = {.insertion = true, .contention = links},
                       .decide = by_upward_rank,
                       .batched = BatchRule::kHeft});
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
