// The sortinghat suite: one request's latency from host memory for the paper's models, shapes and machines
// (SortingHat, ICS'25, section 4), by the paper's planner, its baselines and Heddle's own. Graphs come from
// the zoo, coarsened by fusion as TVM does; times from the roofline with the devices' published rates, and
// times with direct host access are estimated from the route's rate (docs/cold-start.md).
#include <algorithm>
#include <cmath>
#include <map>

#include "heddle/cost/cost_model.h"
#include "heddle/graph/coarsen.h"
#include "heddle/graph/gcof.h"
#include "heddle/graph/zoo.h"
#include "heddle/plan/cold_start.h"
#include "heddle/planners/planner.h"
#include "heddle/planners/shared_bound.h"
#include "suites.h"

namespace heddle::bench {
namespace {

constexpr double kDefaultSeconds = 10;

struct Machine {
  const char* part;
  const char* text;
  const char* preset;
  std::vector<int> devices;  // numbered from 0; empty: all
  bool in_figure9 = false;   // one of the paper's servers
};

// Two GPUs: those with a bus each and two ways of NVLink between them (Figure 2(c)).
std::vector<Machine> machines() {
  return {{"v100-1", "V100", "preset:v100", {0}},
          {"v100-2", "2 V100", "preset:v100", {0, 3}},
          {"v100-4", "4 V100", "preset:v100", {}, true},
          {"v100-hetero", "2 V100 and 2 slowed", "preset:v100-hetero", {}, true},
          {"a6000", "3 A6000", "preset:a6000", {}, true},
          {"p4d", "p4d, 8 A100", "preset:p4d", {}}};
}

constexpr const char* kModels[] = {"gpt2-large", "gpt2-xl", "openllama-3b", "openllama-7b"};

struct Shape {
  const char* part;
  const char* batch;
  const char* seq;
};
constexpr Shape kShapes[] = {
    {"1x32", "1", "32"}, {"1x1024", "1", "1024"}, {"4x128", "4", "128"}, {"32x64", "32", "64"}};

constexpr const char* kBase = "cold-serial";
constexpr const char* kPlanners[] = {"cold-serial", "cold-single", "critical-path", "efficient-mip",
                                     "deepplan",    "sortinghat",  "sortinghat-cp", "cold-search"};

// Figure 9 in words (abstract, section 1): speed-ups over one GPU, mean and most on three servers. Section 6 has p4d's,
// for one shape.
struct Published {
  const char* planner;
  double mean, most;
};
constexpr Published kPublished[] = {
    {"sortinghat", 2.28, 2.96}, {"deepplan", 1.93, 2.14}, {"efficient-mip", 1.16, 1.62}};
constexpr double kPublishedP4d = 3.7;
constexpr const char* kShapeP4d = "32x64";
constexpr size_t kFigure9Servers = 3;

// Of names of one kind in --only: one of them, where any is given.
template <class List, class Name>
bool chosen(const BenchOptions& options, const List& all, const Name& name, std::string_view part) {
  bool any = false;
  for (const auto& entry : all) any = any || (!options.only.empty() && wanted(options, name(entry)));
  return !any || wanted(options, part);
}

Result<Problem> problem_of(const Machine& machine, const char* model, const Shape& shape) {
  HEDDLE_ASSIGN_OR_RETURN(const auto params, parse_zoo_params({std::string("batch=") + shape.batch,
                                                               std::string("seq=") + shape.seq}));
  HEDDLE_ASSIGN_OR_RETURN(const auto fine, build_zoo_graph(model, params));
  const auto fusion = fuse_ops(*fine, default_fusion_rules());
  HEDDLE_ASSIGN_OR_RETURN(auto graph, coarsen(*fine, fusion));
  HEDDLE_ASSIGN_OR_RETURN(Problem problem,
                          bench_problem(std::move(graph), machine.preset, *roofline_cost_model()));
  problem.objective = Objective::kColdLatency;
  for (const int d : machine.devices) problem.devices.emplace_back(d);
  problem.costs = with_host_access(problem);
  return problem;
}

// When the planner had a plan at least that good; its whole time where its trajectory does not tell; nothing where it
// had none.
std::optional<double> seconds_to(const PlanResult& result, double value_us) {
  const double rounded_us = value_us * (1 + kBoundRounding);
  if (result.value_us > rounded_us) return std::nullopt;
  for (const Incumbent& i : result.trajectory) {
    if (i.value_us <= rounded_us) return i.seconds;
  }
  return result.planning_s;
}

struct SpeedUps {
  double sum = 0, most = 0;
  int count = 0;
  void add(double speedup) {
    sum += speedup;
    most = std::max(most, speedup);
    ++count;
  }
};
struct Sums {
  SpeedUps all;      // but p4d
  SpeedUps figure9;  // on the paper's servers
  SpeedUps p4d, p4d_shape;
};

// What all instances together say.
struct Outcome {
  std::map<std::string, Sums> speedup;  // by planner
  size_t of_figure9 = 0;                // instances on the paper's servers
  size_t of_p4d_shape = 0;
  double log_latency = 0, worst_latency = 0, log_time = 0;
  int compared = 0, timed = 0;
};

BenchRow cold_row(const std::string& instance, const std::string& planner, const std::string& metric,
                  const std::string& unit, double value) {
  return bench_row("sortinghat", instance, planner, metric, unit, value);
}

Status bench_instance(const Machine& machine, const char* model, const Shape& shape,
                      const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows,
                      Outcome& outcome) {
  HEDDLE_ASSIGN_OR_RETURN(const auto problem, problem_of(machine, model, shape));
  const std::string name = std::string(model) + " (" + shape.batch + ", " + shape.seq + "), " + machine.text;
  rows.push_back(cold_row(name, "", "ops", "", static_cast<double>(problem.graph->num_ops())));
  const double limit = options.time_limit_s > 0 ? options.time_limit_s : kDefaultSeconds;
  const size_t begin = rows.size();
  SharedBound bound(problem);
  std::map<std::string, PlanResult> results;
  const bool on_p4d = std::string_view(machine.part) == "p4d",
             of_shape = std::string_view(shape.part) == kShapeP4d;
  outcome.of_figure9 += machine.in_figure9 ? 1 : 0;
  outcome.of_p4d_shape += on_p4d && of_shape ? 1 : 0;
  for (const char* planner : kPlanners) {
    // The program needs equal devices (section 4.2).
    if (std::string_view(planner) == "efficient-mip" && std::string_view(machine.part) == "v100-hetero")
      continue;
    if (control.cancel.cancelled()) return {};
    auto result = run_planner(*find_planner(planner), problem, planner_options(options, limit, control));
    if (!result.ok() && result.error().code() == Code::kInfeasible) continue;
    if (!result.ok()) return std::move(result).error().with_context(name + ", " + planner);
    auto latency = cold_row(name, planner, planner, "ms", result->value_us / 1e3);
    if (std::string_view(planner) == "critical-path")
      latency.value = result->counters["cold_path_us"] / 1e3;  // theoretical, as in Figure 9
    HEDDLE_RETURN_IF_ERROR(bound.add(*result));
    latency.seconds = result->planning_s;
    const auto base = results.find(kBase);
    if (base != results.end() && latency.value > 0) {
      latency.beside("speed-up", base->second.value_us / 1e3 / latency.value);
      Sums& sums = outcome.speedup[planner];
      const double speedup = *latency.baseline_value;
      (on_p4d ? sums.p4d : sums.all).add(speedup);
      if (machine.in_figure9) sums.figure9.add(speedup);
      if (on_p4d && of_shape) sums.p4d_shape.add(speedup);
    }
    if (std::string_view(planner) != "critical-path") set_trajectory(latency, result->trajectory, limit);
    rows.push_back(std::move(latency));
    results.emplace(planner, std::move(*result));
  }
  for (size_t i = begin; i < rows.size(); ++i) {
    if (rows[i].planner != "critical-path") rows[i].at_least(bound.best().us / 1e3);
  }
  share_best_known(rows, begin);
  const auto paper = results.find("sortinghat"), own = results.find("cold-search");
  if (paper == results.end() || own == results.end()) return {};
  const double ratio = own->second.value_us / paper->second.value_us;
  outcome.log_latency += std::log(ratio);
  outcome.worst_latency = std::max(outcome.worst_latency, ratio);
  ++outcome.compared;
  // Of both until they had the paper's value.
  const auto paper_s = seconds_to(paper->second, paper->second.value_us);
  const auto own_s = seconds_to(own->second, paper->second.value_us);
  if (!paper_s || !own_s) return {};
  outcome.log_time += std::log(std::max(*own_s, 1e-3) / std::max(*paper_s, 1e-3));
  ++outcome.timed;
  return {};
}

void add_summary(const Outcome& outcome, std::vector<BenchRow>& rows) {
  const auto add = [&](const std::string& metric, double value, std::optional<double> reference,
                       const std::string& source) {
    auto r = cold_row("all instances", "", metric, "x", value);
    r.against(reference, source);
    rows.push_back(std::move(r));
  };
  for (const char* planner : kPlanners) {
    const auto found = outcome.speedup.find(planner);
    if (found == outcome.speedup.end()) continue;
    const auto* paper = std::find_if(std::begin(kPublished), std::end(kPublished), [&](const Published& p) {
      return std::string_view(p.planner) == planner;
    });
    const Sums& s = found->second;
    const std::string name = planner;
    const auto both = [&](const SpeedUps& of, const std::string& where, const Published* figures) {
      if (of.count == 0) return;
      add(name + ": mean speed-up" + where, of.sum / of.count,
          figures != nullptr ? std::optional(figures->mean) : std::nullopt, "SortingHat, Figure 9");
      add(name + ": largest speed-up" + where, of.most,
          figures != nullptr ? std::optional(figures->most) : std::nullopt, "SortingHat, Figure 9");
    };
    both(s.all, "", nullptr);
    // The paper's are over all models and shapes.
    const bool whole = outcome.of_figure9 == kFigure9Servers * std::size(kModels) * std::size(kShapes);
    both(s.figure9, " on the paper's servers", whole && paper != std::end(kPublished) ? &*paper : nullptr);
    if (s.p4d.count > 0) add(name + ": largest on p4d", s.p4d.most, std::nullopt, "");
    if (s.p4d_shape.count > 0) {
      const bool stated = name == "sortinghat" && outcome.of_p4d_shape == std::size(kModels);
      add(name + ": largest on p4d, shape " + kShapeP4d, s.p4d_shape.most,
          stated ? std::optional(kPublishedP4d) : std::nullopt, "SortingHat, section 6");
    }
  }
  if (outcome.compared == 0) return;
  add("cold-search / sortinghat: mean latency", std::exp(outcome.log_latency / outcome.compared), 0.95,
      "target");
  add("cold-search / sortinghat: worst latency", outcome.worst_latency, 1, "target");
  if (outcome.timed > 0)
    add("cold-search / sortinghat: time to sortinghat's latency", std::exp(outcome.log_time / outcome.timed),
        0.1, "target");
  auto never = cold_row("all instances", "", "cold-search never had sortinghat's latency", "instances",
                        outcome.compared - outcome.timed);
  never.against(0, "target");
  rows.push_back(std::move(never));
}

}  // namespace

std::vector<std::string> sortinghat_parts() {
  std::vector<std::string> parts;
  for (const Machine& machine : machines()) parts.emplace_back(machine.part);
  parts.insert(parts.end(), std::begin(kModels), std::end(kModels));
  for (const Shape& shape : kShapes) parts.emplace_back(shape.part);
  return parts;
}

Status bench_sortinghat(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows) {
  Outcome outcome;
  const auto all = machines();
  for (const Machine& machine : all) {
    if (!chosen(
            options, all, [](const Machine& m) { return m.part; }, machine.part))
      continue;
    for (const char* model : kModels) {
      if (!chosen(
              options, kModels, [](const char* m) { return m; }, model))
        continue;
      for (const Shape& shape : kShapes) {
        if (!chosen(
                options, kShapes, [](const Shape& s) { return s.part; }, shape.part))
          continue;
        HEDDLE_RETURN_IF_ERROR(whole_instance(control, rows, [&] {
          return bench_instance(machine, model, shape, options, control, rows, outcome);
        }));
      }
    }
  }
  add_summary(outcome, rows);
  return {};
}

}  // namespace heddle::bench
