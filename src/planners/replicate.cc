// Data parallelism: the whole model on each of several devices, requests shared out in proportion to speed
// (DiviML, section IV: batches split among devices; OpenVINO's "throughput streams" are the special case of
// equal cores).
//
// Minimises the period over plans in which each lane is one device. For one set of devices the best shares
// make all equally busy: share_d = (1/t_d) / sum(1/t), period 1 / sum(1/t), so every device that can take the
// model helps, and only maximal sets of devices that do not exclude each other matter. O(sets * devices * (V
// + E)). Exploits measured whole-model segments; ignores plans that split the model.
#include "candidates.h"
#include "configurations.h"
#include "planners.h"

namespace heddle {
namespace {

struct Whole {
  bool one_segment = false;
  double us = kImpossible;
};

class Replicate final : public Planner {
 public:
  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions&) override {
    std::vector<Whole> whole(problem.cluster->num_devices());
    for (const auto d : problem.usable_devices()) whole[d.index()] = time_alone(problem, d);
    BestPlan best(problem);
    for (const auto& set : device_configurations(problem)) offer_set(problem, set, whole, best);
    return best.output();
  }

 private:
  static Whole time_alone(const Problem& problem, DeviceId device) {
    std::vector<OpId> all;
    double sum = 0;
    for (size_t v = 0; v < problem.graph->num_ops(); ++v) {
      all.emplace_back(v);
      sum += problem.costs->us(OpId(v), device);
    }
    if (problem.costs->knows_segment(all, device)) {
      const double known = problem.costs->segment(all, device).us;
      if (known <= sum) return {true, known};
    }
    return {false, sum};
  }

  static bool fits_alone(const Problem& problem, DeviceId device) {
    const auto room = problem.cluster->memory_pool_bytes(problem.cluster->memory_pool(device));
    return room == 0 || problem.graph->total_param_bytes() <= room;
  }

  static void offer_set(const Problem& problem, const std::vector<DeviceId>& set,
                        const std::vector<Whole>& whole, BestPlan& best) {
    double rate = 0;
    std::vector<DeviceId> lanes_on;
    for (const auto d : set) {
      if (whole[d.index()].us >= kImpossible || !fits_alone(problem, d)) continue;
      lanes_on.push_back(d);
      rate += 1 / std::max(whole[d.index()].us, 1e-9);
    }
    std::vector<Lane> lanes;
    std::string names;
    for (const auto d : lanes_on) {
      const auto& w = whole[d.index()];
      lanes.push_back({all_on(problem, d, w.one_segment), 1 / std::max(w.us, 1e-9) / rate});
      names += (names.empty() ? "" : ", ") + problem.cluster->device(d).name;
    }
    if (!lanes.empty()) best.offer(lanes, "one lane on each of " + names);
  }
};

}  // namespace

std::unique_ptr<Planner> make_replicate() { return std::make_unique<Replicate>(); }

}  // namespace heddle
