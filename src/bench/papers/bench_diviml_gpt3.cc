// DiviML's Table V: GPT-3 on six unequal nodes, one node's plan repeated against one plan for all.
#include <map>

#include "bench_diviml.h"
#include "heddle/cost/cost_model.h"
#include "heddle/graph/coarsen.h"
#include "heddle/graph/zoo.h"
#include "heddle/planners/diviml_throughput.h"
#include "heddle/planners/planner.h"

namespace heddle::bench {
namespace {

constexpr double kGpt3Seconds = 20;
constexpr int kNodes = 6, kDevicesPerNode = 5;
const char* const kModel = "gpt3-175b";
const char* const kSource = "DiviML, Table V";

// Attention and feed-forward part of each layer, what comes before and what comes after: "layer12.norm2..."
// is in layer 12's second part.
Result<std::shared_ptr<const Graph>> half_layers(const Graph& fine) {
  std::map<std::string, int> numbers;
  std::vector<int> group(fine.num_ops(), -1);
  std::map<std::string, bool> second;  // layers whose second part has begun
  for (const OpId v : fine.topological_order()) {
    const std::string& name = fine.op(v).name;
    std::string part = "embedding";
    if (name.starts_with("layer")) {
      const std::string layer = name.substr(0, name.find('.'));
      if (name.find(".norm2.") != std::string::npos) second[layer] = true;
      part = layer + (second[layer] ? ".feed" : ".attention");
    } else if (!second.empty()) {
      part = "logits";
    }
    group[v.index()] = numbers.try_emplace(part, static_cast<int>(numbers.size())).first->second;
  }
  return coarsen(fine, group);
}

// 16-bit weights; each input is 20 tokens.
Result<Problem> gpt3_problem(const std::string& layers) {
  HEDDLE_ASSIGN_OR_RETURN(const auto fine,
                          build_zoo_graph(kModel, {{"dtype", "f16"}, {"seq", "20"}, {"layers", layers}}));
  HEDDLE_ASSIGN_OR_RETURN(auto halves, half_layers(*fine));
  HEDDLE_ASSIGN_OR_RETURN(Problem problem,
                          bench_problem(std::move(halves), "preset:diviml-gpt3", *roofline_cost_model()));
  problem.objective = Objective::kThroughput;
  return problem;
}

BenchRow rate_row(const std::string& name, const PlanResult& result, double baseline, double reference) {
  const double rate = 1e6 / result.value_us;
  auto r = diviml_row("GPT-3 175B", result.planner, name + ", inputs per s over single node's", "x",
                      baseline > 0 ? rate / baseline : 1);
  r.beside("inputs per s", rate);
  r.against(reference / 4.8, kSource);
  return r;
}

Status add_gpt3(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows) {
  const double seconds = options.time_limit_s > 0 ? options.time_limit_s : kGpt3Seconds;
  const auto plan = [&](const Problem& problem, const ThroughputOptions& o) -> Result<PlanResult> {
    const PlannerOptions p = planner_options(options, seconds, control);
    const Stopwatch watch;
    HEDDLE_ASSIGN_OR_RETURN(auto output, plan_diviml_throughput(problem, p, o));
    return verified_result("diviml-throughput", problem, std::move(output), watch.seconds());
  };
  // One sixth of the layers on one node; six such nodes in a row have that node's period. Embedding and
  // classifier are counted on it, as they must be on some node.
  HEDDLE_ASSIGN_OR_RETURN(Problem sixth, gpt3_problem("16"));
  for (int d = 0; d < kDevicesPerNode; ++d) sixth.devices.emplace_back(static_cast<int32_t>(d));
  HEDDLE_ASSIGN_OR_RETURN(const auto single, plan(sixth, {.parts = 1, .symmetry = Symmetry::kNone}));
  const double baseline = 1e6 / single.value_us;
  rows.push_back(rate_row("single node, one lane", single, baseline, 4.8));
  HEDDLE_ASSIGN_OR_RETURN(const auto lanes, plan(sixth, {.parts = 4, .symmetry = Symmetry::kTime}));
  rows.push_back(rate_row("single node, four lanes", lanes, baseline, 5.7));
  HEDDLE_ASSIGN_OR_RETURN(const Problem whole, gpt3_problem("96"));
  SharedBound bounds(whole);
  const std::pair<Symmetry, double> kinds[] = {
      {Symmetry::kNone, 5.0}, {Symmetry::kBatches, 5.6}, {Symmetry::kTasks, 6.3}, {Symmetry::kTime, 6.3}};
  for (const auto& [symmetry, reference] : kinds) {
    HEDDLE_ASSIGN_OR_RETURN(const auto result, plan(whole, {.parts = 4, .symmetry = symmetry}));
    HEDDLE_RETURN_IF_ERROR(bounds.add(result));
    rows.push_back(rate_row(std::to_string(kNodes) + " nodes, symmetry " + symmetry_name(symmetry), result,
                            baseline, reference));
    auto time =
        diviml_row("GPT-3 175B", "diviml-throughput",
                   std::string("planning, symmetry ") + symmetry_name(symmetry), "s", result.planning_s);
    time.against(600, kSource);
    rows.push_back(time);
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto automatic,
                          plan_within("auto", whole, "GPT-3 175B", seconds, options, control));
  HEDDLE_RETURN_IF_ERROR(bounds.add(automatic));
  rows.push_back(rate_row(std::to_string(kNodes) + " nodes", automatic, baseline, 6.3));
  auto bound = diviml_row("GPT-3 175B", "bound", "upper bound over single node's", "x",
                          1e6 / bounds.best().us / baseline);
  bound.against(9.9 / 4.8, kSource);
  rows.push_back(bound);
  return {};
}

}  // namespace

Status bench_diviml_gpt3(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows) {
  if (!wanted(options, "gpt3")) return {};
  return whole_instance(control, rows, [&] { return add_gpt3(options, control, rows); });
}

}  // namespace heddle::bench
