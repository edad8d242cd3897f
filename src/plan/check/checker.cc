#include "heddle/plan/checker.h"

#include <algorithm>
#include <queue>

#include "checker_state.h"

namespace heddle {
namespace {

constexpr int kMostPerKind = 20;
constexpr size_t kMostLanes = 1024;

}  // namespace

const char* violation_name(Violation violation) {
  // In the order of the enum.
  static constexpr const char* kNames[] = {
      "malformed",    "op missing", "op twice", "not convex", "device forbidden",
      "order",        "overlap",    "memory",   "route",      "transfer missing",
      "load missing", "time",       "bound",    "shares",     "placement"};
  return kNames[static_cast<size_t>(violation)];
}

void PlanChecker::report(Violation kind, std::string message) {
  if (++reported_[static_cast<size_t>(kind)] <= kMostPerKind)
    report_.findings.push_back({kind, std::move(message)});
}

std::string PlanChecker::step_text(size_t i) const {
  const Step& step = plan_.steps[i];
  const std::string number = "step " + std::to_string(i);
  const std::string device = cluster_.device(step.to).name;
  switch (step.kind) {
    case StepKind::kRun:
      return number + " (run '" + segment_of(i).name + "' on " + device + ")";
    case StepKind::kLoad:
      return number + " (load '" + segment_of(i).name + "' to " + device + ")";
    case StepKind::kTransfer:
      break;
  }
  return number + " (transfer '" + graph_.tensor(step.tensor).name + "' to " + device + ")";
}

bool PlanChecker::free_between(DeviceId a, DeviceId b) const {
  if (a == b || moves_within_runs()) return true;
  if (has_given_times()) return false;
  const Route* route = cluster_.route(a, b);
  return cluster_.memory_pool(a) == cluster_.memory_pool(b) && (route == nullptr || route->hops.empty());
}

bool PlanChecker::check_shares() {
  const size_t lanes = plan_.lane_shares.size();
  double sum = 0;
  bool good = lanes > 0;
  for (const double s : plan_.lane_shares) {
    good = good && s > 0 && s <= 1 + 1e-9;
    sum += s;
  }
  if (!good || std::abs(sum - 1) > 1e-9)
    report(Violation::kShares, "lane shares must be positive and sum to 1");
  if (lanes > 1 && problem_.objective != Objective::kThroughput) {
    report(Violation::kShares, "only throughput plans have several lanes");
  }
  if (lanes > 1 && moves_within_runs())
    report(Violation::kShares, "several lanes need transfer steps, but here runs move tensors");
  // Counted first: the later checks need memory for every op in every lane.
  size_t ops = 0;
  for (const Segment& segment : plan_.segments) ops += segment.ops.size();
  if (lanes > kMostLanes || (lanes > 1 && ops != lanes * graph_.num_ops())) {
    report(ops < lanes * graph_.num_ops() ? Violation::kOpMissing : Violation::kOpTwice,
           "the segments hold " + std::to_string(ops) + " ops, expected each op once in each of " +
               std::to_string(lanes) + " lanes (at most " + std::to_string(kMostLanes) + ")");
  }
  return report_.ok();
}

void PlanChecker::check_segment_ids(size_t s) {
  const Segment& segment = plan_.segments[s];
  bool good = !segment.ops.empty() && segment.lane >= 0 &&
              static_cast<size_t>(segment.lane) < plan_.lane_shares.size();
  good = good && segment.device.valid() && segment.device.index() < cluster_.num_devices();
  for (size_t k = 0; k < segment.ops.size(); ++k) {
    good = good && segment.ops[k].valid() && segment.ops[k].index() < graph_.num_ops();
    good = good && (k == 0 || segment.ops[k - 1] < segment.ops[k]);
  }
  if (!good) {
    report(Violation::kMalformed,
           "segment " + std::to_string(s) + " '" + segment.name +
               "': empty, its ops are not ascending, or an op, device or lane does not exist");
  }
}

// Flags of the cold start: are they allowed, and does the device need loads?
void PlanChecker::check_segment_flags(size_t s) {
  const Segment& segment = plan_.segments[s];
  const std::string name = "segment " + std::to_string(s) + " '" + segment.name + "'";
  if (segment.host_access && (!loads_needed(segment.device) || segment.stage >= 0)) {
    report(Violation::kMalformed, name + ": direct host access is for the cold-latency objective, outside " +
                                      "stages, on devices that need loads");
  }
  if (segment.drops_params && !(is_cold() && problem_.execution.parameter_drops))
    report(Violation::kMalformed, name + ": it drops its parameters, which the problem does not allow");
}

void PlanChecker::check_step_ids(size_t i) {
  const Step& step = plan_.steps[i];
  const auto bad = [&](const char* why) {
    report(Violation::kMalformed, "step " + std::to_string(i) + ": " + why);
  };
  if (step.kind != StepKind::kRun && step.kind != StepKind::kTransfer && step.kind != StepKind::kLoad) {
    return bad("unknown kind");
  }
  if (!step.segment.valid() || step.segment.index() >= plan_.segments.size()) return bad("no such segment");
  if (!step.to.valid() || step.to.index() >= cluster_.num_devices()) return bad("no such destination device");
  if (step.route < -1 || step.route >= static_cast<int64_t>(plan_.routes.size())) return bad("no such route");
  if (!std::isfinite(timeline_.start_us[i]) || !std::isfinite(timeline_.finish_us[i]))
    return bad("its times are not finite");
  if (timeline_.start_us[i] < -1e-6) return bad("it starts before time 0");
  if (step.kind == StepKind::kTransfer) {
    if (!step.tensor.valid() || step.tensor.index() >= graph_.num_tensors()) return bad("no such tensor");
    if (!step.from.valid() || step.from.index() >= cluster_.num_devices())
      return bad("no such source device");
  }
  if (step.kind == StepKind::kLoad && !is_cold()) bad("loads belong to the cold-latency objective only");
  if (step.kind == StepKind::kRun && (step.from != step.to)) bad("a run is from and to one device");
}

bool PlanChecker::check_ids() {
  if (timeline_.start_us.size() != plan_.steps.size() || timeline_.finish_us.size() != plan_.steps.size()) {
    report(Violation::kMalformed, "the timeline has times for " + std::to_string(timeline_.start_us.size()) +
                                      " and " + std::to_string(timeline_.finish_us.size()) +
                                      " steps, the plan has " + std::to_string(plan_.steps.size()));
    return false;
  }
  for (size_t s = 0; s < plan_.segments.size(); ++s) check_segment_ids(s);
  if (!report_.ok()) return false;
  for (size_t s = 0; s < plan_.segments.size(); ++s) check_segment_flags(s);
  for (size_t i = 0; i < plan_.steps.size(); ++i) check_step_ids(i);
  return report_.ok();
}

void PlanChecker::check_ops_once() {
  place_.assign(plan_.lane_shares.size(), std::vector<int>(graph_.num_ops(), -1));
  for (size_t s = 0; s < plan_.segments.size(); ++s) {
    const Segment& segment = plan_.segments[s];
    for (const OpId op : segment.ops) {
      int& place = place_[static_cast<size_t>(segment.lane)][op.index()];
      if (place >= 0)
        report(Violation::kOpTwice, "op '" + graph_.op(op).name + "' is in two segments of one lane");
      place = static_cast<int>(s);
    }
  }
  for (size_t lane = 0; lane < place_.size(); ++lane) {
    for (size_t v = 0; v < graph_.num_ops(); ++v) {
      if (place_[lane][v] < 0) {
        report(Violation::kOpMissing,
               "op '" + graph_.ops()[v].name + "' is in no segment of lane " + std::to_string(lane));
      }
    }
  }
}

void PlanChecker::check_runs() {
  run_step_.assign(plan_.segments.size(), -1);
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    if (plan_.steps[i].kind != StepKind::kRun) continue;
    int64_t& run = run_step_[plan_.steps[i].segment.index()];
    if (run >= 0)
      report(Violation::kOpTwice,
             step_text(i) + ": the segment runs in step " + std::to_string(run) + " too");
    run = static_cast<int64_t>(i);
    if (plan_.steps[i].to != segment_of(i).device) {
      report(Violation::kMalformed, step_text(i) + ": the segment belongs on device '" +
                                        cluster_.device(segment_of(i).device).name + "'");
    }
  }
  for (size_t s = 0; s < run_step_.size(); ++s) {
    if (run_step_[s] < 0)
      report(Violation::kOpMissing, "segment '" + plan_.segments[s].name + "' never runs");
  }
}

// Stages: allowed, on one device and lane, not too wide, adjacent in the list, with equal start and end.
// Members cannot depend on each other: the order check would fail, since all start together.
void PlanChecker::check_stages() {
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    if (plan_.steps[i].kind == StepKind::kRun && segment_of(i).stage >= 0)
      stages_[segment_of(i).stage].push_back(i);
  }
  for (const auto& [stage, steps] : stages_) {
    const std::string name = "stage " + std::to_string(stage);
    if (steps.size() > static_cast<size_t>(problem_.execution.stage_width)) {
      report(Violation::kOverlap, name + " runs " + std::to_string(steps.size()) +
                                      " segments at once, the problem allows " +
                                      std::to_string(problem_.execution.stage_width));
    }
    const size_t first = steps.front();
    for (size_t k = 1; k < steps.size(); ++k) {
      const size_t i = steps[k];
      if (i != first + k) report(Violation::kOrder, step_text(i) + ": the runs of " + name + " are apart");
      if (segment_of(i).device != segment_of(first).device || segment_of(i).lane != segment_of(first).lane)
        report(Violation::kMalformed, step_text(i) + ": " + name + " has two devices or lanes");
      if (std::abs(timeline_.start_us[i] - timeline_.start_us[first]) > tolerance(timeline_.start_us[i]) ||
          std::abs(timeline_.finish_us[i] - timeline_.finish_us[first]) > tolerance(timeline_.finish_us[i])) {
        report(Violation::kTime, step_text(i) + ": " + name + " does not start and end as one");
      }
    }
  }
}

// The contracted segments of a lane must form an acyclic graph, which implies that each is convex.
void PlanChecker::check_quotient() {
  std::vector<std::vector<int>> next(plan_.segments.size());
  std::vector<int> waits(plan_.segments.size(), 0);
  for (const auto& place : place_) {
    for (const Edge& e : graph_.edges()) {
      const int a = place[e.src.index()], b = place[e.dst.index()];
      if (a < 0 || b < 0 || a == b) continue;
      next[static_cast<size_t>(a)].push_back(b);
      ++waits[static_cast<size_t>(b)];
    }
  }
  std::queue<int> ready;
  for (size_t s = 0; s < waits.size(); ++s) {
    if (waits[s] == 0) ready.push(static_cast<int>(s));
  }
  while (!ready.empty()) {
    const auto s = static_cast<size_t>(ready.front());
    ready.pop();
    waits[s] = -1;
    for (const int n : next[s]) {
      if (--waits[static_cast<size_t>(n)] == 0) ready.push(n);
    }
  }
  for (size_t s = 0; s < waits.size(); ++s) {
    if (waits[s] > 0) {
      report(Violation::kNotConvex,
             "segment '" + plan_.segments[s].name + "' waits, through others, for itself");
    }
  }
}

void PlanChecker::check_devices() {
  for (const Segment& segment : plan_.segments) {
    const Device& device = cluster_.device(segment.device);
    if (!problem_.may_use(segment.device)) {
      report(Violation::kDeviceForbidden, "segment '" + segment.name + "' is on device '" + device.name +
                                              "', which the problem does not allow");
    } else if (!std::isfinite(alone_us(segment))) {
      report(Violation::kDeviceForbidden, "segment '" + segment.name + "' cannot run on device '" +
                                              device.name + "'" +
                                              (segment.host_access ? " with direct host access" : ""));
    }
  }
}

void PlanChecker::index_transfers() {
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    const Step& step = plan_.steps[i];
    if (step.kind != StepKind::kTransfer) continue;
    const Segment& segment = segment_of(i);
    const OpId maker = graph_.tensor(step.tensor).producer;
    if (!maker.valid() || !std::binary_search(segment.ops.begin(), segment.ops.end(), maker)) {
      report(Violation::kMalformed,
             step_text(i) + ": segment '" + segment.name + "' does not make this tensor");
    }
    const auto [it, fresh] = transfer_to_.try_emplace({segment.lane, step.tensor.value, step.to.value}, i);
    if (!fresh)
      report(Violation::kMalformed, step_text(i) + ": step " + std::to_string(it->second) + " does the same");
  }
}

void PlanChecker::index_loads() {
  load_bytes_.assign(plan_.steps.size(), 0);
  for (size_t i = 0; i < plan_.steps.size(); ++i) {
    if (plan_.steps[i].kind != StepKind::kLoad) continue;
    if (plan_.steps[i].to != segment_of(i).device)
      report(Violation::kMalformed, step_text(i) + ": not its segment's device");
    if (segment_of(i).host_access)
      report(Violation::kMalformed, step_text(i) + ": its segment reads its parameters from host memory");
    if (!loads_needed(plan_.steps[i].to))
      report(Violation::kMalformed, step_text(i) + ": this device needs no loads");
    const int pool = cluster_.memory_pool(plan_.steps[i].to);
    bool any = false;
    for (const OpId op : segment_of(i).ops) {
      for (const ParamId p : graph_.op(op).params) {
        if (graph_.param(p).bytes <= 0 || is_resident(pool, p)) continue;
        if (!load_of_.try_emplace({pool, p.value}, i).second) continue;
        any = true;
        if (__builtin_add_overflow(load_bytes_[i], graph_.param(p).bytes, &load_bytes_[i]))
          load_bytes_[i] = INT64_MAX;
      }
    }
    if (!any) report(Violation::kMalformed, step_text(i) + ": everything that it loads is there already");
  }
}

CheckReport PlanChecker::run(std::optional<double> bound_us) {
  if (!check_shares() || !check_ids()) return report_;
  for (const double f : timeline_.finish_us) makespan_ = std::max(makespan_, f);
  is_output_.assign(graph_.num_tensors(), false);
  for (const TensorId t : graph_.outputs()) is_output_[t.index()] = true;
  check_ops_once();
  check_runs();
  check_stages();
  check_quotient();
  check_devices();
  check_rules();
  index_transfers();
  index_loads();
  check_steps();
  check_overlaps();
  check_totals();
  check_memory();
  if (bound_us) {
    const double value =
        problem_.objective == Objective::kThroughput ? timeline_.period_us : timeline_.makespan_us;
    if (!(*bound_us <= value + tolerance(value))) {
      report(Violation::kBound, "the lower bound " + std::to_string(*bound_us) +
                                    " us is above the plan's value " + std::to_string(value) + " us");
    }
  }
  return report_;
}

CheckReport check(const Problem& problem, const Plan& plan, const Timeline& timeline,
                  std::optional<double> bound_us) {
  return PlanChecker(problem, plan, timeline).run(bound_us);
}

}  // namespace heddle
