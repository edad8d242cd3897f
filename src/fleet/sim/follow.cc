#include "heddle/fleet/follow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <utility>

#include "follow_plans.h"
#include "heddle/base/gap.h"
#include "heddle/fleet/fleet_replan.h"
#include "plan/kept_instance.h"

namespace heddle {
namespace {

constexpr double kOutagePrice = 1;    // of a device that serves and must load, in devices
constexpr double kLeastSaving = .08;  // of the devices, for a change that gives some back
constexpr int kHigherTries = 3;       // levels that a plan which keeps pools may need more than a fresh one
constexpr double kSecondsPerHour = 3600;

// Arrivals of each window.
struct Windows {
  std::vector<std::span<const Arrival>> arrivals;
  std::vector<std::vector<double>> rates;  // [window][model], 1/s

  Windows(std::span<const Arrival> all, size_t models, const FollowOptions& o) {
    const auto n = static_cast<size_t>(std::ceil(o.duration_s / o.window_s - 1e-9));
    size_t from = 0;
    for (size_t w = 0; w < n; ++w) {
      const double end_s = std::min(o.duration_s, o.window_s * static_cast<double>(w + 1));
      const double length_s = end_s - o.window_s * static_cast<double>(w);
      const TimeNs end = w + 1 == n ? kNever : ns_from_us(end_s * 1e6);
      size_t to = from;
      std::vector<double> rate(models, 0);
      for (; to < all.size() && all[to].at < end; ++to) rate[all[to].model] += 1 / length_s;
      arrivals.push_back(all.subspan(from, to - from));
      rates.push_back(std::move(rate));
      from = to;
    }
  }
};

double sum_of(std::span<const double> values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum;
}

class Follower {
 public:
  Follower(const Fleet& fleet, std::span<const Arrival> arrivals, const FollowOptions& options)
      : options_(options),
        arrivals_(arrivals),
        plans_(fleet, options),
        windows_(arrivals, fleet.models.size(), options) {
    for (const FleetModel& m : fleet.models) longest_slo_s_ = std::max(longest_slo_s_, m.slo_us * 1e-6);
  }

  Result<FollowResult> run() {
    FollowResult result;
    result.windows = windows_.rates.size();
    HEDDLE_ASSIGN_OR_RETURN(result.rolling, rolling());
    HEDDLE_ASSIGN_OR_RETURN(result.fixed, fixed());
    HEDDLE_ASSIGN_OR_RETURN(result.hindsight, hindsight());
    HEDDLE_ASSIGN_OR_RETURN(result.bound_device_hours, bound());
    return result;
  }

 private:
  double least_rate() const { return 1 / options_.window_s; }

  void report(const char* what, size_t done) const {
    if (options_.progress)
      options_.progress->report({.what = what,
                                 .done = static_cast<double>(done),
                                 .total = static_cast<double>(windows_.rates.size())});
  }

  // From the windows before `w`. The greater of the last two rates, and the slope over the last two windows up to the
  // end of the time for which the plan must do. With a known day also the same time of the day before.
  std::vector<double> forecast(size_t w) const {
    const auto& rates = windows_.rates;
    const double ahead = 1.5 + options_.load_s / options_.window_s;
    const auto day = static_cast<size_t>(std::llround(options_.day_s / options_.window_s));
    std::vector<double> result = rates[w - 1];
    for (size_t m = 0; m < result.size(); ++m) {
      const double last = rates[w - 1][m], before = w >= 2 ? rates[w - 2][m] : last;
      const double slope = w >= 3 ? (last - rates[w - 3][m]) / 2 : last - before;
      result[m] = std::max(last, before) + ahead * std::max(0.0, slope);
      if (day > 0 && w >= day)
        for (const size_t then : {w - day, w - day + 1})
          if (then < w) result[m] = std::max(result[m], rates[then][m]);
    }
    return result;
  }

  // The end of the last window's arrivals, faster or slower by the forecast.
  std::vector<Arrival> trial(size_t w, const std::vector<double>& forecast) const {
    auto last = windows_.arrivals[w - 1];
    if (last.size() > kTried) last = last.last(kTried);
    std::vector<Arrival> scaled(last.begin(), last.end());
    for (auto& a : scaled) a.at -= last.front().at;
    if (!scaled.empty()) scale_arrivals(scaled, sum_of(forecast) / sum_of(windows_.rates[w - 1]));
    return scaled;
  }

  // Half of the misses that the wanted share allows is left for changes of plan and errors of the forecast.
  double trial_share() const { return 1 - (1 - options_.attainment) / 2; }

  bool serves(const FleetPlan& plan, const Levels& levels) const {
    for (size_t m = 0; m < levels.size(); ++m)
      if (plan.models[m].rate_per_s < rate_of(levels[m]) * (1 - 1e-9)) return false;
    return true;
  }

  Status change_to(FleetPlan plan, double moved, FollowReason reason, size_t w, double forecast_per_s) {
    HEDDLE_ASSIGN_OR_RETURN(auto deployment, deploy(plans_.fleet(), plan));
    deployments_.push_back(std::move(deployment));
    changes_.push_back({reason, options_.window_s * static_cast<double>(w), forecast_per_s,
                        devices_used(plans_.fleet(), plan), moved});
    running_ = std::move(plan);
    fallback_ = reason == FollowReason::kFallback || reason == FollowReason::kStart;
    return {};
  }

  Status to_fallback(const Levels& mix, size_t w, double forecast_per_s) {
    ++fallback_windows_;
    if (fallback_) return {};
    HEDDLE_ASSIGN_OR_RETURN(auto plan, plans_.greatest(mix));
    return change_to(std::move(plan), 0, FollowReason::kFallback, w, forecast_per_s);
  }

  // A plan near the running one for these levels, or for higher ones if it fails the trial; the last one tried.
  Result<std::optional<FleetReplan>> near_plan(const Levels& target, std::span<const Arrival> trial) {
    std::optional<FleetReplan> found;
    const MovePrices prices{options_.load_s / (options_.hold * options_.window_s), kOutagePrice};
    for (int by = 0; by <= kHigherTries; ++by) {
      const Levels levels = raised(target, by);
      auto plan = replan_for_load(plans_.fleet_at(levels), running_, plans_.options_at(levels), prices);
      if (!plan.ok() && plan.error().code() == Code::kInfeasible) break;
      if (!plan.ok()) return std::move(plan).error();
      found = std::move(*plan);
      HEDDLE_ASSIGN_OR_RETURN(const bool enough, plans_.reaches(found->plan, trial, trial_share(), true));
      if (enough) break;
    }
    return found;
  }

  Status decide(size_t w) {
    const auto expected = forecast(w);
    const double per_s = sum_of(expected);
    const auto arrivals = trial(w, expected);
    Levels need = levels_of(expected, least_rate());
    HEDDLE_ASSIGN_OR_RETURN(const auto room, plans_.head_room(need, arrivals, trial_share(), true, room_));
    if (room) room_ = *room;
    needs_.push_back(raised(need, room.value_or(room_)));
    if (needs_.size() > static_cast<size_t>(options_.hold)) needs_.pop_front();
    Levels target = needs_.back();
    for (const Levels& n : needs_)
      for (size_t m = 0; m < target.size(); ++m) target[m] = std::max(target[m], n[m]);
    HEDDLE_ASSIGN_OR_RETURN(const auto* fresh, plans_.fewest(target));
    if (!room || fresh == nullptr) return to_fallback(target, w, per_s);
    bool enough = serves(running_, target);
    if (enough) {
      HEDDLE_ASSIGN_OR_RETURN(enough, plans_.reaches(running_, arrivals, options_.attainment, true));
    }
    const double saving =
        static_cast<double>(count_of(plans_.fleet(), running_) - count_of(plans_.fleet(), *fresh));
    const double running = static_cast<double>(count_of(plans_.fleet(), running_));
    const bool held = changes_.size() == 1 || needs_.size() == static_cast<size_t>(options_.hold);
    if (enough && (!held || saving < 1 || saving < kLeastSaving * running)) return {};
    HEDDLE_ASSIGN_OR_RETURN(auto next, near_plan(target, arrivals));
    if (!next) return to_fallback(target, w, per_s);
    const auto devices = static_cast<double>(count_of(plans_.fleet(), next->plan));
    if (enough && devices > running * (1 - kLeastSaving)) return {};
    return change_to(std::move(next->plan), next->moved_devices,
                     enough ? FollowReason::kDown : FollowReason::kUp, w, per_s);
  }

  Result<FollowCourse> rolling() {
    HEDDLE_ASSIGN_OR_RETURN(auto first, plans_.greatest({}));
    HEDDLE_RETURN_IF_ERROR(change_to(std::move(first), 0, FollowReason::kStart, 0, 0));
    for (size_t w = 1; w < windows_.rates.size(); ++w) {
      report("following the load", w);
      HEDDLE_RETURN_IF_ERROR(decide(w));
    }
    SimulationOptions o = options_.simulation;
    o.horizon = ns_from_us(options_.duration_s * 1e6);
    for (size_t i = 1; i < changes_.size(); ++i)
      o.migrations.push_back({.to = &deployments_[i],
                              .at = ns_from_us(changes_[i].at_s * 1e6),
                              .load = ns_from_us(options_.load_s * 1e6),
                              .spares_first = true});
    HEDDLE_ASSIGN_OR_RETURN(const auto result, simulate(deployments_[0], arrivals_, o));
    FollowCourse course;
    course.total = result.total;
    course.attainment = worst_attainment(result);
    course.device_hours = device_hours(result);
    for (const FollowChange& change : changes_)
      course.overtime_hours += overtime_hours(
          static_cast<double>(std::accumulate(change.devices.begin(), change.devices.end(), int64_t{0})));
    course.changes = std::move(changes_);
    course.fallback_windows = fallback_windows_;
    return course;
  }

  // Of so many devices after one plan's end.
  double overtime_hours(double devices) const { return devices * longest_slo_s_ / kSecondsPerHour; }

  // Devices of the plan that serves, and those that load ahead of the next.
  double device_hours(const SimulationResult& result) const {
    const auto count = [](const std::vector<int64_t>& devices) {
      double sum = 0;
      for (const int64_t n : devices) sum += static_cast<double>(n);
      return sum;
    };
    double seconds = 0, since = 0, serving = count(changes_[0].devices);
    for (size_t i = 1; i < changes_.size(); ++i) {
      const auto& course = result.migrations[i - 1];
      const double until = course.taken_over == kNever
                               ? changes_[i].at_s + options_.load_s
                               : std::min(options_.duration_s, seconds_from_ns(course.taken_over));
      seconds += count(course.spares) * std::max(0.0, until - changes_[i].at_s);
      if (course.taken_over == kNever) continue;
      seconds += serving * std::max(0.0, until - since);
      since = until;
      serving = count(changes_[i].devices);
    }
    return (seconds + serving * std::max(0.0, options_.duration_s - since)) / kSecondsPerHour;
  }

  Result<FollowCourse> hindsight() {
    FollowCourse course;
    std::vector<RequestCounts> models(plans_.fleet().models.size());
    for (size_t w = 0; w < windows_.rates.size(); ++w) {
      report("planning with hindsight", w);
      const Levels levels = levels_of(windows_.rates[w], least_rate());
      const auto arrivals = windows_.arrivals[w];
      HEDDLE_ASSIGN_OR_RETURN(const auto room,
                              plans_.head_room(levels, arrivals, options_.attainment, false, seen_room_));
      if (room) seen_room_ = *room;
      FleetPlan plan;
      if (room) {
        HEDDLE_ASSIGN_OR_RETURN(const auto* fewest, plans_.fewest(raised(levels, *room)));
        plan = *fewest;
      } else {
        HEDDLE_ASSIGN_OR_RETURN(plan, plans_.greatest(levels));
      }
      // Small pools may need more devices at a low rate than the plan for the peak has.
      if (count_of(plans_.fleet(), plan) > count_of(plans_.fleet(), fixed_)) {
        HEDDLE_ASSIGN_OR_RETURN(const bool enough,
                                plans_.reaches(fixed_, arrivals, options_.attainment, false));
        if (enough) plan = fixed_;
      }
      const double begin_s = options_.window_s * static_cast<double>(w);
      const auto devices = static_cast<double>(count_of(plans_.fleet(), plan));
      course.device_hours +=
          devices * std::min(options_.window_s, options_.duration_s - begin_s) / kSecondsPerHour;
      course.overtime_hours += overtime_hours(devices);
      if (arrivals.empty()) continue;
      HEDDLE_ASSIGN_OR_RETURN(const auto result, plans_.play(plan, arrivals));
      for (size_t m = 0; m < models.size(); ++m) add(models[m], result.models[m].requests);
      add(course.total, result.total);
    }
    for (const auto& m : models) course.attainment = std::min(course.attainment, m.attainment());
    return course;
  }

  static void add(RequestCounts& to, const RequestCounts& from) {
    to.arrivals += from.arrivals;
    to.in_time += from.in_time;
    to.late += from.late;
    to.dropped += from.dropped;
    to.failed += from.failed;
  }

  // One plan for all windows. From the head-room of single windows down while it is enough, else up.
  Result<FollowCourse> fixed() {
    std::vector<double> peak(plans_.fleet().models.size(), 0);
    for (const auto& rates : windows_.rates)
      for (size_t m = 0; m < peak.size(); ++m) peak[m] = std::max(peak[m], rates[m]);
    const Levels levels = levels_of(peak, least_rate());
    std::optional<FollowCourse> best;
    int by = room_;
    for (bool down = true; by >= 0;) {
      HEDDLE_ASSIGN_OR_RETURN(const auto* fewest, plans_.fewest(raised(levels, by)));
      if (fewest == nullptr && down && by > 0 && !best) {
        --by;
        continue;
      }
      FleetPlan plan;
      if (fewest) {
        plan = *fewest;
      } else {
        HEDDLE_ASSIGN_OR_RETURN(plan, plans_.greatest(levels));
      }
      HEDDLE_ASSIGN_OR_RETURN(auto course, whole(plan));
      const bool enough = course.attainment >= options_.attainment;
      if (enough) {
        best = std::move(course);
        fixed_ = plan;
        if (!down) break;
        --by;
      } else {
        if (best) break;
        down = false;
        ++by;
        if (fewest == nullptr) {
          fixed_ = std::move(plan);
          return course;
        }
      }
    }
    return std::move(*best);
  }

  Result<FollowCourse> whole(const FleetPlan& plan) const {
    HEDDLE_ASSIGN_OR_RETURN(const auto result, plans_.play(plan, arrivals_));
    FollowCourse course;
    course.total = result.total;
    course.attainment = worst_attainment(result);
    const auto devices = static_cast<double>(count_of(plans_.fleet(), plan));
    course.device_hours = devices * options_.duration_s / kSecondsPerHour;
    course.overtime_hours = overtime_hours(devices);
    course.changes = {{FollowReason::kStart, 0, 0, devices_used(plans_.fleet(), plan), 0}};
    return course;
  }

  // The price bound is linear in the load if no class runs out, so that the mean rates stand for all windows.
  Result<double> bound() const {
    Fleet fleet = plans_.fleet();
    FleetPlanOptions o;
    o.objective = FleetObjective::kCost;
    o.deadline = Deadline::never(options_.simulation.cancel);
    std::vector<double> requests(fleet.models.size(), 0);
    for (const auto& a : arrivals_) ++requests[a.model];
    for (size_t m = 0; m < requests.size(); ++m) {
      fleet.models[m].weight = std::max(requests[m], 1e-6) / options_.duration_s * options_.attainment;
      o.load_per_s += fleet.models[m].weight;
    }
    for (auto& c : fleet.classes) {
      c.devices.clear();
      if (c.count > 0) c.count = kMaxFleetDevices / static_cast<int64_t>(fleet.classes.size());
    }
    HEDDLE_ASSIGN_OR_RETURN(const auto plan, plan_fleet(fleet, "auto", o));
    return plan.bound * options_.duration_s / kSecondsPerHour;
  }

  const FollowOptions& options_;
  std::span<const Arrival> arrivals_;
  FollowPlans plans_;
  Windows windows_;
  FleetPlan running_, fixed_;
  double longest_slo_s_ = 0;
  bool fallback_ = false;
  std::deque<Deployment> deployments_;  // [change]; the simulation points into it
  std::vector<FollowChange> changes_;
  std::deque<Levels> needs_;  // of the last windows
  size_t fallback_windows_ = 0;
  int room_ = 1, seen_room_ = 1;
};

}  // namespace

const char* follow_reason_name(FollowReason reason) {
  constexpr const char* kNames[] = {"start", "up", "down", "fallback"};
  return kNames[static_cast<size_t>(reason)];
}

Status check_courses(const Fleet& fleet, std::span<const Arrival> arrivals, const FollowOptions& options,
                     const FollowResult& result) {
  const std::pair<const char*, const FollowCourse*> courses[] = {
      {"static", &result.fixed}, {"rolling", &result.rolling}, {"hindsight", &result.hindsight}};
  for (const auto& [name, course] : courses) {
    // The bound is for the wanted share of each model's requests, and it is linear in them.
    const double least = result.bound_device_hours * std::min(1.0, course->attainment / options.attainment);
    const double most = course->device_hours + course->overtime_hours;
    if (most >= least * (1 - kSolverTolerance)) continue;
    return internal_error(fmt::format(
        "the {} plans serve {:.6g} of each model's requests in {:.9g} device-hours, below the bound of "
        "{:.9g} (proven: prices of the mean rates); one of the two is wrong; {}",
        name, course->attainment, most, least,
        keep_instance(fleet, nullptr, arrivals_to_csv(fleet, arrivals))));
  }
  return {};
}

Result<FollowResult> follow_load(const Fleet& fleet, std::span<const Arrival> arrivals,
                                 const FollowOptions& o) {
  HEDDLE_RETURN_IF_ERROR(check_fleet(fleet));
  if (!(o.window_s > 0) || !(o.duration_s >= 2 * o.window_s) || o.duration_s / o.window_s > 10'000)
    return invalid_input("plans that follow the load need 2 to 10000 windows");
  if (!(o.load_s >= 0 && o.load_s < o.window_s))
    return invalid_input("the time to load must be less than a window");
  if (o.hold < 1 || o.hold > 1000) return invalid_input("a lower need must hold for 1 to 1000 windows");
  if (!(o.attainment > 0 && o.attainment < 1) || !(o.day_s >= 0))
    return invalid_input("the attainment must lie between 0 and 1, the day must not be negative");
  for (const auto& a : arrivals)
    if (a.model >= fleet.models.size() || seconds_from_ns(a.at) >= o.duration_s)
      return invalid_input("an arrival's model does not exist, or it is after the duration");
  HEDDLE_ASSIGN_OR_RETURN(auto result, Follower(fleet, arrivals, o).run());
  HEDDLE_RETURN_IF_ERROR(check_courses(fleet, arrivals, o, result));
  return result;
}

}  // namespace heddle
