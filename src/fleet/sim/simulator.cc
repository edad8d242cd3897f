#include "heddle/fleet/simulator.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>

#include "heddle/fleet/event_queue.h"
#include "heddle/fleet/outcome.h"
#include "heddle/fleet/random.h"
#include "heddle/fleet/reactive.h"
#include "migrations.h"

namespace heddle {
namespace {

constexpr const char* kSchedulerNames[] = {"reservation", "busy-until", "reactive"};

enum class EventKind : uint8_t { kEnd, kOverdue, kWake, kFault, kReturn, kAnnounce, kMigrate, kLoaded };

struct Payload {
  EventKind kind;
  uint16_t plane;
  uint32_t a;       // work, model, fault, migration or device
  uint32_t serial;  // for work: events of work that has been aborted are ignored
};

// A deployment with its scheduler: the first one, and that of each migration that has taken over.
struct Plane {
  const Deployment* deployment = nullptr;
  std::unique_ptr<Scheduler> scheduler;
  struct alignas(64) Running {
    Work work;
    TimeNs start = 0, end = 0;
    uint32_t serial = 0;
    bool live = false;
  };
  std::vector<Running> running;  // [work id]
};

class Simulation {
 public:
  Simulation(const Deployment& deployment, std::span<const Arrival> arrivals,
             const SimulationOptions& options)
      : arrivals_(arrivals),
        options_(options),
        noise_(random_stream(options.seed, 0x10)),
        lots_(random_stream(options.seed, 0x20)) {
    result_.horizon = options.horizon > 0 ? options.horizon : arrivals.empty() ? 1 : arrivals.back().at + 1;
    outcome_.assign(arrivals.size(), Outcome::kOpen);
    run_end_.assign(arrivals.size(), 0);
    for (const auto& m : deployment.models) {
      result_.models.emplace_back();
      result_.models.back().model = m.name;
      slo_.push_back(m.slo_ns);
    }
    result_.course.resize(kCourseSteps);
    use_.resize(deployment.classes.size());
    lost_.resize(deployment.classes.size());
    open_plane(deployment);
    for (uint32_t i = 0; i < options.faults.size(); ++i) {
      events_.push(options.faults[i].at, {EventKind::kFault, 0, i, 0});
      if (options.faults[i].back < kNever)
        events_.push(options.faults[i].back, {EventKind::kReturn, 0, i, 0});
    }
    fault_devices_.resize(options.faults.size());
    result_.migrations.resize(options.migrations.size());
    for (uint32_t i = 0; i < options.migrations.size(); ++i)
      events_.push(options.migrations[i].at, {EventKind::kAnnounce, 0, i, 0});
  }

  Result<SimulationResult> run() {
    size_t next = 0;
    uint64_t turns = 0;
    constexpr TimeNs kNoMore = std::numeric_limits<TimeNs>::max();
    TimeNs arrival = arrivals_.empty() ? kNoMore : arrivals_[0].at;
    for (;;) {
      if ((++turns & 0xffff) == 0 && options_.cancel.cancelled())
        return cancelled_error("the simulation was stopped");
      if (!events_.empty() && events_.next_at() <= arrival) {
        const auto event = events_.pop();
        now_ = event.at;
        handle(event.payload);
      } else if (next < arrivals_.size()) {
        result_.end = now_ = arrival;
        ++result_.events;
        arrive(static_cast<RequestId>(next++));
        arrival = next < arrivals_.size() ? arrivals_[next].at : kNoMore;
      } else {
        break;
      }
      if (migrating_ && planes_[current_].scheduler->idle()) take_over();
    }
    return finish();
  }

 private:
  void open_plane(const Deployment& deployment) {
    Plane& plane = planes_.emplace_back();
    plane.deployment = &deployment;
    if (options_.scheduler == SchedulerKind::kReactive) {
      plane.scheduler = std::make_unique<ReactiveScheduler>(deployment, options_.dispatch.retry);
    } else {
      auto o = options_.dispatch;
      o.fill_gaps = options_.scheduler == SchedulerKind::kReservation;
      plane.scheduler = std::make_unique<Dispatcher>(deployment, o);
    }
  }

  // Counts its work; a plane that a later one has replaced needs its memory no more.
  void close_plane(Plane& plane) {
    const auto& c = plane.scheduler->counters();
    result_.counters.decisions += c.decisions;
    result_.counters.probes += c.probes;
    result_.counters.batches += c.batches;
    plane.scheduler.reset();
    plane.running = {};
  }

  TimeNs deadline(RequestId r) const { return arrivals_[r].at + slo_[arrivals_[r].model]; }

  void arrive(RequestId r) {
    const uint32_t model = arrivals_[r].model;
    if (migrating_) {
      held_.push_back({model, r, deadline(r)});
      return;
    }
    if (options_.time_decisions) {
      const auto began = std::chrono::steady_clock::now();
      planes_[current_].scheduler->submit(model, r, deadline(r), now_, actions_);
      const auto took = std::chrono::steady_clock::now() - began;
      result_.decision.add(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
    } else {
      planes_[current_].scheduler->submit(model, r, deadline(r), now_, actions_);
    }
    apply(current_);
  }

  void handle(Payload e) {
    Plane& plane = planes_[e.plane];
    switch (e.kind) {
      case EventKind::kEnd: {
        if (e.plane != current_) return;
        auto& running = plane.running[e.a];
        if (!running.live || running.serial != e.serial) return;
        ++result_.events;
        result_.end = now_;
        end_work(plane, running);
        if (running.work.transfer) {
          result_.transfer.add(now_ - run_end_[running.work.first_request]);
        } else {
          run_end_[running.work.first_request] = now_;
        }
        plane.scheduler->finished(e.a, now_, actions_);
        break;
      }
      case EventKind::kOverdue: {
        if (e.plane != current_) return;
        auto& running = plane.running[e.a];
        if (!running.live || running.serial != e.serial) return;
        ++result_.events;
        plane.scheduler->overdue(e.a, now_, actions_);
        const TimeNs expected_end = now_ + overdue_extension(now_ - running.start, running.work.expected_ns);
        if (running.end > expected_end)
          events_.push(expected_end, {EventKind::kOverdue, e.plane, e.a, e.serial});
        break;
      }
      case EventKind::kWake:
        ++result_.events;
        ++result_.wakes;
        if (e.plane != current_) return;  // of a plan that has been replaced
        if (!migrating_) plane.scheduler->wake(e.a, now_, actions_);
        break;
      case EventKind::kFault:
        ++result_.events;
        lose_devices(e.a);
        return;
      case EventKind::kReturn:
        ++result_.events;
        return_devices(e.a);
        return;
      case EventKind::kAnnounce:
        announce(e.a);
        return;
      case EventKind::kMigrate:
        ++result_.events;
        if (!migrating_) held_ = planes_[current_].scheduler->drain();
        migrating_ = true;
        target_ = e.a;
        return;
      case EventKind::kLoaded:
        if (e.plane != current_) return;
        if (!is_lost(plane, e.a)) plane.scheduler->device_back(e.a, now_, actions_);
        break;
    }
    apply(e.plane);
  }

  double noise_factor() {
    const auto& n = options_.noise;
    double factor = 1;
    if (n.jitter > 0) factor = std::exp(n.jitter * normal(noise_) - n.jitter * n.jitter / 2);
    if (n.straggler_share > 0 && noise_.chance(n.straggler_share)) factor *= n.straggler_factor;
    return factor;
  }

  // Carries out the scheduler's actions. Aborts come first, since new work may reuse their ids.
  void apply(size_t p) {
    Plane& plane = planes_[p];
    take(actions_.abort, [&](WorkId id) { end_work(plane, plane.running[id]); });
    take(actions_.start, [&](const Work& work) { begin_work(plane, p, work); });
    take(actions_.begun, [&](RequestId r) {
      if (counts(r)) result_.models[arrivals_[r].model].queueing.add(now_ - arrivals_[r].at);
    });
    take(actions_.done, [&](RequestId r) {
      const Arrival& a = arrivals_[r];
      settle(r, now_ <= a.at + slo_[a.model] ? Outcome::kInTime : Outcome::kLate);
      if (counts(r)) result_.models[a.model].latency.add(now_ - a.at);
    });
    take(actions_.dropped, [&](RequestId r) { settle(r, Outcome::kDropped); });
    take(actions_.failed, [&](RequestId r) { settle(r, Outcome::kFailed); });
    take(actions_.wakes, [&](const Actions::Wake& w) {
      events_.push(w.at, {EventKind::kWake, static_cast<uint16_t>(p), w.model, 0});
    });
  }

  // Most events leave most of these lists empty.
  template <class T, class Take>
  static void take(std::vector<T>& actions, const Take& one) {
    if (actions.empty()) return;
    for (const T& action : actions) one(action);
    actions.clear();
  }

  void begin_work(Plane& plane, size_t p, const Work& work) {
    if (work.id >= plane.running.size()) plane.running.resize(work.id + 1);
    auto& r = plane.running[work.id];
    TimeNs length = work.expected_ns;
    if (options_.noise.any()) length = std::max<TimeNs>(1, ns_from_us(us_from_ns(length) * noise_factor()));
    r.work = work;
    r.start = now_;
    r.end = now_ + length;
    r.live = true;
    ++r.serial;
    const auto plane_index = static_cast<uint16_t>(p);
    events_.push(r.end, {EventKind::kEnd, plane_index, work.id, r.serial});
    if (const TimeNs expected_end = now_ + work.expected_ns; r.end > expected_end)
      events_.push(expected_end, {EventKind::kOverdue, plane_index, work.id, r.serial});
    if (!work.transfer && work.partition == 0) {
      auto& sizes = result_.models[plane.deployment->pipelines[work.pipeline].model].batch_sizes;
      if (sizes.size() < work.batch_size) sizes.resize(work.batch_size, 0);
      ++sizes[work.batch_size - 1];
    }
  }

  void end_work(const Plane& plane, Plane::Running& r) {
    r.live = false;
    const TimeNs busy = std::max<TimeNs>(0, std::min(now_, result_.horizon) - r.start);
    const bool transfer = r.work.transfer;
    const auto& device = plane.deployment->devices[r.work.source];
    use_[device.device_class].of[transfer] += static_cast<double>(busy) / (transfer ? 1 : device.share);
    if (now_ > options_.window_from && r.start < options_.window_to && result_.window.size() < kMostBars)
      result_.window.push_back({r.start, now_, r.work.device, r.work.pipeline, r.work.partition,
                                r.work.batch_size, r.work.first_request, r.work.transfer});
  }

  bool counts(RequestId r) const { return arrivals_[r].at >= options_.warmup; }

  void settle(RequestId r, Outcome outcome) {
    if (outcome_[r] != Outcome::kOpen) twice_ = true;
    outcome_[r] = outcome;
  }

  void lose_devices(uint32_t fault) {
    const auto& f = options_.faults[fault];
    const Plane& plane = planes_[current_];
    const auto& c = plane.deployment->classes[f.device_class];
    auto& lost = lost_[f.device_class];
    lost.resize(std::max<size_t>(lost.size(), c.used), 0);
    std::vector<uint32_t> there;
    for (uint32_t i = 0; i < c.used; ++i)
      if (!lost[i]) there.push_back(i);
    for (uint32_t n = 0; n < f.devices && !there.empty(); ++n) {
      const size_t lot = lots_.below(there.size());
      const uint32_t device = there[lot];
      there.erase(there.begin() + static_cast<std::ptrdiff_t>(lot));
      lost[device] = 1;
      fault_devices_[fault].push_back(device);
      change(current_, f.device_class, device, false);
    }
  }

  void return_devices(uint32_t fault) {
    const auto& f = options_.faults[fault];
    for (const uint32_t device : fault_devices_[fault]) {
      lost_[f.device_class][device] = 0;
      change(current_, f.device_class, device, true);
    }
    fault_devices_[fault].clear();
  }

  // Loses or returns the virtual devices of a class's i-th device.
  void change(size_t p, uint32_t device_class, uint32_t i, bool back) {
    Plane& plane = planes_[p];
    const uint32_t device = plane.deployment->classes[device_class].first_device + i;
    for (uint32_t v = 0; v < plane.deployment->devices.size(); ++v) {
      const auto& d = plane.deployment->devices[v];
      if (d.device_class != device_class || d.device != device) continue;
      if (!back) {
        plane.scheduler->device_lost(v, now_, actions_);
      } else if (now_ >= loaded_at(v)) {
        plane.scheduler->device_back(v, now_, actions_);
      }
      apply(p);
    }
  }

  TimeNs loaded_at(uint32_t v) const { return v < loaded_.size() ? loaded_[v] : 0; }

  bool is_lost(const Plane& plane, uint32_t v) const {
    const auto& d = plane.deployment->devices[v];
    const uint32_t i = d.device - plane.deployment->classes[d.device_class].first_device;
    return i < lost_[d.device_class].size() && lost_[d.device_class][i];
  }

  // The change itself begins once the unused devices that it needs have loaded.
  void announce(uint32_t i) {
    const PlanMigration& m = options_.migrations[i];
    const Deployment& from = *planes_[current_].deployment;
    if (m.spares_first && m.load > 0) result_.migrations[i].spares = spares_needed(from, *m.to);
    const auto& spares = result_.migrations[i].spares;
    const bool any = std::ranges::any_of(spares, [](int64_t n) { return n > 0; });
    events_.push(now_ + (any ? m.load : 0), {EventKind::kMigrate, 0, i, 0});
  }

  // Once the old plan has no work in flight, the new one gets the waiting requests.
  void take_over() {
    migrating_ = false;
    const PlanMigration& m = options_.migrations[target_];
    auto& course = result_.migrations[target_];
    result_.migrated = course.taken_over = now_;
    const Deployment& from = *planes_[current_].deployment;
    const Deployment& to = *m.to;
    loaded_ = loading_ends(from, to, loaded_, course.spares, now_, m.load);
    close_plane(planes_[current_]);
    open_plane(to);
    current_ = planes_.size() - 1;
    Plane& plane = planes_[current_];
    for (uint32_t v = 0; v < to.devices.size(); ++v) {
      if (loaded_[v] == 0 && !is_lost(plane, v)) continue;
      plane.scheduler->device_lost(v, now_, actions_);
      if (loaded_[v] > 0)
        events_.push(loaded_[v], {EventKind::kLoaded, static_cast<uint16_t>(current_), v, 0});
    }
    apply(current_);
    for (const auto& r : held_) {
      plane.scheduler->submit(r.model, r.request, r.deadline, now_, actions_);
      apply(current_);
    }
    held_.clear();
  }

  static void count(RequestCounts& c, Outcome outcome) {
    ++c.arrivals;
    c.in_time += outcome == Outcome::kInTime;
    c.late += outcome == Outcome::kLate;
    c.dropped += outcome == Outcome::kDropped;
    c.failed += outcome == Outcome::kFailed;
  }

  Result<SimulationResult> finish() {
    for (RequestId r = 0; r < arrivals_.size(); ++r) {
      if (outcome_[r] == Outcome::kOpen || twice_)
        return internal_error(twice_ ? "a request was answered twice"
                                     : "request " + std::to_string(r) + " was never answered");
      if (!counts(r)) continue;
      count(result_.models[arrivals_[r].model].requests, outcome_[r]);
      count(result_.total, outcome_[r]);
      const double part = static_cast<double>(arrivals_[r].at) / static_cast<double>(result_.horizon);
      const auto step = std::min(kCourseSteps - 1, static_cast<size_t>(part * kCourseSteps));
      count(result_.course[step], outcome_[r]);
    }
    for (const auto& m : result_.models) {
      result_.latency.merge(m.latency);
      result_.queueing.merge(m.queueing);
    }
    close_plane(planes_[current_]);
    const auto horizon = static_cast<double>(result_.horizon);
    const Deployment& deployment = *planes_[0].deployment;
    std::vector<std::vector<uint32_t>> servers(deployment.classes.size());
    for (const auto& v : deployment.devices) servers[v.device_class].push_back(v.server);
    for (size_t c = 0; c < use_.size(); ++c) {
      std::sort(servers[c].begin(), servers[c].end());
      const auto used = std::unique(servers[c].begin(), servers[c].end()) - servers[c].begin();
      const auto& cls = deployment.classes[c];
      result_.classes.push_back(
          {cls.name, cls.devices,
           cls.devices > 0 ? use_[c].of[0] / horizon / static_cast<double>(cls.devices) : 0,
           used > 0 ? use_[c].of[1] / horizon / static_cast<double>(used) : 0});
    }
    std::stable_sort(result_.window.begin(), result_.window.end(),
                     [](const WorkBar& a, const WorkBar& b) { return a.start < b.start; });
    return std::move(result_);
  }

  std::span<const Arrival> arrivals_;
  const SimulationOptions& options_;
  Random noise_, lots_;
  SimulationResult result_;
  EventQueue<Payload> events_;
  std::vector<Plane> planes_;
  size_t current_ = 0;
  uint32_t target_ = 0;  // the migration that is under way
  bool migrating_ = false, twice_ = false;
  TimeNs now_ = 0;
  Actions actions_;
  std::vector<Outcome> outcome_;
  std::vector<TimeNs> slo_;      // [model], the same in all plans
  std::vector<TimeNs> run_end_;  // [first request of a batch]: end of the batch's last run
  struct Use {
    double of[2] = {0, 0};  // busy time of runs and of sending, ns
  };
  std::vector<Use> use_;                 // [class]
  std::vector<std::vector<char>> lost_;  // [class][device]
  std::vector<std::vector<uint32_t>> fault_devices_;
  std::vector<PendingRequest> held_;  // requests that wait while the old plan finishes
  std::vector<TimeNs> loaded_;        // time at which each virtual device of the current plan has loaded
};

Status check_options(const Deployment& d, std::span<const Arrival> arrivals, const SimulationOptions& o) {
  HEDDLE_RETURN_IF_ERROR(check_deployment(d));
  const auto& n = o.noise;
  if (!(n.jitter >= 0 && n.jitter <= 2) || !(n.straggler_share >= 0 && n.straggler_share <= 1) ||
      !(n.straggler_factor >= 1 && n.straggler_factor <= 1000))
    return invalid_input(
        "noise: expected a jitter of 0 to 2, a stragglers' share of 0 to 1 and a factor of 1 to 1000");
  if (!(o.dispatch.avoid_stragglers >= 0 && o.dispatch.avoid_stragglers <= 1000))
    return invalid_input("avoid_stragglers: expected a share of 0 to 1000 of a run's time");
  for (const auto& f : o.faults)
    if (f.device_class >= d.classes.size() || f.at < 0 || f.back <= f.at)
      return invalid_input("a fault needs a class of the fleet, a time from 0 and a return after it");
  HEDDLE_RETURN_IF_ERROR(check_migrations(d, o.migrations));
  if (arrivals.size() >= kNoId) return unsupported("more than 4e9 arrivals");
  for (size_t i = 0; i < arrivals.size(); ++i)
    if (arrivals[i].model >= d.models.size() || arrivals[i].at < 0 || arrivals[i].at >= kNever / 2 ||
        (i > 0 && arrivals[i].at < arrivals[i - 1].at))
      return invalid_input("arrival " + std::to_string(i) +
                           ": its model does not exist, or the arrivals are not sorted");
  return {};
}

}  // namespace

const char* scheduler_name(SchedulerKind kind) { return kSchedulerNames[static_cast<size_t>(kind)]; }

std::optional<SchedulerKind> scheduler_named(std::string_view name) {
  for (size_t i = 0; i < std::size(kSchedulerNames); ++i)
    if (name == kSchedulerNames[i]) return static_cast<SchedulerKind>(i);
  return std::nullopt;
}

Result<SimulationResult> simulate(const Deployment& deployment, std::span<const Arrival> arrivals,
                                  const SimulationOptions& options) {
  HEDDLE_RETURN_IF_ERROR(check_options(deployment, arrivals, options));
  return Simulation(deployment, arrivals, options).run();
}

}  // namespace heddle
