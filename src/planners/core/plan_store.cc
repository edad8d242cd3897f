#include "plan_store.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "heddle/base/gap.h"
#include "heddle/base/units.h"

namespace heddle {
namespace {

bool has_limits(const Cluster& cluster) {
  for (int p = 0; p < cluster.num_memory_pools(); ++p) {
    if (cluster.memory_pool_bytes(p) > 0) return true;
  }
  return false;
}

// Whether all memory together holds the parameters: without that no time helps.
bool holds_params(const Problem& problem) {
  const Cluster& cluster = *problem.cluster;
  std::set<int> pools;
  for (const DeviceId d : problem.usable_devices()) pools.insert(cluster.memory_pool(d));
  double room = 0;  // bytes
  for (const int pool : pools) {
    if (cluster.memory_pool_bytes(pool) <= 0) return true;
    room += static_cast<double>(cluster.memory_pool_bytes(pool));
  }
  return room >= static_cast<double>(problem.graph->total_param_bytes());
}

}  // namespace

PlanStore::PlanStore(const Problem& problem, CancelToken closed)
    : problem_(problem),
      limited_(has_limits(*problem.cluster)),
      plans_(kPlanMeetsBound, std::move(closed)),
      evaluator_(problem),
      excess_(static_cast<size_t>(problem.cluster->num_memory_pools()), 0) {}

bool PlanStore::offer(const Assignment& assignment, const std::string& who) {
  return offer(std::vector<Lane>{{assignment, 1.0}}, who);
}

bool PlanStore::offer(const std::vector<Lane>& lanes, const std::string& who) {
  auto plan = build_plan(problem_, lanes);
  if (plan.ok()) return offer(std::move(*plan), who);
  const std::lock_guard lock(mutex_);
  last_error_ = plan.error().to_string();
  return false;
}

bool PlanStore::offer(Plan plan, const std::string& who) {
  const std::lock_guard lock(mutex_);
  ++offered_;
  const auto status = evaluator_.evaluate(plan, {.critical = false, .resources = limited_}, timeline_);
  if (!status.ok()) {
    last_error_ = status.error().to_string();
    return false;
  }
  for (size_t p = 0; limited_ && p < excess_.size(); ++p) {
    const int64_t limit = problem_.cluster->memory_pool_bytes(static_cast<int>(p));
    excess_[p] = limit > 0 ? std::max<int64_t>(0, timeline_.peak_memory_bytes[p] - limit) : 0;
  }
  if (std::any_of(excess_.begin(), excess_.end(), [](int64_t bytes) { return bytes > 0; })) {
    any_too_large_ = true;
    return false;
  }
  const bool one_lane = plan.lane_shares.size() == 1;
  const double value = objective_us(problem_, timeline_);
  if (!std::isfinite(value) || !plans_.offer(value, std::move(plan), who)) return false;
  if (one_lane) one_lane_ = plans_.best();
  return true;
}

void PlanStore::prove(const Bound& bound) { plans_.prove(bound.us, bound.proof); }

std::shared_ptr<const Plan> PlanStore::best_of_one_lane() const {
  const std::lock_guard lock(mutex_);
  return one_lane_;
}

Reserve PlanStore::excess() const {
  const std::lock_guard lock(mutex_);
  return excess_;
}

bool PlanStore::last_fits() const {
  const std::lock_guard lock(mutex_);
  return std::all_of(excess_.begin(), excess_.end(), [](int64_t bytes) { return bytes == 0; });
}

int PlanStore::offered() const {
  const std::lock_guard lock(mutex_);
  return offered_;
}

Error PlanStore::no_plan(bool late) const {
  if (!any_too_large_ && !last_error_.empty() && !limited_) {
    return infeasible("no feasible plan was found: " + last_error_ +
                      "; allow more devices or give the cluster links between them");
  }
  std::string limits;
  const Cluster& cluster = *problem_.cluster;
  for (const DeviceId d : problem_.usable_devices()) {
    const int64_t bytes = cluster.memory_pool_bytes(cluster.memory_pool(d));
    limits += (limits.empty() ? "" : ", ") + cluster.device(d).name + " has " +
              (bytes > 0 ? format_bytes(bytes) : "no limit");
    if (limits.size() > 300) {
      limits += ", ...";
      break;
    }
  }
  const bool time_helps = late && holds_params(problem_);
  return infeasible(std::string("no plan was found that fits the devices' memory") +
                    (time_helps ? " before the time limit ended" : "") + ": the model's parameters take " +
                    format_bytes(problem_.graph->total_param_bytes()) + " in total, tensors come on top; " +
                    limits + "; use " + (time_helps ? "more time (--time-limit), " : "") +
                    "more devices, devices with more memory or a smaller batch" +
                    (last_error_.empty() ? "" : " (" + last_error_ + ")"));
}

Result<PlannerOutput> PlanStore::output(StopReason stop, const Deadline& deadline) const {
  const std::lock_guard lock(mutex_);
  const auto best = plans_.best();
  if (best == nullptr) {
    if (deadline.cancelled()) return cancelled_error("planning was cancelled before there was a plan");
    return no_plan(deadline.expired() && offered_ == 0);
  }
  PlannerOutput out;
  out.plan = *best;
  out.stop = deadline.cancelled() ? StopReason::kCancelled : stop;
  out.detail = plans_.winner();
  out.counters["plans_timed"] = offered_;
  out.trajectory = plans_.trajectory();
  Bound bound = this->bound();
  const double value = plans_.value();
  // One further above the plan is a mistake, which run_planner() reports.
  if (bound.us > value && bound.us < value * (1 + kSolverTolerance)) bound.us = value;
  if (bound.us > 0) out.bound = std::move(bound);
  return out;
}

}  // namespace heddle
