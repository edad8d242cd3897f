#include "heddle/serve/fleet_control.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <mutex>
#include <string_view>
#include <utility>

#include "fleet_state.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/fleet/fleet_check.h"
#include "plane/fault.h"
#include "workers/protocol_version.h"

namespace heddle {
namespace {

// A fleet that cannot do what is asked for is no mistake of the request's form.
HttpResponse error_response(const Error& error) {
  const bool cannot = error.code() == Code::kInfeasible || error.code() == Code::kVerificationFailed;
  return http_error(cannot ? 409 : http_status(error.code()), error.to_string());
}

Json cores_json(const std::vector<DeviceCores>& devices) {
  Json out = Json::array();
  for (const auto& d : devices)
    out.push_back({{"device", d.device},
                   {"model", d.model},
                   {"class", d.device_class},
                   {"host", d.host},
                   {"cores", d.cores},
                   {"bound", d.bound},
                   {"shared", d.shared},
                   {"loaded", d.loaded},
                   {"refused", d.refused}});
  return out;
}

Json workers_json(const WorkerPool& pool) {
  Json workers = Json::array();
  for (const auto& w : pool.workers()) {
    Json devices = Json::object(), links = Json::array();
    for (const auto& [name, count] : w.devices) devices[name] = count;
    for (const auto& l : w.links)
      links.push_back(
          {{"to", l.to}, {"maps", l.maps}, {"bytes", l.bytes}, {"failed", l.failed}, {"seconds", l.seconds}});
    workers.push_back({{"name", w.name},
                       {"address", w.address},
                       {"pid", w.pid},
                       {"state", w.state},
                       {"reason", w.reason},
                       {"devices", std::move(devices)},
                       {"virtual_devices", w.virtual_devices},
                       {"sessions", w.sessions},
                       {"losses", w.losses},
                       {"runs", w.runs},
                       {"busy_s", w.busy_s},
                       {"heard_s", w.heard_s},
                       {"program", w.program},
                       {"protocol", w.protocol},
                       {"pings", w.pings},
                       {"round_trip_us", w.round_trip_s * kUsPerSecond},
                       {"median_trip_us", w.median_trip_s * kUsPerSecond},
                       {"compute_s", w.compute_s},
                       {"waited_s", w.waited_s},
                       {"links", std::move(links)},
                       {"cores", cores_json(w.cores)}});
    if (w.has_clock) {
      workers.back()["clock_ahead_us"] = w.clock_ahead_s * kUsPerSecond;
      workers.back()["clock_error_us"] = w.clock_error_s * kUsPerSecond;
    }
  }
  return workers;
}

// What a change of counts is about.
enum class Change { kCounts, kDrained, kPlan, kFleet };
constexpr std::pair<std::string_view, Change> kPaths[] = {{"/v2/fleet", Change::kFleet},
                                                          {"/v2/fleet/plan", Change::kPlan},
                                                          {"/v2/fleet/drain", Change::kDrained},
                                                          {"/v2/fleet/counts", Change::kCounts}};

class Control final : public FleetControl {
 public:
  Control(InferService& service, const FleetControlOptions& options)
      : service_(service), options_(options), state_(service, options_) {
    service_.set_more_status([this] {
      auto out = state_.status();
      if (options_.workers != nullptr) {
        out["protocol"] = kWorkerProtocol;
        out["workers"] = workers_json(*options_.workers);
      }
      if (const auto* s = options_.succession) out["leader"] = {{"name", s->leader()}, {"term", s->term()}};
      return out;
    });
    service_.set_more_metrics([this] { return state_.metrics(); });
  }

  ~Control() override {
    Control::stop();
    if (worker_.joinable()) worker_.join();
    service_.set_more_status(nullptr);
    service_.set_more_metrics(nullptr);
  }

  Status start(Served first, const Json* changes) {
    HEDDLE_RETURN_IF_ERROR(state_.begin(std::move(first), changes));
    worker_ = Thread([this] { work(); });
    return {};
  }

  bool answer(const HttpHead& head, const HttpBody& body, const HttpReply& reply) override {
    const auto path = std::find_if(std::begin(kPaths), std::end(kPaths),
                                   [&head](const auto& p) { return p.first == head.path; });
    if (path == std::end(kPaths)) return false;
    const Change change = path->second;
    if (change == Change::kFleet && head.method != "POST") {
      if (asked_by("GET", head, reply)) reply.send(json_response(state_.description()));
      return true;
    }
    if (!asked_by("POST", head, reply)) return true;
    // Read when it is due: what is parsed takes many times the text, and the server's thread must not wait.
    put({[this, change, body] { return carry_out(change, body.text()); },
         [reply](const Result<Json>& done) {
           reply.send(done.ok() ? json_response(*done) : error_response(done.error()));
         }});
    return true;
  }

  void stop() override {
    std::deque<Job> jobs;
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
      jobs.swap(jobs_);
    }
    changed_.notify_all();
    for (const auto& job : jobs) job.done(cancelled_error("the server is stopping"));
  }

  void replace(Fleet fleet, OnDone done) override {
    put({[this, fleet = std::move(fleet)] { return change_fleet(fleet); },
         [done = std::move(done)](const Result<Json>& changed) {
           done(changed.ok() ? Status() : Status(changed.error()));
         }});
  }

 private:
  struct Job {
    std::function<Result<Json>()> change;
    std::function<void(const Result<Json>&)> done;
  };

  void put(Job job) {
    {
      const std::lock_guard lock(mutex_);
      if (!quit_) {
        jobs_.push_back(std::move(job));
        return changed_.notify_one();
      }
    }
    job.done(cancelled_error("the server is stopping"));
  }

  Result<Json> change_plan(const Json& json) {
    Served next = state_.served();
    HEDDLE_ASSIGN_OR_RETURN(next.plan, fleet_plan_from_json(json, next.fleet));
    const auto used = devices_used(next.fleet, next.plan);
    for (size_t c = 0; c < used.size(); ++c)
      if (used[c] > next.fleet.classes[c].count - next.drained[c])
        return infeasible("the plan takes " + std::to_string(used[c]) + " devices of class '" +
                          next.fleet.classes[c].name + "', of which " + std::to_string(next.drained[c]) +
                          " are drained; `heddle server undrain` "
                          "returns them");
    const double value = next.plan.value;
    if (auto status = state_.change_to(std::move(next), "another plan"); !status.ok()) {
      if (state_.served().corrections.empty()) return std::move(status).error();
      return std::move(status).error().with_context(
          "by the times that were measured (GET v2/fleet has the fleet with them)");
    }
    return Json{{"value", value}};
  }

  // Drained devices stay in the fleet; the plan does without them.
  Result<Json> change_counts(const Json& json, bool drain) {
    const JsonCursor at(json);
    HEDDLE_RETURN_IF_ERROR(at.check_keys({"change"}));
    HEDDLE_ASSIGN_OR_RETURN(const auto change, at.at("change"));
    if (!change.value().is_object() || change.value().empty())
      return change.error("expected an object of numbers of devices by class");
    Served next = state_.served();
    std::vector<std::string> names;
    for (const auto& c : next.fleet.classes) names.push_back(c.name);
    for (const auto& [name, number] : change.value().items()) {
      const int c = next.fleet.class_named(name);
      if (c < 0)
        return change.error("the fleet has no class '" + name.substr(0, 128) + "'" +
                            did_you_mean(name.substr(0, 128), names) + "; it has " + join_names(names));
      HEDDLE_ASSIGN_OR_RETURN(
          const auto n,
          JsonCursor(number, change.path() + "." + name).as_int(-kMaxFleetDevices, kMaxFleetDevices));
      auto& count = next.fleet.classes[static_cast<size_t>(c)].count;
      auto& out = next.drained[static_cast<size_t>(c)];
      auto& changed = drain ? out : count;
      if (changed + n < 0 || changed + n > kMaxFleetDevices ||
          (drain ? changed + n > count : count + n < out))
        return invalid_input(change.path() + ": class '" + name + "' has " + std::to_string(count) +
                             " devices, " + std::to_string(out) + " of them drained; a change of " +
                             std::to_string(n) + " is out of range");
      changed += n;
    }
    HEDDLE_RETURN_IF_ERROR(check_fleet(next.fleet));
    HEDDLE_ASSIGN_OR_RETURN(const double moved, state_.replan(next));
    HEDDLE_RETURN_IF_ERROR(
        state_.change_to(std::move(next), drain ? "other devices are drained" : "other counts of devices"));
    return Json{{"value", state_.served().plan.value},
                {"moved_devices", moved},
                {"drained", drained_json(state_.served())}};
  }

  // The plan that moves least where classes and models are those that were there, else a new one.
  Result<Json> change_fleet(const Fleet& fleet) {
    const Served& old = state_.served();
    Served next = {fleet, old.corrections, {}, std::vector<int64_t>(fleet.classes.size(), 0)};
    next.corrections.forget_changed(old.fleet, fleet);
    for (size_t c = 0; c < fleet.classes.size(); ++c)
      if (const int was = old.fleet.class_named(fleet.classes[c].name); was >= 0)
        next.drained[c] = std::min(old.drained[static_cast<size_t>(was)], fleet.classes[c].count);
    const bool comparable = same_names(fleet, old.fleet);
    double moved = 0;
    if (comparable) {
      HEDDLE_ASSIGN_OR_RETURN(moved, state_.replan(next));
    } else {
      HEDDLE_ASSIGN_OR_RETURN(const auto available, next.available());
      if (fault_at(FaultPoint::kPlan)) return fault_error();
      HEDDLE_ASSIGN_OR_RETURN(next.plan, plan_fleet(available, "auto", state_.plan_options()));
    }
    HEDDLE_RETURN_IF_ERROR(state_.change_to(std::move(next), "another fleet"));
    Json out = {{"value", state_.served().plan.value}, {"drained", drained_json(state_.served())}};
    if (comparable) out["moved_devices"] = moved;
    return out;
  }

  // What comes over the network may not name files of this machine that are not served already.
  Status check_files(const Fleet& fleet) const {
    for (const auto& m : fleet.models) {
      const int was = state_.served().fleet.model_named(m.name);
      const auto& path = m.file.path;
      if (path.empty() ||
          (was >= 0 && state_.served().fleet.models[static_cast<size_t>(was)].file.path == path))
        continue;
      return invalid_input("model '" + m.name +
                           "': a fleet that is sent cannot bring another model "
                           "file, '" +
                           path.substr(0, 128) + "'; change the fleet file that is served");
    }
    return {};
  }

  Result<Json> carry_out(Change change, std::string_view text) {
    HEDDLE_ASSIGN_OR_RETURN(const auto json, parse_json(text, {64, int64_t{64} << 20}));
    if (change == Change::kPlan) return change_plan(json);
    if (change != Change::kFleet) return change_counts(json, change == Change::kDrained);
    HEDDLE_ASSIGN_OR_RETURN(const auto fleet, fleet_from_json(json));
    HEDDLE_RETURN_IF_ERROR(check_files(fleet));
    return change_fleet(fleet);
  }

  void work() {
    double next_look_s = 0;
    std::unique_lock lock(mutex_);
    while (!quit_) {
      const bool looks = state_.looks();
      if (jobs_.empty() && !looks) {
        changed_.wait(lock);
        continue;
      }
      if (looks && seconds_from_ns(live_now()) >= next_look_s) {
        lock.unlock();
        state_.look();
        next_look_s = seconds_from_ns(live_now()) + state_.look_s();
        lock.lock();
        continue;
      }
      if (jobs_.empty()) {
        changed_.wait_until(lock, ns_from_us(next_look_s * 1e6));
        continue;
      }
      const Job job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job.done(job.change());
      lock.lock();
    }
  }

  InferService& service_;
  const FleetControlOptions options_;
  FleetState state_;  // changed by worker_, and by start() before
  Thread worker_;
  mutable Mutex mutex_;  // guards what follows
  Condition changed_;
  std::deque<Job> jobs_;
  bool quit_ = false;
};

}  // namespace

Result<std::unique_ptr<FleetControl>> FleetControl::create(InferService& service, const Fleet& fleet,
                                                           const FleetPlan& plan,
                                                           const FleetControlOptions& options) {
  auto control = std::make_unique<Control>(service, options);
  HEDDLE_RETURN_IF_ERROR(
      control->start({fleet, {}, plan, std::vector<int64_t>(fleet.classes.size(), 0)}, nullptr));
  return std::unique_ptr<FleetControl>(std::move(control));
}

Result<std::unique_ptr<FleetControl>> FleetControl::resume(InferService& service, const std::string& saved,
                                                           const FleetControlOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const Json json, parse_json(saved, {64, int64_t{64} << 20}));
  HEDDLE_ASSIGN_OR_RETURN(auto served, served_from_json(json));
  auto control = std::make_unique<Control>(service, options);
  const Json changes = json.value("changes", Json::array());
  HEDDLE_RETURN_IF_ERROR(control->start(std::move(served), &changes));
  return std::unique_ptr<FleetControl>(std::move(control));
}

}  // namespace heddle
