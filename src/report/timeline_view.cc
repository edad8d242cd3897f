#include "heddle/report/timeline_view.h"

#include <algorithm>
#include <map>
#include <set>

#include "heddle/base/gap.h"
#include "heddle/base/units.h"

namespace heddle {
namespace {

std::string op_names(const Problem& problem, const Segment& segment) {
  constexpr size_t kShown = 4;
  std::string text;
  for (size_t i = 0; i < segment.ops.size() && i < kShown; ++i) {
    text += (i ? ", " : "") + problem.graph->op(segment.ops[i]).name;
  }
  if (segment.ops.size() > kShown) text += ", and " + std::to_string(segment.ops.size() - kShown) + " more";
  return text;
}

std::string track_of(const Problem& problem, const Plan& plan, const Step& step) {
  const auto& cluster = *problem.cluster;
  switch (step.kind) {
    case StepKind::kRun:
      return "device " + cluster.device(plan.segments[step.segment.index()].device).name;
    case StepKind::kTransfer:
      return "transfer " + cluster.device(step.from).name + " -> " + cluster.device(step.to).name;
    case StepKind::kLoad:
      return "load " + cluster.device(step.to).name;
  }
  return "";
}

void describe_run(const Problem& problem, const Segment& segment, TimelineBar& bar) {
  const auto cost = problem.costs->segment(segment.ops, segment.device);
  double flops = 0;
  for (const auto op : segment.ops) flops += problem.graph->op(op).flops;
  bar.name = segment.name;
  bar.details = {{"units", std::to_string(segment.ops.size())},
                 {"ops", op_names(problem, segment)},
                 {"time", format_us(cost.us) + " (" + origin_name(cost.origin) + ")"}};
  if (flops > 0) bar.details.emplace_back("work", format_si(flops, "FLOP"));
  if (segment.lane > 0) bar.details.emplace_back("lane", std::to_string(segment.lane));
}

TimelineBar make_bar(const Problem& problem, const Plan& plan, const Timeline& timeline, size_t i,
                     const RunRecord* run) {
  const auto& step = plan.steps[i];
  const auto& segment = plan.segments[step.segment.index()];
  TimelineBar bar;
  bar.track = track_of(problem, plan, step);
  bar.kind = step.kind;
  bar.step = StepId(i);
  bar.predicted_start_us = timeline.start_us[i];
  bar.predicted_finish_us = timeline.finish_us[i];
  if (step.kind == StepKind::kRun) {
    describe_run(problem, segment, bar);
  } else if (step.kind == StepKind::kTransfer) {
    const auto& tensor = problem.graph->tensor(step.tensor);
    bar.name = tensor.name;
    bar.details = {{"tensor", std::string(dtype_name(tensor.dtype)) + " " + shape_text(tensor.shape)},
                   {"size", format_bytes(tensor.bytes)},
                   {"made by", segment.name}};
  } else {
    bar.name = segment.name;
    bar.details = {{"parameters", format_bytes(problem.graph->param_bytes(segment.ops))}};
  }
  if (run != nullptr && i < run->steps.size()) {
    bar.measured_start_us = run->steps[i].start_us;
    bar.measured_finish_us = run->steps[i].finish_us;
    bar.measured_median_us = run->steps[i].median_us;
  }
  return bar;
}

// Divides a track's height among the members of each stage.
void divide_stages(const Plan& plan, std::vector<TimelineBar>& bars) {
  std::map<int32_t, std::vector<size_t>> members;
  for (size_t i = 0; i < bars.size(); ++i) {
    const int32_t stage = plan.segments[plan.steps[i].segment.index()].stage;
    if (bars[i].kind == StepKind::kRun && stage >= 0) members[stage].push_back(i);
  }
  for (const auto& [stage, steps] : members) {
    for (size_t j = 0; j < steps.size(); ++j) {
      TimelineBar& bar = bars[steps[j]];
      bar.part = static_cast<int>(j);
      bar.parts = static_cast<int>(steps.size());
      if (steps.size() > 1)
        bar.details.emplace_back("stage", std::to_string(steps.size()) + " segments at once");
    }
  }
}

// Divides a track's height among the lanes that use it: the times are those of one request of each lane alone, so
// steps of different lanes may have the same time.
void divide_lanes(const Plan& plan, std::vector<TimelineBar>& bars) {
  const auto lane_of = [&](size_t i) { return plan.segments[plan.steps[i].segment.index()].lane; };
  std::map<std::string, std::set<int32_t>> lanes;
  for (size_t i = 0; i < bars.size(); ++i) lanes[bars[i].track].insert(lane_of(i));
  for (size_t i = 0; i < bars.size(); ++i) {
    const auto& own = lanes[bars[i].track];
    const auto before = static_cast<int>(std::distance(own.begin(), own.find(lane_of(i))));
    bars[i].part += before * bars[i].parts;
    bars[i].parts *= static_cast<int>(own.size());
  }
}

// Devices in the cluster's order (including idle ones), then transfers, then loads, by name.
std::vector<std::string> track_order(const Problem& problem, const std::vector<TimelineBar>& bars) {
  std::vector<std::string> tracks;
  std::set<std::string> used, transfers, loads;
  for (const auto& b : bars) {
    used.insert(b.track);
    if (b.kind == StepKind::kTransfer) transfers.insert(b.track);
    if (b.kind == StepKind::kLoad) loads.insert(b.track);
  }
  // In a large cluster only busy devices are drawn.
  constexpr size_t kAllDevices = 16;
  for (const auto& d : problem.cluster->devices()) {
    const auto track = "device " + d.name;
    if (problem.cluster->num_devices() <= kAllDevices || used.count(track)) tracks.push_back(track);
  }
  tracks.insert(tracks.end(), transfers.begin(), transfers.end());
  tracks.insert(tracks.end(), loads.begin(), loads.end());
  return tracks;
}

}  // namespace

TimelineView make_timeline_view(const Problem& problem, const Plan& plan, const Timeline& timeline,
                                const Bound& bound, const std::string& planner, const RunRecord* run) {
  TimelineView view;
  view.model = problem.graph->name();
  view.cluster = problem.cluster->name();
  view.planner = planner;
  view.title = view.model + " on " + view.cluster + ", planned by " + planner;
  view.devices = problem.cluster->num_devices();
  std::set<DeviceId> used;
  for (const auto& s : plan.segments) used.insert(s.device);
  view.used_devices = used.size();
  view.objective = problem.objective;
  view.batch = problem.batch;
  view.predicted_us = objective_us(problem, timeline);
  view.bound = bound;
  view.gap = relative_gap(view.predicted_us, bound.us);
  if (run != nullptr && run->repeats > 0) {
    view.measured_us = run->measured_us;
    view.repeats = run->repeats;
    view.precision = run->precision;
  }
  for (size_t i = 0; i < plan.steps.size(); ++i)
    view.bars.push_back(make_bar(problem, plan, timeline, i, run));
  divide_stages(plan, view.bars);
  divide_lanes(plan, view.bars);
  for (const auto step : critical_path(timeline)) view.bars[step.index()].critical = true;
  view.tracks = track_order(problem, view.bars);
  std::map<std::string, size_t> rank;
  for (size_t i = 0; i < view.tracks.size(); ++i) rank[view.tracks[i]] = i;
  std::stable_sort(view.bars.begin(), view.bars.end(), [&](const TimelineBar& a, const TimelineBar& b) {
    const auto ra = rank[a.track], rb = rank[b.track];
    return ra != rb ? ra < rb : a.predicted_start_us < b.predicted_start_us;
  });
  for (const auto& b : view.bars) {
    view.span_us = std::max({view.span_us, b.predicted_finish_us, b.measured_finish_us.value_or(0)});
  }
  return view;
}

}  // namespace heddle
