#include "heddle/plan/evaluator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "evaluation.h"

namespace heddle {
namespace {

// Sanity limit on lanes; each lane is a replica of the whole model.
constexpr size_t kMostLanes = 1024;

}  // namespace

Evaluator::Impl::Impl(const Problem& problem)
    : problem_(problem),
      cluster_(*problem.cluster),
      num_ops_(problem.graph->num_ops()),
      num_tensors_(problem.graph->num_tensors()),
      num_devices_(problem.cluster->num_devices()),
      flat_(*problem.graph),
      times_(problem_),
      map_(*problem.cluster, problem.execution),
      cores_(core_groups(*problem.cluster)),
      closed_nodes_(problem.closed_nodes()),
      cold_(problem.objective == Objective::kColdLatency),
      has_given_times_(problem.execution.transfers == Transfers::kGiven),
      moves_(problem_, flat_) {}

bool Evaluator::Impl::fail(size_t step, std::string why) {
  status_ = invalid_input("plan step " + std::to_string(step) + ": " + std::move(why));
  return false;
}

Status Evaluator::Impl::run(const Plan& plan, const EvaluateOptions& options, Timeline& out) {
  plan_ = &plan;
  out_ = &out;
  waited_ = options.critical;
  status_ = {};
  HEDDLE_RETURN_IF_ERROR(start(plan));
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    bool ok = false;
    switch (plan.steps[i].kind) {
      case StepKind::kRun:
        ok = stage_ran_.empty() ? run_step(i) : run_stage_at(i);
        break;
      case StepKind::kTransfer:
        ok = transfer_step(i);
        break;
      case StepKind::kLoad:
        ok = load_step(i);
        break;
      default:
        fail(i, "unknown kind");
    }
    if (!ok) return status_;
  }
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    if (run_step_[s] < 0) {
      return invalid_input("plan: segment '" + plan.segments[s].name + "' has no run step");
    }
  }
  finish(options);
  return {};
}

Status Evaluator::Impl::start(const Plan& plan) {
  const size_t lanes = plan.lane_shares.size();
  const auto bad = [](std::string why) { return invalid_input("plan: " + std::move(why)); };
  double sum = 0;
  for (const double share : plan.lane_shares) {
    if (!(share > 0) || !std::isfinite(share)) return bad("a lane's share is not positive");
    sum += share;
  }
  if (lanes == 0 || std::abs(sum - 1) > 1e-9)
    return bad("the lanes' shares sum to " + std::to_string(sum) + ", expected 1");
  if (lanes > 1 && problem_.objective != Objective::kThroughput)
    return bad("only throughput plans have several lanes");
  if (lanes > 1 && moves_.is_used()) return bad("several lanes need transfer steps, here runs move tensors");
  if (lanes > kMostLanes) return bad("more than " + std::to_string(kMostLanes) + " lanes");
  // Check that each lane holds every op before allocating anything per lane.
  size_t ops = 0;
  for (const Segment& s : plan.segments) ops += s.ops.size();
  if (lanes > 1 && ops != lanes * num_ops_) {
    return bad("the segments hold " + std::to_string(ops) + " ops, expected every op once in each of " +
               std::to_string(lanes) + " lanes");
  }
  if (plan.steps.size() > INT32_MAX) return bad("too many steps");
  const size_t n = plan.steps.size();
  out_->start_us.resize(n);
  out_->finish_us.resize(n);
  out_->waited_for.assign(waited_ ? n : 0, StepId());
  out_->makespan_us = out_->period_us = 0;
  out_->resources.clear();
  out_->device_busy_us.assign(num_devices_, 0);
  out_->peak_memory_bytes.clear();
  clocks_.assign(lanes * map_.size(), {});
  produced_.assign(lanes * num_tensors_, {});
  op_segment_.assign(lanes * num_ops_, -1);
  next_transfer_.resize(n);
  run_step_.assign(plan.segments.size(), -1);
  segments_.resize(plan.segments.size());
  ops_.clear();
  if (cold_) place_residents();
  if (moves_.is_used()) moves_.restart();
  busy_.assign(map_.size(), 0);
  load_busy_.assign(map_.size(), 0);
  own_resources_.clear();
  stage_ran_.clear();
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    if (!start_segment(s)) return status_;
  }
  if (ops != lanes * num_ops_) {
    const size_t first =
        static_cast<size_t>(std::find(op_segment_.begin(), op_segment_.end(), -1) - op_segment_.begin());
    return bad("op '" + problem_.graph->ops()[first % num_ops_].name + "' is in no segment of lane " +
               std::to_string(first / num_ops_));
  }
  return {};
}

void Evaluator::Impl::place_residents() {
  const size_t params = problem_.graph->num_params();
  param_load_.assign(static_cast<size_t>(cluster_.num_memory_pools()) * params, kAbsent);
  for (size_t pool = 0; pool < problem_.resident.size(); ++pool) {
    for (const ParamId p : problem_.resident[pool]) param_load_[pool * params + p.index()] = kResident;
  }
}

const std::string& Evaluator::Impl::name_of(size_t step) const {
  return plan_->segments[plan_->steps[step].segment.index()].name;
}

bool Evaluator::Impl::start_segment(size_t s) {
  const Segment& segment = plan_->segments[s];
  const auto bad = [&](std::string why) {
    status_ = invalid_input("plan: segment '" + segment.name + "': " + std::move(why));
    return false;
  };
  if (segment.ops.empty()) return bad("it has no ops");
  if (segment.lane < 0 || static_cast<size_t>(segment.lane) >= plan_->lane_shares.size())
    return bad("there is no such lane");
  if (!segment.device.valid() || segment.device.index() >= num_devices_)
    return bad("there is no such device");
  OpId last;
  for (const OpId op : segment.ops) {
    if (!op.valid() || op.index() >= num_ops_) return bad("there is no op " + std::to_string(op.value));
    if (!(last < op)) return bad("its ops are not ascending");
    last = op;
    int32_t& place = op_segment(static_cast<size_t>(segment.lane), op.index());
    if (place >= 0)
      return bad("op '" + problem_.graph->op(op).name + "' is in another segment of this lane too");
    place = static_cast<int32_t>(s);
  }
  if (segment.stage >= 0) {
    if (static_cast<size_t>(segment.stage) >= plan_->segments.size())
      return bad("stage " + std::to_string(segment.stage) + " is not below the number of segments");
    stage_ran_.resize(plan_->segments.size(), 0);
  }
  if (segment.host_access && (!cold_ || !needs_load(cluster_, segment.device)))
    return bad("direct host access belongs to devices outside host memory and the cold-latency objective");
  if (segment.host_access && segment.stage >= 0) return bad("a segment with direct host access runs alone");
  if (segment.drops_params && !(cold_ && problem_.execution.parameter_drops))
    return bad("it drops its parameters, which the problem does not allow");
  segments_[s] = {static_cast<uint32_t>(ops_.size()),
                  static_cast<uint32_t>(segment.ops.size()),
                  static_cast<uint32_t>(segment.lane),
                  segment.device,
                  segment.stage,
                  segment.host_access};
  ops_.insert(ops_.end(), segment.ops.begin(), segment.ops.end());
  return true;
}

int32_t Evaluator::Impl::find_transfer(const ProducedTensor& tensor, DeviceId to) const {
  int32_t j = tensor.transfers;
  while (j >= 0 && plan_->steps[static_cast<size_t>(j)].to != to) j = next_transfer_[static_cast<size_t>(j)];
  return j;
}

bool Evaluator::Impl::fail_input(size_t step, size_t tensor, int32_t segment) {
  const std::string what = "'" + plan_->segments[static_cast<size_t>(segment)].name + "' reads tensor '" +
                           problem_.graph->tensors()[tensor].name + "', which ";
  const auto lane = static_cast<size_t>(plan_->segments[static_cast<size_t>(segment)].lane);
  if (produced(lane, tensor).step < 0)
    return fail(step, what + "no earlier step makes: the order is not topological");
  return fail(step, what + "no earlier transfer brings to its device");
}

bool Evaluator::Impl::wait_for_inputs(size_t i, const SegmentData& segment, Ready& ready) {
  const auto lane = size_t{segment.lane};
  const auto device = segment.device.value;
  const int32_t self = plan_->steps[i].segment.value;
  for (const OpId op : ops_of(segment)) {
    for (const uint32_t t : flat_.inputs(op.index())) {
      const ProducedTensor& m = produced(lane, t);
      if (m.step < 0) {
        // Produced within this segment, or not yet produced.
        if (op_segment(lane, static_cast<size_t>(flat_.producer(t))) == self) continue;
        return fail_input(i, t, self);
      }
      if (m.device == device || comes_free(t, DeviceId(m.device), segment.device)) {
        ready.wait_for(m.finish, m.step);
        continue;
      }
      const int32_t j = find_transfer(m, segment.device);
      if (j < 0) return fail_input(i, t, self);
      ready.wait_for(out_->finish_us[static_cast<size_t>(j)], j);
    }
  }
  return true;
}

bool Evaluator::Impl::wait_for_params(size_t i, const SegmentData& segment, Ready& ready) {
  const auto pool = static_cast<size_t>(cluster_.memory_pool(segment.device));
  for (const OpId op : ops_of(segment)) {
    for (const uint32_t p : flat_.params(op.index())) {
      const int32_t j = param_load_[pool * problem_.graph->num_params() + p];
      if (j == kResident) continue;
      if (j == kAbsent) {
        return fail(i, "'" + name_of(i) + "' needs parameter '" + problem_.graph->params()[p].name +
                           "', which no earlier load brings to its device");
      }
      ready.wait_for(out_->finish_us[static_cast<size_t>(j)], j);
    }
  }
  return true;
}

bool Evaluator::Impl::begin_run(size_t i) {
  const Step& step = plan_->steps[i];
  if (!step.segment.valid() || step.segment.index() >= plan_->segments.size())
    return fail(i, "there is no such segment");
  const SegmentData& segment = segments_[step.segment.index()];
  if (run_step_[step.segment.index()] >= 0) return fail(i, "'" + name_of(i) + "' runs twice");
  if (step.from != segment.device || step.to != segment.device)
    return fail(i, "a run is from and to its segment's device");
  run_step_[step.segment.index()] = static_cast<int32_t>(i);
  return true;
}

bool Evaluator::Impl::wait_for_run(size_t i, const SegmentData& segment, Ready& ready) {
  if (!wait_for_inputs(i, segment, ready)) return false;
  if (!cold_ || segment.host_access || !needs_load(cluster_, segment.device)) return true;
  return wait_for_params(i, segment, ready);
}

void Evaluator::Impl::wait_for_device(const SegmentData& segment, Ready& ready) {
  if (is_unlimited(segment.device)) return;
  const ResourceClock& own = clock(segment.lane, segment.device.index());
  ready.wait_for(own.free_at, own.step);
  for (const DeviceId other : cluster_.overlaps(segment.device)) {
    const ResourceClock& c = clock(segment.lane, other.index());
    ready.wait_for(c.free_at, c.step);
  }
  if (!segment.host_access) return;
  for (const uint32_t r : map_.host_access_resources(segment.device)) {
    const ResourceClock& c = clock(segment.lane, r);
    ready.wait_for(c.free_at, c.step);
  }
}

void Evaluator::Impl::hold_host_access(size_t i, const SegmentData& segment, double finish) {
  for (const uint32_t r : map_.host_access_resources(segment.device)) {
    clock(segment.lane, r) = {finish, static_cast<int32_t>(i)};
    busy_[r] += finish - out_->start_us[i];
  }
}

void Evaluator::Impl::end_run(size_t i, const SegmentData& segment, const Ready& ready, double finish) {
  out_->start_us[i] = ready.at;
  out_->finish_us[i] = finish;
  if (waited_) out_->waited_for[i] = StepId(ready.step);
  for (const OpId op : ops_of(segment)) {
    for (const uint32_t t : flat_.outputs(op.index())) {
      produced(segment.lane, t) = {finish, static_cast<int32_t>(i), segment.device.value,
                                   plan_->steps[i].segment.value, -1};
    }
  }
}

bool Evaluator::Impl::fail_time(size_t i, const SegmentData& segment) {
  return fail(i, "'" + name_of(i) + "' cannot run on device '" + cluster_.device(segment.device).name + "'" +
                     (segment.host_access ? " with direct host access" : ""));
}

double Evaluator::Impl::run_us(size_t i, const SegmentData& segment) {
  if (segment.host_access) return times_.host_access_us(ops_of(segment), segment.device);
  const double us = times_.us(ops_of(segment), segment.device);
  if (!moves_.is_used()) return us;
  return us + moves_.us(
                  ops_of(segment), plan_->steps[i].segment.value, segment.device,
                  [&](size_t op) { return op_segment_[op]; },
                  [&](int32_t s) { return segments_[static_cast<size_t>(s)].device; });
}

bool Evaluator::Impl::run_step(size_t i) {
  if (!begin_run(i)) return false;
  const SegmentData segment = segments_[plan_->steps[i].segment.index()];
  Ready ready;
  if (!wait_for_run(i, segment, ready)) return false;
  wait_for_device(segment, ready);
  const double us = run_us(i, segment);
  if (!std::isfinite(us)) return fail_time(i, segment);
  const double finish = ready.at + us;
  clock(segment.lane, segment.device.index()) = {finish, static_cast<int32_t>(i)};
  busy_[segment.device.index()] += plan_->lane_shares[segment.lane] * us;
  out_->makespan_us = std::max(out_->makespan_us, finish);
  end_run(i, segment, ready, finish);
  if (segment.host_access) hold_host_access(i, segment, finish);
  return true;
}

int32_t Evaluator::Impl::stage_of_step(size_t i) const {
  const Step& step = plan_->steps[i];
  const bool is_run =
      step.kind == StepKind::kRun && step.segment.valid() && step.segment.index() < plan_->segments.size();
  return is_run ? segments_[step.segment.index()].stage : -1;
}

// One past the last run step that follows i and belongs to i's stage.
size_t Evaluator::Impl::stage_end(size_t i) const {
  const int32_t stage = stage_of_step(i);
  size_t end = i + 1;
  while (stage >= 0 && end < plan_->steps.size() && stage_of_step(end) == stage) ++end;
  return end;
}

// Times run step i with the rest of its stage; sets i to the last of them.
bool Evaluator::Impl::run_stage_at(size_t& i) {
  const size_t first = i, end = stage_end(i);
  const int32_t stage = stage_of_step(i);
  if (stage >= 0 && std::exchange(stage_ran_[static_cast<size_t>(stage)], uint8_t{1}) != 0) {
    return fail(i, "the runs of stage " + std::to_string(stage) + " do not stand next to each other");
  }
  i = end - 1;
  return end - first == 1 ? run_step(first) : run_stage(first, end);
}

// A stage: its segments start together once the device is free and all inputs are there; they last t(S).
bool Evaluator::Impl::run_stage(size_t i, size_t end) {
  const int width = problem_.execution.stage_width;
  if (end - i > static_cast<size_t>(width)) {
    return fail(i, "its stage runs " + std::to_string(end - i) + " segments at once, the problem allows " +
                       std::to_string(width));
  }
  const SegmentData first = segments_[plan_->steps[i].segment.index()];
  Ready ready;
  items_.clear();
  for (size_t j = i; j < end; ++j) {
    if (!begin_run(j)) return false;
    const SegmentData segment = segments_[plan_->steps[j].segment.index()];
    if (segment.device != first.device || segment.lane != first.lane)
      return fail(j, "'" + name_of(j) + "' is on another device or lane than the rest of its stage");
    // No member's outputs are marked as made yet, so a member that reads another member's tensor fails here.
    if (!wait_for_run(j, segment, ready)) return false;
    items_.push_back(times_.item(ops_of(segment), segment.device));
    if (!std::isfinite(items_.back().us)) return fail_time(j, segment);
  }
  wait_for_device(first, ready);
  const double us = times_.stage_us(items_, first.device);
  const double finish = ready.at + us;
  clock(first.lane, first.device.index()) = {finish, static_cast<int32_t>(i)};
  busy_[first.device.index()] += plan_->lane_shares[first.lane] * us;
  out_->makespan_us = std::max(out_->makespan_us, finish);
  for (size_t j = i; j < end; ++j) end_run(j, segments_[plan_->steps[j].segment.index()], ready, finish);
  return true;
}

double Evaluator::Impl::load_of(const CoreGroup& group) const {
  double load = 0;
  for (const DeviceId d : group.devices) load += busy_[d.index()];
  return load;
}

void Evaluator::Impl::finish(const EvaluateOptions& options) {
  for (size_t d = 0; d < num_devices_; ++d) out_->device_busy_us[d] = busy_[d];
  // Loads happen once, not once per request, so they do not count in the steady state.
  for (size_t r = 0; r < busy_.size(); ++r) note_period(busy_[r] - load_busy_[r]);
  for (const CoreGroup& group : cores_) note_period(load_of(group));
  if (!options.resources) return;
  report_resources();
  out_->peak_memory_bytes = peak_memory(problem_, *plan_, *out_);
}

void Evaluator::Impl::report_resources() {
  for (size_t d = 0; d < num_devices_; ++d) {
    out_->resources.push_back({map_.name(static_cast<uint32_t>(d)), busy_[d]});
  }
  for (const CoreGroup& group : cores_) out_->resources.push_back({group.name, load_of(group)});
  for (size_t r = num_devices_; r < busy_.size(); ++r) {
    if (busy_[r] > 0) out_->resources.push_back({map_.name(static_cast<uint32_t>(r)), busy_[r]});
  }
}

Evaluator::Evaluator(const Problem& problem) : impl_(std::make_unique<Impl>(problem)) {}
Evaluator::~Evaluator() = default;

Result<Timeline> Evaluator::evaluate(const Plan& plan, const EvaluateOptions& options) {
  Timeline timeline;
  HEDDLE_RETURN_IF_ERROR(impl_->run(plan, options, timeline));
  return timeline;
}

Status Evaluator::evaluate(const Plan& plan, const EvaluateOptions& options, Timeline& timeline) {
  return impl_->run(plan, options, timeline);
}

Result<Timeline> evaluate(const Problem& problem, const Plan& plan, const EvaluateOptions& options) {
  return Evaluator(problem).evaluate(plan, options);
}

double objective_us(const Problem& problem, const Timeline& timeline) {
  return problem.objective == Objective::kThroughput ? timeline.period_us : timeline.makespan_us;
}

Result<double> evaluate_objective(const Problem& problem, const Plan& plan) {
  HEDDLE_ASSIGN_OR_RETURN(const Timeline timeline,
                          evaluate(problem, plan, {.critical = false, .resources = false}));
  return objective_us(problem, timeline);
}

std::vector<StepId> critical_path(const Timeline& timeline) {
  std::vector<StepId> path;
  if (timeline.finish_us.empty() || timeline.waited_for.size() != timeline.finish_us.size()) return path;
  const auto last = std::max_element(timeline.finish_us.begin(), timeline.finish_us.end());
  StepId at(static_cast<size_t>(last - timeline.finish_us.begin()));
  // Each step waits for an earlier one, so this ends. The size check guards against timelines not computed
  // here.
  while (at.valid() && at.index() < timeline.waited_for.size() && path.size() < timeline.finish_us.size()) {
    path.push_back(at);
    at = timeline.waited_for[at.index()];
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace heddle
