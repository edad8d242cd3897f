#include "local_plan.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "heddle/base/units.h"
#include "heddle/fleet/fleet_check.h"
#include "heddle/fleet/fleet_planner.h"
#include "heddle/fleet/goodput.h"

namespace heddle {
namespace {

constexpr double kNoLink_bytes_per_s = 1e12;  // whole models send nothing
constexpr double kAttainment = .99;           // that an arrangement's goodput is for

const std::vector<double>* times_on(const std::vector<LocalTimes>& times, const std::string& target) {
  for (const auto& t : times)
    if (t.target == target) return &t.us;
  return nullptr;
}

using Models = std::span<const std::shared_ptr<const LocalModel>>;
using Times = std::vector<std::vector<LocalTimes>>;

// Devices of one target are one class. `shared`: as many of each device as there are models, each so much
// slower.
Result<LocalPlan> plan_on(Models models, const Times& times, const DeviceSet& set, bool shared,
                          const Deadline& deadline) {
  LocalPlan out;
  out.fleet.name = "this machine";
  out.fleet.max_partitions = 1;
  std::map<std::string, size_t> index;
  std::vector<std::vector<Device>> members;
  std::vector<std::string> targets;
  const double slower = shared ? static_cast<double>(models.size()) : 1;
  for (const auto& d : set) {
    const auto [entry, fresh] = index.emplace(d.target, members.size());
    if (fresh) {
      DeviceClass c;
      c.name = d.device_class + (shared ? " shared" : "");
      c.nic_bytes_per_s = kNoLink_bytes_per_s;
      out.fleet.classes.push_back(c);
      members.emplace_back();
      targets.push_back(d.target);
    }
    const auto copies = shared ? models.size() : 1;
    members[entry->second].insert(members[entry->second].end(), copies, d);
    out.fleet.classes[entry->second].count += static_cast<int64_t>(copies);
  }
  for (size_t m = 0; m < models.size(); ++m) {
    const auto& served = models[m]->served;
    FleetModel model;
    model.name = served.name;
    model.blocks = 1;
    model.slo_us = served.slo_us;
    model.weight = models[m]->source.settings.weight;
    model.cut_bytes = {0, 0};
    model.latency_us.assign(targets.size(), {});
    for (size_t c = 0; c < targets.size(); ++c) {
      const auto* us = times_on(times[m], targets[c]);
      if (us == nullptr) continue;
      model.latency_us[c].emplace_back();
      for (const double t : *us) model.latency_us[c][0].push_back({t * slower});
    }
    out.fleet.models.push_back(std::move(model));
  }
  FleetPlanOptions options;
  options.deadline = deadline;
  HEDDLE_ASSIGN_OR_RETURN(out.plan, plan_fleet(out.fleet, "auto", options));
  HEDDLE_RETURN_IF_ERROR(check_fleet_plan(out.fleet, out.plan));
  HEDDLE_ASSIGN_OR_RETURN(out.deployment, deploy(out.fleet, out.plan));
  for (const auto& v : out.deployment.devices)
    out.device_of.push_back(
        members[v.device_class][v.device - out.deployment.classes[v.device_class].first_device]);
  return out;
}

struct Candidate {
  const char* how;
  LocalPlan plan;
};

// The batch that serves most rows per second of those that end within half the SLO, so that what waited for
// another one can still be served; 0: the model does not run there.
uint32_t shared_batch(const std::vector<double>* us, double slo_us) {
  uint32_t best = 0;
  if (us == nullptr) return best;
  for (uint32_t b = 1; b <= us->size(); ++b) {
    const double t = (*us)[b - 1];
    if (t > (b == 1 ? slo_us : slo_us / 2)) continue;
    if (best == 0 || t * best < (*us)[best - 1] * b) best = b;
  }
  return best;
}

// All models take turns on each device: one pool for each target, shared by the models that run there.
Result<LocalPlan> plan_shared(Models models, const Times& times, const DeviceSet& set,
                              const Deadline& deadline) {
  // What each is sure of, and whether all can be served at all.
  HEDDLE_ASSIGN_OR_RETURN(auto out, plan_on(models, times, set, true, deadline));
  std::vector<std::string> targets;
  for (const auto& d : set)
    if (std::find(targets.begin(), targets.end(), d.target) == targets.end()) targets.push_back(d.target);
  Deployment d;
  for (const auto& model : out.fleet.models)
    d.models.push_back({model.name, ns_from_us(model.slo_us), 0, {}});
  out.device_of.clear();
  for (uint32_t c = 0; c < targets.size(); ++c) {
    const auto first = static_cast<uint32_t>(d.devices.size());
    for (const auto& device : set) {
      if (device.target != targets[c]) continue;
      const auto v = static_cast<uint32_t>(d.devices.size());
      d.devices.push_back({.device_class = c, .device = v, .server = v});
      out.device_of.push_back(device);
    }
    const auto count = static_cast<uint32_t>(d.devices.size()) - first;
    const auto& name = out.fleet.classes[c].name;
    d.classes.push_back({name, count, first, count});
    // In the proportion of the weights, as long as all are wanted.
    double turn_us = 0;
    for (size_t m = 0; m < models.size(); ++m) {
      const auto* us = times_on(times[m], targets[c]);
      if (const auto b = shared_batch(us, out.fleet.models[m].slo_us))
        turn_us += out.fleet.models[m].weight * (*us)[b - 1] / b;
    }
    for (uint32_t m = 0; m < models.size(); ++m) {
      const auto& model = out.fleet.models[m];
      const auto* us = times_on(times[m], targets[c]);
      const auto batch = shared_batch(us, model.slo_us);
      if (batch == 0) continue;
      DevicePool pool;
      pool.first_device = first;
      pool.num_devices = count;
      pool.role = {model.name, 0, 1, name, 1};
      for (uint32_t b = 0; b < batch; ++b) pool.run_ns.push_back(std::max<TimeNs>(1, ns_from_us((*us)[b])));
      DeployedPipeline pipeline;
      pipeline.model = m;
      pipeline.batch = batch;
      pipeline.rate_per_s = count * model.weight / turn_us * 1e6;
      pipeline.partitions.push_back(std::move(pool));
      d.models[m].rate_per_s += pipeline.rate_per_s;
      d.models[m].pipelines.push_back(static_cast<uint32_t>(d.pipelines.size()));
      d.pipelines.push_back(std::move(pipeline));
    }
  }
  d.num_servers = static_cast<uint32_t>(d.devices.size());
  // A device that no model wants (each has another target) is in no pool: the plan with it is not needed.
  if (!check_deployment(d).ok()) return infeasible("no arrangement in which all models share these devices");
  out.deployment = std::move(d);
  return out;
}

std::string arrangement_text(const Candidate& c) {
  std::map<std::string, int> count;
  std::string text;
  for (const auto& d : c.plan.device_of) ++count[d.device_class];
  for (const auto& [name, n] : count) text += (text.empty() ? "" : ", ") + std::to_string(n) + " x " + name;
  return std::string(c.how) + " on " + text;
}

Result<LocalPlan> best_by_goodput(std::vector<Candidate> candidates, const LocalServerOptions& options) {
  if (candidates.size() == 1) return std::move(candidates.front().plan);
  GoodputOptions how;
  how.scheduler = options.plane.scheduler;
  how.dispatch = options.plane.dispatch;
  how.attainment = kAttainment;
  how.requests = 10000;
  how.cancel = options.deadline.token();
  // The same load for all.
  std::vector<double> rates;
  const auto& of = candidates.front().plan;
  const double base = of.deployment.models.front().rate_per_s / of.fleet.models.front().weight;
  for (const auto& m : of.fleet.models) rates.push_back(base * m.weight);
  size_t best = 0, apart = candidates.size(), tried = 0;
  for (size_t i = 0; i < candidates.size() && !options.deadline.should_stop(); ++i, ++tried) {
    HEDDLE_ASSIGN_OR_RETURN(const auto found, goodput(candidates[i].plan.deployment, rates, how));
    auto& value = candidates[i].plan.goodput_per_s;
    value = found.per_s;
    if (value > candidates[best].plan.goodput_per_s * (1 + how.precision)) best = i;
    // The best of those with devices of their own, to compare with.
    if (candidates[i].how != std::string_view("shared") &&
        (apart == candidates.size() || value > candidates[apart].plan.goodput_per_s))
      apart = i;
  }
  auto& plan = candidates[best].plan;
  if (tried == 0) return std::move(plan);
  const auto promise = [](const Candidate& c) {
    return arrangement_text(c) + ": " + format_requests(c.plan.goodput_per_s);
  };
  const auto in_time = std::to_string(std::lround(kAttainment * 100)) + " % in time when simulated";
  if (!(plan.goodput_per_s > 0)) {
    plan.reason = arrangement_text(candidates[best]) + ": none of " + std::to_string(tried) +
                  " arrangements has " + in_time +
                  ", however few requests there are: the SLOs less --guard are too short for these devices";
    return std::move(plan);
  }
  plan.reason = promise(candidates[best]) + " of all models with " + in_time;
  if (apart < candidates.size() && apart != best) plan.reason += "; " + promise(candidates[apart]);
  return std::move(plan);
}

}  // namespace

std::vector<DeviceSet> ways_to_divide(std::span<const Device> devices, size_t most) {
  DeviceSet others;
  std::vector<const Device*> sets;
  std::set<int> cores;
  for (const auto& d : devices) {
    if (d.cores.empty()) {
      others.push_back(d);
    } else {
      sets.push_back(&d);
      cores.insert(d.cores.begin(), d.cores.end());
    }
  }
  std::stable_sort(sets.begin(), sets.end(),
                   [](const Device* a, const Device* b) { return a->cores.size() > b->cores.size(); });
  std::vector<DeviceSet> ways;
  std::set<std::vector<std::string>> seen;
  DeviceSet chosen;
  size_t steps = 0;
  // The least core that is not yet in a set goes into each of the sets that have it.
  const std::function<void(std::set<int>)> divide = [&](std::set<int> left) {
    if (ways.size() >= most || ++steps > 100000) return;
    if (left.empty()) {
      std::vector<std::string> kind;
      for (const auto& d : chosen) kind.push_back(d.target);
      std::sort(kind.begin(), kind.end());
      if (!seen.insert(kind).second) return;
      ways.push_back(chosen);
      ways.back().insert(ways.back().end(), others.begin(), others.end());
      return;
    }
    for (const auto* d : sets) {
      if (std::find(d->cores.begin(), d->cores.end(), *left.begin()) == d->cores.end()) continue;
      if (!std::all_of(d->cores.begin(), d->cores.end(), [&left](int c) { return left.contains(c); }))
        continue;
      auto rest = left;
      for (const int c : d->cores) rest.erase(c);
      chosen.push_back(*d);
      divide(std::move(rest));
      chosen.pop_back();
    }
  };
  divide(cores);
  if (ways.empty() && !others.empty()) ways.push_back(others);
  return ways;
}

Result<LocalPlan> plan_locally(Models models, const Times& times, std::span<const DeviceSet> ways,
                               const LocalServerOptions& options) {
  if (ways.empty()) return unsupported("this machine has no device that models can be served on");
  std::vector<Candidate> candidates;
  std::optional<Error> refused;
  const auto add = [&](const char* how, Result<LocalPlan> plan) -> Status {
    if (plan.ok()) {
      candidates.push_back({how, std::move(*plan)});
    } else if (plan.error().code() != Code::kInfeasible) {
      return std::move(plan).error();
    } else if (!refused) {
      refused = std::move(plan).error();
    }
    return {};
  };
  for (const auto& set : ways)  // else no device is a model's own
    if (set.size() >= models.size())
      HEDDLE_RETURN_IF_ERROR(add("apart", plan_on(models, times, set, false, options.deadline)));
  // The largest sets come first.
  if (candidates.empty())
    HEDDLE_RETURN_IF_ERROR(
        add("side by side", plan_on(models, times, ways.front(), models.size() > 1, options.deadline)));
  if (options.choice == LocalChoice::kRate) {
    if (candidates.empty()) return *std::move(refused);
    auto best = candidates.begin();
    for (auto it = best; it != candidates.end(); ++it)
      if (it->plan.plan.value > best->plan.plan.value * (1 + 1e-9)) best = it;
    return std::move(best->plan);
  }
  if (models.size() > 1)
    for (const auto& set : ways)
      HEDDLE_RETURN_IF_ERROR(add("shared", plan_shared(models, times, set, options.deadline)));
  if (candidates.empty()) return *std::move(refused);
  return best_by_goodput(std::move(candidates), options);
}

}  // namespace heddle
