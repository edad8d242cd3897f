// The whole model on one device from a cold start, the baselines of SortingHat (ICS'25), section 4.2: loads
// and runs one after the other (`cold-serial`), and loads that overlap with runs (`cold-single`; SortingHat,
// section 2.1, as PipeSwitch does on one GPU). Neither reads parameters in place nor uses another device.
//
// Minimises the makespan over the k devices. Serial: the model is one segment, which starts when the last of
// its parameters is there. Overlapped: every op is a segment, parameters come in the order of first use. O(k
// (V
// + E) log V). The plans' times are the evaluator's, so that with known segments the serial one may be faster
// than the sum of its ops.
#include "core/candidates.h"
#include "core/factories.h"

namespace heddle {
namespace {

class ColdSingle final : public Planner {
 public:
  explicit ColdSingle(bool overlapped) : overlapped_(overlapped) {}

  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions& options) override {
    Candidates candidates(problem);
    const auto devices = problem.usable_devices();
    for (size_t i = 0; i < devices.size() && !options.deadline.cancelled(); ++i) {
      Assignment a;
      a.device.assign(problem.graph->num_ops(), devices[i]);
      a.order.assign(problem.graph->topological_order().begin(), problem.graph->topological_order().end());
      if (!overlapped_) a.segment.assign(problem.graph->num_ops(), 0);
      candidates.offer(a, problem.cluster->device(devices[i]).name);
    }
    return candidates.output(StopReason::kFinished, options.deadline);
  }

 private:
  const bool overlapped_;
};

}  // namespace

std::unique_ptr<Planner> make_cold_serial() { return std::make_unique<ColdSingle>(false); }
std::unique_ptr<Planner> make_cold_single() { return std::make_unique<ColdSingle>(true); }

}  // namespace heddle
