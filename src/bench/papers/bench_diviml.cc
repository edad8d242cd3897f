// The diviml suite: DiviML's Tables I, III, IV, V and Figure 4 on generated networks, the paper's figure
// beside each. The paper's networks are not public and its times were measured; what is compared are ratios.
#include "bench_diviml.h"

#include <algorithm>

#include "heddle/cost/cost_model.h"
#include "heddle/planners/batch_problem.h"

namespace heddle::bench {

using Family = RandomWiredOptions::Family;
using Dependency = RandomWiredOptions::Dependency;

std::string WiredCase::name() const {
  std::string text = family == Family::kErdosRenyi      ? "ER(0.2)"
                     : family == Family::kWattsStrogatz ? "WS(4,0.75)"
                                                        : "BA(5)";
  text += " N=" + std::to_string(nodes) + ", " + std::to_string(modules) +
          (modules == 1 ? " module" : " modules");
  if (modules == 1) return text;
  if (channels > 1) text += dependency == Dependency::kWeak ? ", wdep" : ", sdep";
  return text + (channels > 1 ? " " : ", ") + std::to_string(channels) + "-chan";
}

namespace {

constexpr int kParts = 4;
// Pictures that tensors hold where one request is planned.
constexpr int kPictures = 32;
// Of an op's time for one part of a batch: what it takes whatever the batch, as in the generator.
constexpr double kLaunchShare = 0.5;

Result<Problem> network(const WiredCase& which, int64_t pictures, uint64_t seed) {
  RandomWiredOptions o;
  o.batch = pictures;
  o.family = which.family;
  o.dependency = which.dependency;
  o.nodes = which.nodes;
  o.modules = which.modules;
  o.channels = which.channels;
  o.seed = seed;
  // The paper states neither sizes nor how ops differ. These bring the paper's heuristics (MET, Greedy, HEFT,
  // EA, SA over the best device) closest to Table I's columns; planners that solve had no part in the choice.
  o.device_affinity = 0.9;
  o.device_crossing = 0.7;
  // Table II, RWNNs.
  o.device_class_factors = {{"Xeon-Skylake", 7.10}, {"T4", 1.26}, {"A100", 1}};
  HEDDLE_ASSIGN_OR_RETURN(auto graph, generate_random_wired(o));
  HEDDLE_ASSIGN_OR_RETURN(Problem problem,
                          bench_problem(std::move(graph), "preset:diviml", *given_cost_model()));
  problem.execution = {.link_contention = false, .engine_contention = false};
  return problem;
}

}  // namespace

Result<Problem> wired_problem(const WiredCase& which, uint64_t seed) {
  return network(which, kPictures, seed);
}

Result<Problem> wired_batch_problem(const WiredCase& which, int images, uint64_t seed) {
  // Tensors and times are those of one part of the batch.
  HEDDLE_ASSIGN_OR_RETURN(const Problem one, network(which, std::max(1, images / kParts), seed));
  return batch_problem(one, kParts, [&](OpId op, DeviceId device, int parts) {
    return one.costs->us(op, device) * (kLaunchShare + (1 - kLaunchShare) * parts);
  });
}

void BestOf::add(const std::string& planner, double value_us) {
  const auto lower = [&](double& best) { best = best > 0 ? std::min(best, value_us) : value_us; };
  const bool is_constructive = planner == "met" || planner == "greedy" || planner == "heft";
  if (is_constructive) lower(constructive);
  if (is_constructive || planner == "ea" || planner == "sa") lower(heuristic);
  if (planner.ends_with("split")) lower(split);
  if (planner == "milp-split" || planner == "diviml-milp") lower(paper);
}

Result<PlanResult> plan_within(const char* planner, const Problem& problem, const std::string& instance,
                               double seconds, const BenchOptions& options, const Control& control) {
  NamedProgress progress(control.progress, instance);
  progress.report({.what = std::string("planner ") + planner});
  PlannerOptions o = planner_options(options, seconds, control);
  o.progress = &progress;
  return run_planner(*find_planner(planner), problem, o);
}

BenchRow diviml_row(const std::string& instance, const std::string& planner, const std::string& metric,
                    const std::string& unit, double value) {
  return bench_row("diviml", instance, planner, metric, unit, value);
}

Status bench_diviml(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows) {
  for (const auto part :
       {bench_diviml_latency, bench_diviml_speed, bench_diviml_throughput, bench_diviml_gpt3})
    HEDDLE_RETURN_IF_ERROR(part(options, control, rows));
  return {};
}

}  // namespace heddle::bench
