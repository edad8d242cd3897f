#include "candidates.h"

#include <algorithm>
#include <cmath>

#include "heddle/base/units.h"

namespace heddle {
namespace {

bool has_limits(const Cluster& cluster) {
  for (int p = 0; p < cluster.num_memory_pools(); ++p) {
    if (cluster.memory_pool_bytes(p) > 0) return true;
  }
  return false;
}

}  // namespace

Candidates::Candidates(const Problem& problem)
    : problem_(problem),
      limited_(has_limits(*problem.cluster)),
      evaluator_(problem),
      excess_(static_cast<size_t>(problem.cluster->num_memory_pools()), 0) {}

bool Candidates::last_fits() const {
  return std::all_of(excess_.begin(), excess_.end(), [](int64_t bytes) { return bytes == 0; });
}

bool Candidates::offer(const Assignment& assignment, const std::string& who) {
  return offer(std::vector<Lane>{{assignment, 1.0}}, who);
}

bool Candidates::offer(const std::vector<Lane>& lanes, const std::string& who) {
  auto plan = build_plan(problem_, lanes);
  if (!plan.ok()) {
    last_error_ = plan.error().to_string();
    return false;
  }
  return offer(std::move(*plan), who);
}

bool Candidates::offer(Plan plan, const std::string& who) {
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
  if (!last_fits()) {
    any_too_large_ = true;
    return false;
  }
  const double value = objective_us(problem_, timeline_);
  if (!std::isfinite(value) || (plan_ && value >= value_us_)) return false;
  plan_ = std::move(plan);
  value_us_ = value;
  winner_ = who;
  note();
  return true;
}

void Candidates::note() {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  trajectory_.push_back({seconds, value_us_, bound_us_});
}

void Candidates::note_bound(double bound_us) {
  if (bound_us <= bound_us_) return;
  bound_us_ = bound_us;
  note();
}

Error Candidates::no_plan() const {
  if (!any_too_large_ && !last_error_.empty() && !limited_) {
    return Error(Code::kInfeasible, "no feasible plan was found: " + last_error_ +
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
  return Error(Code::kInfeasible,
               "no plan was found that fits the devices' memory: the model's parameters take " +
                   format_bytes(problem_.graph->total_param_bytes()) + " in total, tensors come on top; " +
                   limits + "; use more devices, devices with more memory or a smaller batch" +
                   (last_error_.empty() ? "" : " (" + last_error_ + ")"));
}

Result<PlannerOutput> Candidates::output(StopReason stop, const Deadline& deadline) {
  if (!plan_) {
    if (deadline.cancelled())
      return Error(Code::kCancelled, "planning was cancelled before there was a plan");
    return no_plan();
  }
  PlannerOutput out;
  out.plan = std::move(*plan_);
  plan_.reset();
  out.stop = deadline.cancelled() ? StopReason::kCancelled : stop;
  out.detail = winner_;
  out.counters["plans_timed"] = offered_;
  out.trajectory = std::move(trajectory_);
  return out;
}

}  // namespace heddle
