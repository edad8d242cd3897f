#include "heddle/session/adaptive.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace heddle {
namespace {

constexpr size_t kMostCoreSets = 6;

// A set of cores of one host.
struct CoreSet {
  HostId host;
  std::vector<int> cores;  // ascending
  bool operator<(const CoreSet& other) const {
    if (cores.size() != other.cores.size()) return cores.size() > other.cores.size();
    return std::tie(host, cores) < std::tie(other.host, other.cores);
  }
};

// The sets that are devices, the larger ones first.
std::set<CoreSet> core_sets(const Problem& problem) {
  std::set<CoreSet> sets;
  for (const DeviceId id : problem.usable_devices()) {
    const Device& device = problem.cluster->device(id);
    if (!device.cores.empty()) sets.insert({device.host, device.cores});
  }
  return sets;
}

// The usable devices without those that have other cores of the host.
std::vector<DeviceId> devices_within(const Problem& problem, const CoreSet& set) {
  std::vector<DeviceId> within;
  for (const DeviceId id : problem.usable_devices()) {
    const Device& device = problem.cluster->device(id);
    if (device.host != set.host || std::ranges::includes(set.cores, device.cores)) within.push_back(id);
  }
  return within;
}

bool same_decisions(const Plan& a, const Plan& b) {
  return std::ranges::equal(a.segments, b.segments, [](const Segment& x, const Segment& y) {
    return x.device == y.device && x.ops == y.ops;
  });
}

}  // namespace

Result<std::vector<PreparedPlan>> plans_for_free_cores(Session& session, const std::string& planner,
                                                       const SearchSettings& search, const Control& control) {
  const auto all = core_sets(session.problem);
  std::vector<CoreSet> sets(all.begin(), all.end());
  if (sets.empty()) return unsupported("no device of the plan is a set of cores");
  if (sets.size() > kMostCoreSets + 1) sets.resize(kMostCoreSets + 1);
  SearchSettings each = search;
  each.time_limit_s /= static_cast<double>(sets.size() + 1);
  std::vector<PreparedPlan> plans;
  HEDDLE_ASSIGN_OR_RETURN(auto usual, make_plan(session, planner, each, control));
  plans.push_back({"all cores", std::move(usual)});
  const auto devices = session.problem.devices;
  for (const CoreSet& set : sets) {
    session.problem.devices = devices_within(session.problem, set);
    auto within = make_plan(session, planner, each, control);
    session.problem.devices = devices;
    if (!within.ok() && within.error().code() == Code::kInfeasible) continue;
    if (!within.ok()) return std::move(within).error();
    const bool known = std::ranges::any_of(
        plans, [&](const PreparedPlan& p) { return same_decisions(p.result.plan, within->plan); });
    const char* word = set.cores.size() == 1 ? "core" : "cores";
    if (!known) plans.push_back({fmt::format("{} {}", word, fmt::join(set.cores, ", ")), std::move(*within)});
  }
  return plans;
}

Result<std::unique_ptr<AdaptivePlan>> AdaptivePlan::create(const Session& session,
                                                           const std::vector<PreparedPlan>& plans,
                                                           const Control& control) {
  std::vector<std::unique_ptr<CompiledPlan>> compiled;
  for (const PreparedPlan& plan : plans) {
    HEDDLE_ASSIGN_OR_RETURN(compiled.emplace_back(), CompiledPlan::create(session.problem, plan.result.plan,
                                                                          session.loaded.model, control));
  }
  return std::unique_ptr<AdaptivePlan>(new AdaptivePlan(std::move(compiled)));
}

Result<AdaptivePlan::Answer> AdaptivePlan::run(std::span<const TensorView> inputs, const Control& control) {
  const std::lock_guard lock(mutex_);
  Answer answer{switch_.next(), {}};
  HEDDLE_ASSIGN_OR_RETURN(answer.result, plans_[answer.plan]->run(inputs, control));
  switch_.took(answer.result.record.measured_us);
  return answer;
}

uint64_t AdaptivePlan::switches() const {
  const std::lock_guard lock(mutex_);
  return switch_.switches();
}

namespace {

// The plans whose outputs are the unsplit model's; status 1 is for the others.
Result<bool> outputs_are_right(const Session& session, const std::vector<PreparedPlan>& plans,
                               RunOptions options) {
  options.repeats = 1;
  options.warmups = 0;
  for (const PreparedPlan& plan : plans) {
    HEDDLE_ASSIGN_OR_RETURN(const RunRecord run,
                            run_plan(session.problem, plan.result.plan, session.loaded.model, options));
    if (run.wrong()) return false;
  }
  return true;
}

}  // namespace

Result<AdaptiveRun> run_adaptive(const Session& session, const std::vector<PreparedPlan>& plans,
                                 const RunOptions& options, const Control& control) {
  bool right = true;
  if (options.verify) {
    HEDDLE_ASSIGN_OR_RETURN(right, outputs_are_right(session, plans, options));
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto adaptive, AdaptivePlan::create(session, plans, control));
  HEDDLE_ASSIGN_OR_RETURN(const auto inputs, make_inputs(*session.problem.graph, options.inputs));
  std::vector<TensorView> views;
  for (const TensorValue& input : inputs) views.push_back(input.view());
  AdaptiveRun run;
  run.verified = options.verify;
  run.right = right;
  run.us_of.resize(plans.size());
  for (int i = 0; i < options.repeats; ++i) {
    // Ctrl-C: the requests so far are the answer.
    if (control.cancel.cancelled() && !run.us.empty()) break;
    control.report("running", i, options.repeats);
    HEDDLE_ASSIGN_OR_RETURN(const auto answer, adaptive->run(views, control));
    run.us.push_back(answer.result.record.measured_us);
    run.us_of[answer.plan].push_back(answer.result.record.measured_us);
  }
  run.switches = adaptive->switches();
  return run;
}

}  // namespace heddle
