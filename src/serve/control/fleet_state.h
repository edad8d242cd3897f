// The fleet that is served and its plan, as one that follows what is measured: times are corrected where
// devices drift, and plans that serve worse than those before them are rolled back.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "block_corrections.h"
#include "drift_watch.h"
#include "heddle/base/json.h"
#include "heddle/base/sync.h"
#include "heddle/fleet/fleet_planner.h"
#include "heddle/serve/fleet_control.h"
#include "plan_log.h"
#include "plan_trial.h"

namespace heddle {

// A fleet as it is described, what measuring has corrected of its times, and the plan that is made of both.
struct Served {
  Fleet fleet;
  BlockCorrections corrections;
  FleetPlan plan;
  std::vector<int64_t> drained;  // by class

  Fleet corrected() const { return corrections.applied(fleet); }
  // The fleet that a plan may use.
  Result<Fleet> available() const {
    Fleet out = corrected();
    for (size_t c = 0; c < drained.size(); ++c) out.classes[c].count -= drained[c];
    if (out.devices() == 0) return infeasible("that would drain every device of the fleet");
    return out;
  }
};

// What a successor needs to go on: {"fleet", "plan", "corrections", "drained"}.
Json to_json(const Served& served);
// Errors name the member.
Result<Served> served_from_json(const Json& json);

bool same_names(const Fleet& a, const Fleet& b);  // of classes and models, in the same order
Json drained_json(const Served& served);          // {CLASS: N} where N > 0

// One thread changes it, and that alone may call what is not marked.
class FleetState {
 public:
  FleetState(InferService& service, const FleetControlOptions& options);

  // Before all else. `changes`: the entries() of the log of the server that this one succeeds; null: it is the first.
  Status begin(Served first, const Json* changes);
  const Served& served() const { return served_; }

  // What was asked for, `what` for people: puts it to work.
  Status change_to(Served next, const char* what);
  FleetPlanOptions plan_options() const;
  // Sets `next` to the plan that changes the fewest devices of the current plan; returns how many change.
  Result<double> replan(Served& next) const;

  // Is look() to be called, every look_s() seconds? It reads what was measured and acts on it.
  bool looks() const {
    return options_.drift.share > 0 || options_.try_changes || (options_.save && !saved_);
  }
  double look_s() const { return look_s_; }
  void look();

  // From any thread.
  Json description() const;     // fleet with its corrected times, plan, drained devices, corrections
  Json status() const;          // members for InferService::status()
  std::string metrics() const;  // families for InferService::metrics()

 private:
  Result<std::unique_ptr<Generation>> generation(const Served& next) const;
  Status put_to_work(Served next);
  // A plan that was just put to work, for a successor. A failure is logged, and the plan is in use all the same.
  Status save();
  double settle_s() const;
  // Of the plan that has just been put to work. `back`: where its trial may lead back to.
  void begin_trial(std::optional<Served> back, std::vector<Drift> causes);
  void follow(std::vector<Drift> drifts);
  void conclude(const TrialResult& trial);
  void look_for_drift();

  InferService& service_;
  const FleetControlOptions& options_;
  const double look_s_;
  DriftWatch drift_;
  PlanTrial trial_;
  std::optional<Served> back_;
  std::vector<Drift> causes_;
  PlanLog log_;
  bool begun_ = false, resumes_ = false;
  bool saved_ = false;        // the plan in use
  bool save_failed_ = false;  // and was said to have
  mutable Mutex mutex_;       // held to change what follows, and by other threads to read it
  Served served_;
  std::vector<PoolRatio> ratios_;
};

}  // namespace heddle
