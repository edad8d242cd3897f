// Times of stages: segments that a device runs at once.
//
// A stage's members run on parts of the device's cores, or on streams of their own on a whole accelerator. A unit's
// utilization is its work on half of the device, relative to the whole device for its time alone. The stage model is
// fitted to measured pairs of units.
#include <algorithm>
#include <cmath>
#include <map>

#include "heddle/base/errors.h"
#include "heddle/plan/stage_list.h"
#include "heddle/runtime/device_shares.h"
#include "heddle/runtime/segment_measurer.h"
#include "session_parts.h"

namespace heddle {
namespace {

constexpr size_t kPairs = 16;  // measured for a fit of three numbers
constexpr double kPairSeconds = 0.06;
constexpr int kPairRuns = 10;

// Units whose times are spread over the range: every pair of quantiles, the largest first.
std::vector<std::pair<OpId, OpId>> pairs_to_measure(const Problem& problem, DeviceId device) {
  std::vector<OpId> units;
  for (size_t v = 0; v < problem.graph->num_ops(); ++v) {
    if (std::isfinite(problem.costs->us(OpId(v), device))) units.emplace_back(v);
  }
  std::stable_sort(units.begin(), units.end(), [&](OpId a, OpId b) {
    return problem.costs->us(a, device) > problem.costs->us(b, device);
  });
  std::vector<std::pair<OpId, OpId>> pairs;
  const size_t n = units.size();
  for (size_t step = 1; step < n && pairs.size() < kPairs; ++step) {
    for (size_t i = 0; i + step < n && pairs.size() < kPairs; i += step + 1) {
      pairs.emplace_back(units[i], units[i + step]);
    }
  }
  return pairs;
}

bool accelerator(const Device& device) { return device.cores.empty(); }

class StageMeasuring {
 public:
  StageMeasuring(Session& session, CostTable& costs, const Control& control)
      : session_(session), costs_(costs), deadline_(control.deadline()), control_(control) {}

  // Utilizations of all units on the device, then the fit. Devices of one target share them.
  Result<MeasuredStages> measure(DeviceId device) {
    HEDDLE_RETURN_IF_ERROR(measure_utilizations(device));
    const auto pairs = pairs_to_measure(session_.problem, device);
    MeasuredStages measured{
        .target = session_.cluster->device(device).target, .pairs = {}, .samples = {}, .fit = {}};
    for (size_t i = 0; i < pairs.size() && !deadline_.should_stop(); ++i) {
      report("measuring pairs at once", i, pairs.size());
      HEDDLE_ASSIGN_OR_RETURN(measured.samples.emplace_back(), measure_pair(device, pairs[i]));
      measured.pairs.push_back(pairs[i]);
    }
    measured.fit = fit_stage_model(measured.samples);
    return measured;
  }

 private:
  void report(const char* what, size_t done, size_t total) {
    control_.report(what, static_cast<double>(done), static_cast<double>(total));
  }

  Result<std::unique_ptr<SegmentProbe>> probe(OpId unit, const Device& device) const {
    const OpId ops[] = {unit};
    return SegmentProbe::make(session_.loaded.model, finest_ops(*session_.problem.graph, ops), device);
  }

  Status measure_utilizations(DeviceId device) {
    const Device whole = session_.cluster->device(device);
    Device half = device_part(whole, 0, 2);
    half.memory_bytes = whole.memory_bytes;  // members of a stage share it
    const double part =
        accelerator(whole) ? 0.5
                           : static_cast<double>(half.cores.size()) / static_cast<double>(whole.cores.size());
    MeasureOptions options;
    options.min_s = kUnitSeconds;
    options.max_s = 3 * kUnitSeconds;
    const auto measurer = make_segment_measurer(session_.loaded.model, options);
    const size_t n = session_.problem.graph->num_ops();
    for (size_t v = 0; v < n; ++v) {
      if (deadline_.should_stop()) return {};
      report("measuring units on half of the device", v, n);
      const double alone = session_.problem.costs->us(OpId(v), device);
      if (!std::isfinite(alone) || !(alone > 0)) continue;
      const OpId unit[] = {OpId(v)};
      HEDDLE_ASSIGN_OR_RETURN(const Measurement m,
                              measurer->measure(finest_ops(*session_.problem.graph, unit), half, deadline_));
      costs_.set_utilization(OpId(v), device, std::clamp(m.median_us * part / alone, 0.0, 1.0));
    }
    return {};
  }

  Result<StageSample> measure_pair(DeviceId device, std::pair<OpId, OpId> pair) {
    const Device& whole = session_.cluster->device(device);
    StageSample sample;
    std::vector<std::unique_ptr<SegmentProbe>> probes;
    double host_us = 0;  // that launching and waiting add to a time by the host's clock
    for (const OpId unit : {pair.first, pair.second}) {
      const OpId ops[] = {unit};
      const double alone_us = session_.problem.costs->us(unit, device);
      sample.items.push_back(costs_.stage_item(ops, device, alone_us));
      if (!accelerator(whole)) {
        HEDDLE_ASSIGN_OR_RETURN(probes.emplace_back(),
                                probe(unit, device_part(whole, static_cast<int>(probes.size()), 2)));
        continue;
      }
      HEDDLE_ASSIGN_OR_RETURN(probes.emplace_back(), probe(unit, whole));
      HEDDLE_ASSIGN_OR_RETURN(const Measurement alone,
                              time_at_once(std::span(probes).last(1), kPairSeconds, kPairRuns, deadline_));
      host_us = std::max(host_us, alone.median_us - alone_us);
    }
    HEDDLE_ASSIGN_OR_RETURN(const Measurement together,
                            time_at_once(probes, kPairSeconds, kPairRuns, deadline_));
    sample.us = together.median_us;
    if (accelerator(whole))
      sample.us = std::max({sample.us - host_us, sample.items[0].us, sample.items[1].us});
    return sample;
  }

  Session& session_;
  CostTable& costs_;
  const Deadline deadline_;
  const Control& control_;
};

Status use_measured(Session& session, CostTable& costs, const Control& control) {
  // The first device of each target stands for the others.
  std::map<std::string, std::pair<DeviceId, StageModel>> by_target;
  for (const DeviceId d : session.problem.usable_devices()) {
    const Device& device = session.cluster->device(d);
    // On one core members take turns, which is the default model.
    if (device.target.empty() || most_shares(device) < 2) continue;
    auto known = by_target.find(device.target);
    if (known == by_target.end()) {
      StageMeasuring measuring(session, costs, control);
      HEDDLE_ASSIGN_OR_RETURN(auto measured, measuring.measure(d));
      known = by_target.try_emplace(device.target, d, measured.fit.model).first;
      session.stages.push_back(std::move(measured));
    } else {
      const DeviceId first = known->second.first;
      for (size_t v = 0; v < session.problem.graph->num_ops(); ++v)
        costs.set_utilization(OpId(v), d, costs.utilization(OpId(v), first));
    }
    costs.set_stage_model(d, known->second.second);
  }
  return {};
}

}  // namespace

void keep_stages(const Problem& from, Problem& to) {
  to.execution.stage_width = from.execution.stage_width;
  if (from.execution.stage_width < 2) return;
  auto costs = std::make_shared<CostTable>(*to.costs);
  for (size_t d = 0; d < to.cluster->num_devices(); ++d) {
    const DeviceId before = device_like(to.cluster->devices()[d], *from.cluster);
    if (!before.valid()) continue;
    costs->set_stage_model(DeviceId(d), from.costs->stage_model(before));
    for (size_t v = 0; v < to.graph->num_ops() && from.costs->has_utilizations(); ++v)
      costs->set_utilization(OpId(v), DeviceId(d), from.costs->utilization(OpId(v), before));
  }
  to.costs = std::move(costs);
}

Status allow_stages(Session& session, const ProblemSettings& settings, const Control& control) {
  if (settings.stage_width < 2) {
    if (settings.stage_times == StageTimes::kUsual) return {};
    return invalid_input("a model of stage times was given without a stage width of at least 2");
  }
  StageTimes times = settings.stage_times;
  if (times == StageTimes::kUsual)
    times = session.may_measure ? StageTimes::kMeasured : StageTimes::kSimulated;
  if (times == StageTimes::kMeasured && !session.may_measure) {
    return invalid_input(
        "measured stages: nothing can be measured here (no model file, no device of this machine, or "
        "measuring is off); use simulated or serial");
  }
  if (times == StageTimes::kSimulated) {
    simulate_stages(session.problem, settings.stage_width);
    return {};
  }
  session.problem.execution.stage_width = settings.stage_width;
  auto costs = std::make_shared<CostTable>(*session.problem.costs);
  if (times == StageTimes::kMeasured) HEDDLE_RETURN_IF_ERROR(use_measured(session, *costs, control));
  session.problem.costs = std::move(costs);
  return {};
}

void simulate_stages(Problem& problem, int width) {
  problem.execution.stage_width = width;
  auto costs = std::make_shared<CostTable>(*problem.costs);
  for (const DeviceId d : problem.usable_devices()) {
    costs->set_stage_model(d, kSimulatedStages);
    const double launch_us = problem.cluster->device(d).op_overhead_us;
    for (size_t v = 0; v < costs->num_ops(); ++v) {
      const double given = problem.graph->op(OpId(v)).utilization, us = costs->us(OpId(v), d);
      const double working = us > launch_us && std::isfinite(us) ? (us - launch_us) / us : 0;
      costs->set_utilization(OpId(v), d, given < 1 ? given : working);
    }
  }
  problem.costs = std::move(costs);
}

Result<PlanResult> plan_as_scheduled(Session& session, const std::string& path) {
  const int width = stage_width_of(session.loaded.stages);
  if (width > session.problem.execution.stage_width) simulate_stages(session.problem, width);
  PlannerOutput output;
  HEDDLE_ASSIGN_OR_RETURN(output.plan,
                          with_context(plan_of_ios_stages(session.problem, session.loaded.stages), path));
  output.detail = "as scheduled in the file";
  return verified_result("file", session.problem, std::move(output), 0);
}

}  // namespace heddle
