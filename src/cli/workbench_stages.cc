// Workbench, part four: what a device gains by running segments at once.
//
// A stage's members run on parts of the device's cores. So a unit's utilization is the work that it does on a
// part, against the whole device for its time alone; and the stage model is fitted to pairs of units that
// really ran at once.
#include "workbench_stages.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/runtime/share_measurer.h"
#include "heddle/runtime/stage_fit.h"
#include "workbench.h"

namespace heddle::cli {
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

class StageMeasuring {
 public:
  StageMeasuring(Workbench& bench, CostTable& costs, const Invocation& invocation)
      : bench_(bench),
        costs_(costs),
        deadline_(Deadline::never(invocation.cancel)),
        invocation_(invocation) {}

  // Utilizations of all units on the device, then the fit. Devices of one target share them.
  Result<StageFit> measure(DeviceId device) {
    HEDDLE_RETURN_IF_ERROR(measure_utilizations(device));
    const auto pairs = pairs_to_measure(bench_.problem, device);
    std::vector<StageSample> samples;
    for (size_t i = 0; i < pairs.size() && !deadline_.should_stop(); ++i) {
      report("measuring pairs at once", i, pairs.size());
      HEDDLE_ASSIGN_OR_RETURN(samples.emplace_back(), measure_pair(device, pairs[i]));
    }
    return fit_stage_model(samples);
  }

 private:
  void report(const char* what, size_t done, size_t total) {
    if (invocation_.progress == nullptr) return;
    invocation_.progress->report(
        {.what = what, .done = static_cast<double>(done), .total = static_cast<double>(total)});
  }

  Result<std::unique_ptr<SegmentProbe>> probe(OpId unit, const Device& device) const {
    const OpId ops[] = {unit};
    return make_segment_probe(bench_.loaded.model, finest_ops(*bench_.problem.graph, ops), device);
  }

  Status measure_utilizations(DeviceId device) {
    const Device whole = bench_.cluster->device(device), half = device_part(whole, 0, 2);
    const double part = static_cast<double>(half.cores.size()) / static_cast<double>(whole.cores.size());
    const MeasureOptions options{.min_s = kUnitSeconds, .max_s = 3 * kUnitSeconds};
    const size_t n = bench_.problem.graph->num_ops();
    for (size_t v = 0; v < n; ++v) {
      if (deadline_.should_stop()) return {};
      report("measuring units on half of the cores", v, n);
      const double alone = bench_.problem.costs->us(OpId(v), device);
      if (!std::isfinite(alone) || !(alone > 0)) continue;
      HEDDLE_ASSIGN_OR_RETURN(const auto on_half, probe(OpId(v), half));
      HEDDLE_ASSIGN_OR_RETURN(const Measurement m, on_half->sample(options, deadline_));
      costs_.set_utilization(OpId(v), device, std::clamp(m.median_us * part / alone, 0.0, 1.0));
    }
    return {};
  }

  Result<StageSample> measure_pair(DeviceId device, std::pair<OpId, OpId> pair) {
    const Device& whole = bench_.cluster->device(device);
    StageSample sample;
    std::vector<std::unique_ptr<SegmentProbe>> probes;
    for (const OpId unit : {pair.first, pair.second}) {
      const OpId ops[] = {unit};
      sample.items.push_back(costs_.stage_item(ops, device, bench_.problem.costs->us(unit, device)));
      HEDDLE_ASSIGN_OR_RETURN(probes.emplace_back(),
                              probe(unit, device_part(whole, static_cast<int>(probes.size()), 2)));
    }
    HEDDLE_ASSIGN_OR_RETURN(sample.us, measure_at_once(probes, kPairSeconds, kPairRuns, deadline_));
    return sample;
  }

  Workbench& bench_;
  CostTable& costs_;
  const Deadline deadline_;
  const Invocation& invocation_;
};

Status use_measured(Workbench& bench, CostTable& costs, const Invocation& invocation) {
  // The first device of each target stands for the others.
  std::map<std::string, std::pair<DeviceId, StageModel>> by_target;
  for (const DeviceId d : bench.problem.usable_devices()) {
    const Device& device = bench.cluster->device(d);
    // On one core members take turns: the default, one after another, is right.
    if (device.target.empty() || device.cores.size() < 2) continue;
    auto known = by_target.find(device.target);
    if (known == by_target.end()) {
      StageMeasuring measuring(bench, costs, invocation);
      HEDDLE_ASSIGN_OR_RETURN(const StageFit fit, measuring.measure(d));
      known = by_target.try_emplace(device.target, d, fit.model).first;
      bench.stage_fits.emplace_back(device.target, fit);
    } else {
      const DeviceId first = known->second.first;
      for (size_t v = 0; v < bench.problem.graph->num_ops(); ++v)
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
    const DeviceId before = from.cluster->find_device(to.cluster->devices()[d].name);
    if (!before.valid()) continue;
    costs->set_stage_model(DeviceId(d), from.costs->stage_model(before));
    for (size_t v = 0; v < to.graph->num_ops() && from.costs->has_utilizations(); ++v)
      costs->set_utilization(OpId(v), DeviceId(d), from.costs->utilization(OpId(v), before));
  }
  to.costs = std::move(costs);
}

Status allow_stages(Workbench& bench, const ProblemFlags& flags, const Invocation& invocation) {
  if (flags.stages < 2) {
    if (flags.stage_model.empty()) return {};
    return Error(Code::kInvalidInput, "--stage-model belongs to --stages of at least 2");
  }
  const std::vector<std::string> names = {"measured", "simulated", "serial"};
  const std::string model = !flags.stage_model.empty() ? flags.stage_model
                            : bench.may_measure        ? "measured"
                                                       : "simulated";
  if (std::find(names.begin(), names.end(), model) == names.end()) {
    return Error(Code::kInvalidInput,
                 "--stage-model " + model + ": expected " + join_names(names) + did_you_mean(model, names));
  }
  if (model == "measured" && !bench.may_measure) {
    return Error(Code::kInvalidInput,
                 "--stage-model measured: nothing can be measured here (no model file, no device of this "
                 "machine, or --no-profile); use simulated or serial");
  }
  if (model == "simulated") {
    simulate_stages(bench.problem, static_cast<int>(flags.stages));
    return {};
  }
  bench.problem.execution.stage_width = static_cast<int>(flags.stages);
  auto costs = std::make_shared<CostTable>(*bench.problem.costs);
  if (model == "measured") HEDDLE_RETURN_IF_ERROR(use_measured(bench, *costs, invocation));
  bench.problem.costs = std::move(costs);
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

int count_stages(const Plan& plan) {
  std::map<int32_t, int> members;
  for (const Segment& s : plan.segments) {
    if (s.stage >= 0) ++members[s.stage];
  }
  return static_cast<int>(
      std::count_if(members.begin(), members.end(), [](auto& m) { return m.second > 1; }));
}

void print_stages(const Workbench& bench, const Plan& plan) {
  const int width = bench.problem.execution.stage_width;
  if (width < 2) return;
  std::printf("  stages of up to %d segments at once: %d\n", width, count_stages(plan));
  for (const auto& [target, fit] : bench.stage_fits) {
    std::printf("  t(S) on %s: %.2f sum + %.2f max(busy, longest) + %s; off by %.0f %%, at most %.0f %%\n",
                target.c_str(), fit.model.serial, fit.model.overlap, format_us(fit.model.launch_us).c_str(),
                100 * fit.median_error, 100 * fit.largest_error);
  }
}

Json stages_json(const Workbench& bench, const Plan& plan) {
  Json json;
  json["width"] = bench.problem.execution.stage_width;
  json["count"] = count_stages(plan);
  for (const auto& [target, fit] : bench.stage_fits) {
    json["fits"].push_back({{"target", target},
                            {"serial", fit.model.serial},
                            {"overlap", fit.model.overlap},
                            {"launch_us", fit.model.launch_us},
                            {"samples", fit.samples},
                            {"median_error", fit.median_error},
                            {"largest_error", fit.largest_error}});
  }
  return json;
}

}  // namespace heddle::cli
