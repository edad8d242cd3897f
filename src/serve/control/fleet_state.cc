#include "fleet_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "heddle/base/fields.h"
#include "heddle/fleet/fleet_check.h"
#include "heddle/fleet/fleet_replan.h"
#include "plane/fault.h"

namespace heddle {
namespace {

constexpr double kCutOverWait_s = 5;  // for workers to load a later plan
constexpr double kMostLook_s = .25, kLeastLook_s = .005;

double now_s() { return seconds_from_ns(live_now()); }

// Often enough to see the times that decide.
double look_interval_s(const FleetControlOptions& options) {
  double s = kMostLook_s;
  if (options.drift.share > 0) s = std::min(s, options.drift.hold_s / 4);
  if (options.trial.window_s > 0) s = std::min(s, options.trial.window_s / 8);
  return std::max(s, kLeastLook_s);
}

}  // namespace

bool same_names(const Fleet& a, const Fleet& b) {
  const auto same = [](const auto& x, const auto& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [](const auto& p, const auto& q) { return p.name == q.name; });
  };
  return same(a.classes, b.classes) && same(a.models, b.models);
}

Json to_json(const Served& served) {
  return {{"fleet", to_json(served.fleet)},
          {"plan", to_json(served.plan, served.fleet)},
          {"corrections", served.corrections.to_json()},
          {"drained", served.drained}};
}

Result<Served> served_from_json(const Json& json) {
  for (const char* member : {"fleet", "plan", "corrections", "drained"})
    if (!json.is_object() || !json.contains(member))
      return invalid_input(std::string("the saved state has no '") + member + "'");
  Served served;
  HEDDLE_ASSIGN_OR_RETURN(served.fleet, fleet_from_json(json["fleet"]));
  HEDDLE_ASSIGN_OR_RETURN(served.plan, fleet_plan_from_json(json["plan"], served.fleet));
  HEDDLE_ASSIGN_OR_RETURN(served.corrections, BlockCorrections::from_json(json["corrections"], served.fleet));
  HEDDLE_RETURN_IF_ERROR(take(JsonCursor(json["drained"], "drained"), served.drained, 0, kMaxFleetDevices));
  if (served.drained.size() != served.fleet.classes.size())
    return invalid_input("the saved state has drained devices of another number of classes");
  return served;
}

Json drained_json(const Served& served) {
  Json out = Json::object();
  for (size_t c = 0; c < served.drained.size(); ++c)
    if (served.drained[c] > 0) out[served.fleet.classes[c].name] = served.drained[c];
  return out;
}

FleetState::FleetState(InferService& service, const FleetControlOptions& options)
    : service_(service),
      options_(options),
      look_s_(look_interval_s(options)),
      drift_(options.drift),
      trial_(options.trial),
      log_(options.log) {}

Status FleetState::begin(Served first, const Json* changes) {
  resumes_ = changes != nullptr;
  if (resumes_) log_.continue_from(*changes);
  HEDDLE_RETURN_IF_ERROR(put_to_work(std::move(first)));
  begin_trial({}, {});
  (void)save();
  return {};
}

Json FleetState::description() const {
  const std::lock_guard lock(mutex_);
  return {{"fleet", to_json(served_.corrected())},
          {"plan", to_json(served_.plan, served_.fleet)},
          {"drained", drained_json(served_)},
          {"corrections", served_.corrections.to_json()}};
}

Json FleetState::status() const {
  Json out;
  {
    const std::lock_guard lock(mutex_);
    out["drained"] = drained_json(served_);
    out["corrections"] = served_.corrections.to_json();
    if (options_.drift.share > 0)
      out["drift"] = {{"share", options_.drift.share}, {"pools", to_json(std::span(ratios_))}};
  }
  out["changes"] = log_.entries();
  return out;
}

std::string FleetState::metrics() const {
  std::vector<PoolRatio> ratios;
  {
    const std::lock_guard lock(mutex_);
    ratios = ratios_;
  }
  return log_.metrics(ratios);
}

// Workers load the new plan's partitions while the old plan runs. Timed devices go on as they are whatever
// is measured of them.
Result<std::unique_ptr<Generation>> FleetState::generation(const Served& next) const {
  const bool files = has_model_files(next.fleet);
  if (files && options_.machine == nullptr)
    return invalid_input(
        "models with a file run in real time, and this server has a --clock or --device-times; "
        "remove \"file\" to serve them on emulated devices");
  std::optional<WorkerWait> wait;
  if (options_.workers != nullptr) {
    // Compiling takes longer than setting up an emulated device, and the old plan runs meanwhile.
    const double seconds = !begun_ || files ? options_.wait_s : kCutOverWait_s;
    const WaitFor what = begun_ ? WaitFor::kThere : resumes_ ? WaitFor::kEnough : WaitFor::kAll;
    wait.emplace(WorkerWait{*options_.workers, seconds, what, options_.cancel});
  }
  const WorkerWait* const workers = wait ? &*wait : nullptr;
  const Fleet fleet = next.corrected();
  if (files) return options_.machine->generation(fleet, next.plan, workers);
  Fleet devices = next.fleet;
  if (options_.device_times) {
    HEDDLE_ASSIGN_OR_RETURN(devices, with_times_of(next.fleet, *options_.device_times));
  }
  return timed_generation(fleet, next.plan, options_.plane, options_.clock, &devices, workers);
}

Status FleetState::put_to_work(Served next) {
  HEDDLE_ASSIGN_OR_RETURN(auto generation, this->generation(next));
  if (fault_at(FaultPoint::kCutOver)) return fault_error();
  if (!service_.serve(std::move(generation))) return cancelled_error("the server is stopping");
  drift_.plan_began();
  const std::lock_guard lock(mutex_);
  begun_ = true;
  served_ = std::move(next);
  ratios_.clear();
  saved_ = false;
  return {};
}

// kCancelled: another server leads, and has a plan of its own. After any other error it is tried again.
Status FleetState::save() {
  if (!options_.save || saved_) return {};
  Json state = to_json(served_);
  state["changes"] = log_.entries();
  Status saved = options_.save(state.dump());
  saved_ = saved.ok() || saved.error().code() == Code::kCancelled;
  const bool failed_before = std::exchange(save_failed_, !saved.ok());
  if (options_.log && failed_before != save_failed_)
    options_.log(saved.ok() ? LogLevel::kInfo : LogLevel::kWarning,
                 saved.ok()
                     ? "the plan in use is saved"
                     : "the plan in use is not saved, so a server that takes over would not have it: " +
                           saved.error().to_string());
  return saved;
}

Status FleetState::change_to(Served next, const char* what) {
  const Served before = served_;
  HEDDLE_RETURN_IF_ERROR(put_to_work(std::move(next)));
  Served back = served_;
  back.plan = before.plan;
  back.corrections = before.corrections;
  const auto available = back.available();
  const bool can_go_back = options_.try_changes && same_names(before.fleet, back.fleet) && available.ok() &&
                           check_fleet_plan(*available, back.plan).ok();
  begin_trial(can_go_back ? std::optional(std::move(back)) : std::nullopt, {});
  log_.add(PlanEvent::kAsked, what, {{"value", served_.plan.value}});
  // Whoever asked must not take for done what the server that leads now does not know.
  auto saved = save();
  return saved.ok() || saved.error().code() != Code::kCancelled ? Status() : saved;
}

FleetPlanOptions FleetState::plan_options() const {
  FleetPlanOptions options;
  options.objective = served_.plan.objective;
  options.load_per_s = served_.plan.load_per_s;
  options.deadline = Deadline::after_seconds(options_.replan_s);
  return options;
}

Result<double> FleetState::replan(Served& next) const {
  HEDDLE_ASSIGN_OR_RETURN(const auto available, next.available());
  if (fault_at(FaultPoint::kPlan)) return fault_error();
  HEDDLE_ASSIGN_OR_RETURN(auto replan, replan_fleet(available, served_.plan, plan_options()));
  next.plan = std::move(replan.plan);
  return replan.moved_devices;
}

// Requests that the plan before decided on are settled by then.
double FleetState::settle_s() const {
  double us = 0;
  for (const auto& m : served_.fleet.models) us = std::max(us, m.slo_us);
  return us * 1e-6 * options_.clock;
}

void FleetState::begin_trial(std::optional<Served> back, std::vector<Drift> causes) {
  back_ = std::move(back);
  causes_ = std::move(causes);
  trial_.plan_began(now_s(), back_.has_value(), settle_s());
}

void FleetState::look() {
  if (!service_.live()) return;
  std::vector<GoodputReading> goodput;
  for (const auto& [name, s] : service_.all_statistics()) {
    GoodputReading reading{name, 0, s.requests[static_cast<size_t>(Outcome::kInTime)]};
    for (size_t f = 1; f < static_cast<size_t>(Outcome::kInvalid); ++f) reading.arrived += s.requests[f];
    goodput.push_back(std::move(reading));
  }
  const auto trial = trial_.look(now_s(), goodput);
  if (trial.verdict != TrialResult::Verdict::kOpen) conclude(trial);
  if (options_.drift.share > 0) look_for_drift();
  (void)save();
}

void FleetState::look_for_drift() {
  std::map<PoolRole, PoolReading> readings;
  for (const auto& use : service_.pools()) {
    auto& reading = readings[use.role];
    reading.role = use.role;
    reading.runs += use.counters.runs;
    reading.busy_s += use.counters.busy_s;
    reading.predicted_s += use.counters.predicted_s;
  }
  std::vector<PoolReading> pools;
  pools.reserve(readings.size());
  for (auto& [role, reading] : readings) pools.push_back(std::move(reading));
  auto drifts = drift_.look(now_s(), served_.fleet, pools);
  {
    const std::lock_guard lock(mutex_);
    ratios_ = drift_.ratios();
  }
  if (!drifts.empty() && !trial_.open()) follow(std::move(drifts));
}

// Plans with the times that were measured.
void FleetState::follow(std::vector<Drift> drifts) {
  const auto text = drift_text(drifts);
  const Json what = to_json(std::span(std::as_const(drifts)));
  Served before = served_, next = served_;
  for (const auto& d : drifts) next.corrections.multiply(d.times, d.factors);
  auto moved = replan(next);
  Status status = moved.ok() ? put_to_work(std::move(next)) : Status(moved.error());
  if (!status.ok()) {
    drift_.refused(drifts, now_s());
    return log_.add(PlanEvent::kRefused,
                    text + "; the old plan stays in use, because no other plan is possible: " +
                        status.error().to_string(),
                    {{"drift", what}});
  }
  log_.add(PlanEvent::kDrift,
           text + fmt::format(
                      "; a new plan is in use, value {:.4g} after {:.4g}, {:.4g} devices have loaded other "
                      "weights",
                      served_.plan.value, before.plan.value, *moved),
           {{"drift", what},
            {"value", served_.plan.value},
            {"value_before", before.plan.value},
            {"moved_devices", *moved}});
  if (!(options_.trial.window_s > 0)) {
    drift_.kept(drifts);
    return begin_trial({}, {});
  }
  begin_trial(std::move(before), std::move(drifts));
}

// A trial has its verdict.
void FleetState::conclude(const TrialResult& trial) {
  const auto parts = fmt::format("{:.2f} % of {} requests in time, {:.2f} % with the old plan",
                                 100 * trial.after, trial.requests, 100 * trial.before);
  const Json figures = {
      {"in_time_before", trial.before}, {"in_time_after", trial.after}, {"requests", trial.requests}};
  const auto causes = std::exchange(causes_, {});
  if (trial.verdict == TrialResult::Verdict::kKept) {
    drift_.kept(causes);
    const bool compared = trial.before > 0 || trial.after > 0;
    return log_.add(PlanEvent::kKept, "the new plan stays, " + trial.why + (compared ? ": " + parts : ""),
                    figures);
  }
  const auto status = put_to_work(std::move(*back_));
  drift_.refused(causes, now_s());
  begin_trial({}, {});
  if (!status.ok())
    return log_.add(PlanEvent::kRefused,
                    parts + "; the server cannot return to that plan: " + status.error().to_string(),
                    figures);
  log_.add(PlanEvent::kRolledBack, parts + ", which is in use again", figures);
}

}  // namespace heddle
