#include "heddle/plan/evaluator.h"

#include <algorithm>
#include <cmath>

#include "evaluation.h"

namespace heddle {
namespace {

// A lane is a replica of the whole model; beyond this a plan file is not meant seriously.
constexpr size_t kMostLanes = 1024;

}  // namespace

Evaluator::Impl::Impl(const Problem& problem)
    : problem_(problem),
      cluster_(*problem.cluster),
      num_ops_(problem.graph->num_ops()),
      num_tensors_(problem.graph->num_tensors()),
      num_devices_(problem.cluster->num_devices()),
      flat_(*problem.graph),
      times_(problem),
      map_(*problem.cluster, problem.execution),
      cores_(core_groups(*problem.cluster)),
      cold_(problem.objective == Objective::kColdLatency) {}

bool Evaluator::Impl::fail(size_t step, std::string why) {
  status_ = Error(Code::kInvalidInput, "plan step " + std::to_string(step) + ": " + std::move(why));
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
        ok = run_step(i);
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
      return Error(Code::kInvalidInput, "plan: segment '" + plan.segments[s].name + "' has no run step");
    }
  }
  finish(options);
  return {};
}

Status Evaluator::Impl::start(const Plan& plan) {
  const size_t lanes = plan.lane_shares.size();
  const auto bad = [](std::string why) { return Error(Code::kInvalidInput, "plan: " + std::move(why)); };
  double sum = 0;
  for (const double share : plan.lane_shares) {
    if (!(share > 0) || !std::isfinite(share)) return bad("a lane's share is not positive");
    sum += share;
  }
  if (lanes == 0 || std::abs(sum - 1) > 1e-9)
    return bad("the lanes' shares sum to " + std::to_string(sum) + ", expected 1");
  if (lanes > 1 && problem_.objective != Objective::kThroughput)
    return bad("only throughput plans have several lanes");
  if (lanes > kMostLanes) return bad("more than " + std::to_string(kMostLanes) + " lanes");
  // Each lane holds every op; that is counted before anything is allocated for the lanes.
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
  made_.assign(lanes * num_tensors_, {});
  op_segment_.assign(lanes * num_ops_, -1);
  next_transfer_.resize(n);
  run_step_.assign(plan.segments.size(), -1);
  briefs_.resize(plan.segments.size());
  ops_.clear();
  if (cold_)
    param_load_.assign(static_cast<size_t>(cluster_.num_memory_pools()) * problem_.graph->num_params(), -1);
  busy_.assign(map_.size(), 0);
  load_busy_.assign(map_.size(), 0);
  own_ways_.clear();
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

const std::string& Evaluator::Impl::name_of(size_t step) const {
  return plan_->segments[plan_->steps[step].segment.index()].name;
}

bool Evaluator::Impl::start_segment(size_t s) {
  const Segment& segment = plan_->segments[s];
  const auto bad = [&](std::string why) {
    status_ = Error(Code::kInvalidInput, "plan: segment '" + segment.name + "': " + std::move(why));
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
  briefs_[s] = {static_cast<uint32_t>(ops_.size()), static_cast<uint32_t>(segment.ops.size()),
                static_cast<uint32_t>(segment.lane), segment.device};
  ops_.insert(ops_.end(), segment.ops.begin(), segment.ops.end());
  return true;
}

int32_t Evaluator::Impl::find_transfer(const Made& made, DeviceId to) const {
  int32_t j = made.transfers;
  while (j >= 0 && plan_->steps[static_cast<size_t>(j)].to != to) j = next_transfer_[static_cast<size_t>(j)];
  return j;
}

bool Evaluator::Impl::fail_input(size_t step, size_t tensor, int32_t segment) {
  const std::string what = "'" + plan_->segments[static_cast<size_t>(segment)].name + "' reads tensor '" +
                           problem_.graph->tensors()[tensor].name + "', which ";
  const auto lane = static_cast<size_t>(plan_->segments[static_cast<size_t>(segment)].lane);
  if (made(lane, tensor).step < 0)
    return fail(step, what + "no earlier step makes: the order is not topological");
  return fail(step, what + "no earlier transfer brings to its device");
}

bool Evaluator::Impl::wait_for_inputs(size_t i, const Brief& segment, Ready& ready) {
  const auto lane = size_t{segment.lane};
  const auto device = segment.device.value;
  const int32_t self = plan_->steps[i].segment.value;
  for (const OpId op : ops_of(segment)) {
    for (const uint32_t t : flat_.inputs(op.index())) {
      const Made& m = made(lane, t);
      if (m.step < 0) {
        // Made within this segment, or not yet.
        if (op_segment(lane, static_cast<size_t>(flat_.producer(t))) == self) continue;
        return fail_input(i, t, self);
      }
      if (m.device == device || map_.way(DeviceId(m.device), segment.device).passage == Passage::kFree) {
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

bool Evaluator::Impl::wait_for_params(size_t i, const Brief& segment, Ready& ready) {
  const auto pool = static_cast<size_t>(cluster_.memory_pool(segment.device));
  for (const OpId op : ops_of(segment)) {
    for (const uint32_t p : flat_.params(op.index())) {
      const int32_t j = param_load_[pool * problem_.graph->num_params() + p];
      if (j < 0) {
        return fail(i, "'" + name_of(i) + "' needs parameter '" + problem_.graph->params()[p].name +
                           "', which no earlier load brings to its device");
      }
      ready.wait_for(out_->finish_us[static_cast<size_t>(j)], j);
    }
  }
  return true;
}

bool Evaluator::Impl::run_step(size_t i) {
  const Step& step = plan_->steps[i];
  if (!step.segment.valid() || step.segment.index() >= plan_->segments.size())
    return fail(i, "there is no such segment");
  const Brief segment = briefs_[step.segment.index()];
  if (run_step_[step.segment.index()] >= 0) return fail(i, "'" + name_of(i) + "' runs twice");
  if (step.from != segment.device || step.to != segment.device)
    return fail(i, "a run is from and to its segment's device");
  run_step_[step.segment.index()] = static_cast<int32_t>(i);

  Ready ready;
  if (!wait_for_inputs(i, segment, ready)) return false;
  if (cold_ && needs_load(cluster_, segment.device) && !wait_for_params(i, segment, ready)) return false;
  const auto lane = size_t{segment.lane};
  Clock& own = clock(lane, segment.device.index());
  ready.wait_for(own.free_at, own.step);
  for (const DeviceId other : cluster_.overlaps(segment.device)) {
    const Clock& c = clock(lane, other.index());
    ready.wait_for(c.free_at, c.step);
  }
  const double us = times_.us(ops_of(segment), segment.device);
  if (!std::isfinite(us)) {
    return fail(i,
                "'" + name_of(i) + "' cannot run on device '" + cluster_.device(segment.device).name + "'");
  }
  const double finish = ready.at + us;
  own = {finish, static_cast<int32_t>(i)};
  busy_[segment.device.index()] += plan_->lane_shares[lane] * us;
  out_->start_us[i] = ready.at;
  out_->finish_us[i] = finish;
  out_->makespan_us = std::max(out_->makespan_us, finish);
  if (waited_) out_->waited_for[i] = StepId(ready.step);
  for (const OpId op : ops_of(segment)) {
    for (const uint32_t t : flat_.outputs(op.index())) {
      made(lane, t) = {finish, static_cast<int32_t>(i), segment.device.value, step.segment.value, -1};
    }
  }
  return true;
}

std::optional<Way> Evaluator::Impl::way_of(size_t i, const Way& cluster_way, NodeId from,
                                           DeviceId from_device) {
  const Step& step = plan_->steps[i];
  if (step.route < 0) {
    if (step.route == -1 && cluster_way.passage == Passage::kRoute) return cluster_way;
    fail(i, step.route == -1 ? "there is no route to device '" + cluster_.device(step.to).name + "'"
                             : "there is no such route");
    return std::nullopt;
  }
  if (static_cast<size_t>(step.route) >= plan_->routes.size()) {
    fail(i, "there is no route " + std::to_string(step.route));
    return std::nullopt;
  }
  const auto& hops = plan_->routes[static_cast<size_t>(step.route)];
  auto route = make_route(cluster_, hops, from, cluster_.device_node(step.to));
  if (!route.ok()) {
    fail(i, route.error().message());
    return std::nullopt;
  }
  auto own =
      std::make_unique<OwnWay>(OwnWay{std::move(*route), map_.resources_of(hops, from_device, step.to)});
  Way way{Passage::kRoute, &own->route, own->resources};
  way.take_rates();
  own_ways_.push_back(std::move(own));
  return way;
}

void Evaluator::Impl::occupy(size_t i, size_t lane, const Way& way, double us, Ready ready) {
  const size_t base = lane * map_.size();
  for (const uint32_t r : way.resources) ready.wait_for(clocks_[base + r].free_at, clocks_[base + r].step);
  const double finish = ready.at + us;
  for (const uint32_t r : way.resources) {
    clocks_[base + r] = {finish, static_cast<int32_t>(i)};
    busy_[r] += plan_->lane_shares[lane] * us;
  }
  out_->start_us[i] = ready.at;
  out_->finish_us[i] = finish;
  out_->makespan_us = std::max(out_->makespan_us, finish);
  if (waited_) out_->waited_for[i] = StepId(ready.step);
}

bool Evaluator::Impl::transfer_step(size_t i) {
  const Step& step = plan_->steps[i];
  if (!step.segment.valid() || step.segment.index() >= plan_->segments.size())
    return fail(i, "there is no such segment");
  if (!step.tensor.valid() || step.tensor.index() >= num_tensors_) return fail(i, "there is no such tensor");
  if (!step.to.valid() || step.to.index() >= num_devices_) return fail(i, "there is no such device");
  const Brief segment = briefs_[step.segment.index()];
  const auto lane = size_t{segment.lane};
  Made& m = made(lane, step.tensor.index());
  if (m.step < 0 || m.segment != step.segment.value) {
    return fail(
        i, "'" + name_of(i) + "' has not made tensor '" + problem_.graph->tensor(step.tensor).name + "' yet");
  }
  if (step.from != segment.device) return fail(i, "it does not start at its producer's device");
  const Way& cluster_way = map_.way(step.from, step.to);
  if (cluster_way.passage == Passage::kFree) return fail(i, "between these devices tensors need no transfer");
  if (find_transfer(m, step.to) >= 0) {
    return fail(i, "tensor '" + problem_.graph->tensor(step.tensor).name + "' goes to this device twice");
  }
  const double made_at = m.finish;
  const Way* way = &cluster_way;
  std::optional<Way> own;
  if (step.route != -1 || cluster_way.passage == Passage::kNone) {
    own = way_of(i, cluster_way, cluster_.device_node(step.from), step.from);
    if (!own) return false;
    way = &*own;
  }
  occupy(i, lane, *way, way->time_us(flat_.bytes(step.tensor.index())), {made_at, m.step});
  next_transfer_[i] = m.transfers;
  m.transfers = static_cast<int32_t>(i);
  return true;
}

bool Evaluator::Impl::load_step(size_t i) {
  const Step& step = plan_->steps[i];
  if (!cold_) return fail(i, "loads belong to the cold-latency objective only");
  if (!step.segment.valid() || step.segment.index() >= plan_->segments.size())
    return fail(i, "there is no such segment");
  const Brief segment = briefs_[step.segment.index()];
  if (step.to != segment.device) return fail(i, "a load goes to its segment's device");
  if (!needs_load(cluster_, step.to)) return fail(i, "this device lives in host memory and needs no loads");
  const auto pool = static_cast<size_t>(cluster_.memory_pool(step.to));
  int64_t bytes = 0;
  for (const OpId op : ops_of(segment)) {
    for (const uint32_t p : flat_.params(op.index())) {
      int32_t& by = param_load_[pool * problem_.graph->num_params() + p];
      if (by >= 0) continue;
      by = static_cast<int32_t>(i);
      bytes = add_bytes(bytes, problem_.graph->params()[p].bytes);
    }
  }
  if (bytes == 0) return fail(i, "every parameter of '" + name_of(i) + "' is there already");
  const auto way =
      way_of(i, map_.load_way(step.to), cluster_.host_node(cluster_.device(step.to).host), DeviceId());
  if (!way) return false;
  const double us = way->time_us(bytes);
  occupy(i, segment.lane, *way, us, {});
  for (const uint32_t r : way->resources) load_busy_[r] += us;
  return true;
}

void Evaluator::Impl::finish(const EvaluateOptions& options) {
  for (size_t d = 0; d < num_devices_; ++d) out_->device_busy_us[d] = busy_[d];
  // Loads happen once, not once per request: they are no part of the steady state.
  for (size_t r = 0; r < busy_.size(); ++r) note_period(busy_[r] - load_busy_[r]);
  for (const CoreGroup& group : cores_) {
    double load = 0;
    for (const DeviceId d : group.devices) load += busy_[d.index()];
    note_period(load);
  }
  if (!options.resources) return;
  report_resources();
  out_->peak_memory_bytes = peak_memory(problem_, *plan_, *out_);
}

void Evaluator::Impl::report_resources() {
  for (size_t d = 0; d < num_devices_; ++d) {
    out_->resources.push_back({map_.name(static_cast<uint32_t>(d)), busy_[d]});
  }
  for (const CoreGroup& group : cores_) {
    double load = 0;
    for (const DeviceId d : group.devices) load += busy_[d.index()];
    out_->resources.push_back({group.name, load});
  }
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

std::vector<StepId> critical_path(const Timeline& timeline) {
  std::vector<StepId> path;
  if (timeline.finish_us.empty() || timeline.waited_for.size() != timeline.finish_us.size()) return path;
  const auto last = std::max_element(timeline.finish_us.begin(), timeline.finish_us.end());
  StepId at(static_cast<size_t>(last - timeline.finish_us.begin()));
  // Each step waits for an earlier one, so this ends; the size check guards timelines that were not computed
  // here.
  while (at.valid() && at.index() < timeline.waited_for.size() && path.size() < timeline.finish_us.size()) {
    path.push_back(at);
    at = timeline.waited_for[at.index()];
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace heddle
