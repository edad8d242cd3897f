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
#include "core/factories.h"
#include "diviml/batched_list.h"

namespace heddle {
namespace {

class Heft final : public Planner {
 public:
  Heft(std::string name, bool contention) : name_(std::move(name)), contention_(contention) {}

  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions& options) override {
    if (auto batched = plan_batched(problem, options, name_, BatchRule::kHeft)) return std::move(*batched);
    const ListOptions list{.insertion = true, .contention = contention_};
    return plan_by_construction(
        problem, options, name_, [&](const FlatProblem& flat, const Reserve& reserve) {
          return list_plan(flat, list, reserve, order_by_priority(flat, upward_ranks(flat)), options.deadline,
                           [](uint32_t, const auto& slots) { return earliest_finish(slots); });
        });
  }

 private:
  const std::string name_;
  const bool contention_;
};

}  // namespace

std::unique_ptr<Planner> make_heft() { return std::make_unique<Heft>("heft", false); }
std::unique_ptr<Planner> make_heft_links() { return std::make_unique<Heft>("heft-links", true); }

}  // namespace heddle
