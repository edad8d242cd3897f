#include "heddle/serve/fleet_control.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "fault.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/fleet/fleet_replan.h"

namespace heddle {
namespace {

constexpr std::string_view kPath = "/v2/fleet";
constexpr double kCutOverWait_s = 5;  // for workers to load a later plan

HttpResponse json_response(const Json& json) {
  HttpResponse response;
  response.body = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return response;
}

// A fleet that cannot do what is asked for is no mistake of the request's form.
HttpResponse error_response(const Error& error) {
  const bool cannot = error.code() == Code::kInfeasible || error.code() == Code::kVerificationFailed;
  return http_error(cannot ? 409 : http_status(error.code()), error.to_string());
}

Json workers_json(const WorkerPool& pool) {
  Json workers = Json::array();
  for (const auto& w : pool.workers()) {
    Json devices = Json::object();
    for (const auto& [name, count] : w.devices) devices[name] = count;
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
                       {"heard_s", w.heard_s}});
  }
  return workers;
}

// What a change of counts is about.
enum class Change { kCounts, kDrained, kPlan, kFleet };

class Control final : public FleetControl {
 public:
  Control(InferService& service, const FleetControlOptions& options) : service_(service), options_(options) {
    service_.set_more_status([this] { return more_status(); });
  }

  ~Control() override {
    {
      const std::lock_guard lock(mutex_);
      quit_ = true;
    }
    changed_.notify_all();
    if (worker_.joinable()) worker_.join();
    for (const auto& job : jobs_) job.told(Error(Code::kCancelled, "the server is stopping"));
    service_.set_more_status(nullptr);
  }

  Status start(const Fleet& fleet, const FleetPlan& plan) {
    HEDDLE_RETURN_IF_ERROR(cut_over(fleet, plan, std::vector<int64_t>(fleet.classes.size(), 0)));
    worker_ = std::thread([this] { work(); });
    return {};
  }

  bool answer(const HttpHead& head, const HttpBody& body, const HttpReply& reply) override {
    const auto method = [&head, &reply](std::string_view wanted) {
      if (head.method == wanted || (wanted == "GET" && head.method == "HEAD")) return true;
      auto response = http_error(405, head.path + " is asked by " + std::string(wanted));
      response.headers.emplace_back("Allow", wanted);
      reply.send(std::move(response));
      return false;
    };
    if (head.path == kPath) {
      if (head.method != "POST") {
        if (!method("GET")) return true;
        const std::lock_guard lock(mutex_);
        reply.send(json_response(
            {{"fleet", to_json(fleet_)}, {"plan", to_json(plan_, fleet_)}, {"drained", drained_json()}}));
        return true;
      }
    }
    Change change = Change::kCounts;
    if (head.path == kPath) {
      change = Change::kFleet;
    } else if (head.path == std::string(kPath) + "/plan") {
      change = Change::kPlan;
    } else if (head.path == std::string(kPath) + "/drain") {
      change = Change::kDrained;
    } else if (head.path != std::string(kPath) + "/counts") {
      return false;
    }
    if (!method("POST")) return true;
    // Read when it is due: what is parsed takes many times the text, and the server's thread must not wait.
    put({[this, change, body] { return carry_out(change, body.text()); },
         [reply](const Result<Json>& done) {
           reply.send(done.ok() ? json_response(*done) : error_response(done.error()));
         }});
    return true;
  }

  void replace(Fleet fleet, Told told) override {
    put({[this, fleet = std::move(fleet)] { return change_fleet(fleet); },
         [told = std::move(told)](const Result<Json>& done) {
           told(done.ok() ? Status() : Status(done.error()));
         }});
  }

 private:
  struct Job {
    std::function<Result<Json>()> change;
    std::function<void(const Result<Json>&)> told;
  };

  void put(Job job) {
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    changed_.notify_one();
  }

  Json drained_json() const {
    Json out = Json::object();
    for (size_t c = 0; c < drained_.size(); ++c)
      if (drained_[c] > 0) out[fleet_.classes[c].name] = drained_[c];
    return out;
  }

  Json more_status() const {
    Json out;
    {
      const std::lock_guard lock(mutex_);
      out["drained"] = drained_json();
    }
    if (options_.workers != nullptr) out["workers"] = workers_json(*options_.workers);
    return out;
  }

  // Workers load the new plan's partitions while the old plan runs.
  Result<std::unique_ptr<Generation>> generation(const Fleet& fleet, const FleetPlan& plan) const {
    if (options_.machine != nullptr) return options_.machine->generation(fleet, plan);
    if (has_model_files(fleet))
      return Error(Code::kInvalidInput,
                   "models with a file run in the server's own process and in real time, and this server has "
                   "workers or a --clock; take \"file\" away to serve them by timed devices");
    if (options_.workers == nullptr) return timed_generation(fleet, plan, options_.plane, options_.clock);
    const bool first = !worker_.joinable();
    return worker_generation(fleet, plan, options_.plane, options_.clock, *options_.workers,
                             first ? options_.wait_s : kCutOverWait_s, first, options_.cancel);
  }

  Status cut_over(const Fleet& fleet, const FleetPlan& plan, const std::vector<int64_t>& drained) {
    HEDDLE_ASSIGN_OR_RETURN(auto next, generation(fleet, plan));
    if (fault_at(FaultPoint::kCutOver)) return fault_error();
    service_.serve(std::move(next));
    const std::lock_guard lock(mutex_);
    fleet_ = fleet;
    plan_ = plan;
    drained_ = drained;
    return {};
  }

  // Only this thread changes fleet_, plan_ and drained_, so it reads them without the lock.
  Result<Json> change_plan(const Json& json) {
    HEDDLE_ASSIGN_OR_RETURN(const auto plan, fleet_plan_from_json(json, fleet_));
    const auto used = devices_used(fleet_, plan);
    for (size_t c = 0; c < used.size(); ++c)
      if (used[c] > fleet_.classes[c].count - drained_[c])
        return Error(Code::kInfeasible, "the plan takes " + std::to_string(used[c]) + " devices of class '" +
                                            fleet_.classes[c].name + "', of which " +
                                            std::to_string(drained_[c]) +
                                            " are drained; `heddle fleet undrain` "
                                            "returns them");
    HEDDLE_RETURN_IF_ERROR(cut_over(fleet_, plan, drained_));
    return Json{{"value", plan.value}};
  }

  // Drained devices stay in the fleet; the plan does without them.
  Result<Json> change_counts(const Json& json, bool drain) {
    const JsonCursor at(json);
    HEDDLE_RETURN_IF_ERROR(at.check_keys({"change"}));
    HEDDLE_ASSIGN_OR_RETURN(const auto change, at.at("change"));
    if (!change.value().is_object() || change.value().empty())
      return change.error("expected an object of numbers of devices by class");
    Fleet fleet = fleet_;
    auto drained = drained_;
    std::vector<std::string> names;
    for (const auto& c : fleet.classes) names.push_back(c.name);
    for (const auto& [name, number] : change.value().items()) {
      const int c = fleet.class_named(name);
      if (c < 0)
        return change.error("the fleet has no class '" + name.substr(0, 128) + "'" +
                            did_you_mean(name.substr(0, 128), names) + "; it has " + join_names(names));
      HEDDLE_ASSIGN_OR_RETURN(
          const auto n,
          JsonCursor(number, change.path() + "." + name).as_int(-kMaxFleetDevices, kMaxFleetDevices));
      auto& count = fleet.classes[static_cast<size_t>(c)].count;
      auto& out = drained[static_cast<size_t>(c)];
      auto& changed = drain ? out : count;
      if (changed + n < 0 || changed + n > kMaxFleetDevices ||
          (drain ? changed + n > count : count + n < out))
        return Error(Code::kInvalidInput, change.path() + ": class '" + name + "' has " +
                                              std::to_string(count) + " devices, " + std::to_string(out) +
                                              " of them drained; a change of " + std::to_string(n) +
                                              " is out of range");
      changed += n;
    }
    HEDDLE_RETURN_IF_ERROR(check_fleet(fleet));
    HEDDLE_ASSIGN_OR_RETURN(const auto available, without(fleet, drained));
    if (fault_at(FaultPoint::kPlan)) return fault_error();
    HEDDLE_ASSIGN_OR_RETURN(const auto replan, replan_fleet(available, plan_, plan_options()));
    HEDDLE_RETURN_IF_ERROR(cut_over(fleet, replan.plan, drained));
    return Json{
        {"value", replan.plan.value}, {"moved_devices", replan.moved_devices}, {"drained", drained_json()}};
  }

  // The fleet that a plan may use.
  static Result<Fleet> without(const Fleet& fleet, const std::vector<int64_t>& drained) {
    Fleet available = fleet;
    for (size_t c = 0; c < drained.size(); ++c) available.classes[c].count -= drained[c];
    if (available.devices() == 0)
      return Error(Code::kInfeasible, "that would drain every device of the fleet");
    return available;
  }

  FleetPlanOptions plan_options() const {
    FleetPlanOptions options;
    options.objective = plan_.objective;
    options.load_per_s = plan_.load_per_s;
    options.deadline = Deadline::after_seconds(options_.replan_s);
    return options;
  }

  // The plan that moves least where classes and models are those that were there, else a new one.
  Result<Json> change_fleet(const Fleet& fleet) {
    const auto same = [](const auto& a, const auto& b) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                        [](const auto& x, const auto& y) { return x.name == y.name; });
    };
    std::vector<int64_t> drained(fleet.classes.size(), 0);
    for (size_t c = 0; c < fleet.classes.size(); ++c)
      if (const int was = fleet_.class_named(fleet.classes[c].name); was >= 0)
        drained[c] = std::min(drained_[static_cast<size_t>(was)], fleet.classes[c].count);
    HEDDLE_ASSIGN_OR_RETURN(const auto available, without(fleet, drained));
    if (fault_at(FaultPoint::kPlan)) return fault_error();
    FleetReplan replan;
    const bool comparable = same(fleet.classes, fleet_.classes) && same(fleet.models, fleet_.models);
    if (comparable) {
      HEDDLE_ASSIGN_OR_RETURN(replan, replan_fleet(available, plan_, plan_options()));
    } else {
      HEDDLE_ASSIGN_OR_RETURN(replan.plan, plan_fleet(available, "auto", plan_options()));
    }
    HEDDLE_RETURN_IF_ERROR(cut_over(fleet, replan.plan, drained));
    Json out = {{"value", replan.plan.value}, {"drained", drained_json()}};
    if (comparable) out["moved_devices"] = replan.moved_devices;
    return out;
  }

  // What comes over the network may not name files of this machine that are not served already.
  Status check_files(const Fleet& fleet) const {
    for (const auto& m : fleet.models) {
      const int was = fleet_.model_named(m.name);
      const auto& path = m.file.path;
      if (path.empty() || (was >= 0 && fleet_.models[static_cast<size_t>(was)].file.path == path)) continue;
      return Error(Code::kInvalidInput, "model '" + m.name +
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
    std::unique_lock lock(mutex_);
    while (!quit_) {
      if (jobs_.empty()) {
        changed_.wait(lock);
        continue;
      }
      const Job job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job.told(job.change());
      lock.lock();
    }
  }

  InferService& service_;
  const FleetControlOptions options_;
  std::thread worker_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool quit_ = false;
  Fleet fleet_;
  FleetPlan plan_;
  std::vector<int64_t> drained_;  // by class
};

}  // namespace

Result<std::unique_ptr<FleetControl>> FleetControl::create(InferService& service, const Fleet& fleet,
                                                           const FleetPlan& plan,
                                                           const FleetControlOptions& options) {
  auto control = std::make_unique<Control>(service, options);
  HEDDLE_RETURN_IF_ERROR(control->start(fleet, plan));
  return std::unique_ptr<FleetControl>(std::move(control));
}

}  // namespace heddle
