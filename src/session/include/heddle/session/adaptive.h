// Plans for few and for many free cores, and a runner that changes between them while other work comes and goes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/runtime/plan_switch.h"
#include "heddle/session/compiled_plan.h"
#include "heddle/session/session.h"

namespace heddle {

struct PreparedPlan {
  std::string what;  // "all cores", "core 0"
  PlanResult result;
};

// make_plan()'s plan with all devices, and for each smaller set of cores that is a device the plan within these cores,
// larger sets first, at most six of them; equal plans once. Other devices may be used by all. The search's time limit
// is divided among them. session.problem has the times of all their segments. Unsupported if no device is a set of
// cores.
Result<std::vector<PreparedPlan>> plans_for_free_cores(Session& session, const std::string& planner,
                                                       const SearchSettings& search, const Control& control);

// Any thread may call run(); requests run one after the other.
class AdaptivePlan {
 public:
  // Compiles every plan. Cancellation is an error.
  static Result<std::unique_ptr<AdaptivePlan>> create(const Session& session,
                                                      const std::vector<PreparedPlan>& plans,
                                                      const Control& control);
  struct Answer {
    size_t plan = 0;  // that ran it
    RequestResult result;
  };
  // As CompiledPlan::run(), by the plan that PlanSwitch chooses.
  Result<Answer> run(std::span<const TensorView> inputs, const Control& control);
  uint64_t switches() const;

 private:
  explicit AdaptivePlan(std::vector<std::unique_ptr<CompiledPlan>> plans)
      : plans_(std::move(plans)), switch_(plans_.size()) {}
  std::vector<std::unique_ptr<CompiledPlan>> plans_;
  mutable std::mutex mutex_;
  PlanSwitch switch_;
};

struct AdaptiveRun {
  std::vector<double> us;                  // of each request
  std::vector<std::vector<double>> us_of;  // [plan]
  uint64_t switches = 0;
  bool verified = false;  // the outputs of every plan were compared with the unsplit model's
  bool right = true;      // and are equal
};
// `options.repeats` requests, one after the other; fewer, but at least one, after a cancellation.
Result<AdaptiveRun> run_adaptive(const Session& session, const std::vector<PreparedPlan>& plans,
                                 const RunOptions& options, const Control& control);

}  // namespace heddle
