// The Moirai suite on the networks of the paper's table IV and its two clusters: latency and planning time of
// Moirai's planner, its baselines and Heddle's own, on single ops and coarsened by GCOF.
#include <algorithm>

#include "heddle/graph/coarsen.h"
#include "heddle/graph/gcof.h"
#include "heddle/graph/zoo.h"
#include "heddle/planners/planner.h"
#include "suites.h"

namespace heddle::bench {
namespace {

constexpr double kZooSeconds = 10;

struct Network {
  const char* instance;  // as the paper names it
  const char* model;
  std::vector<std::string> params;
  // Table V: seconds of generating a placement on the original and the coarsened graph.
  double msct_s, msct_gcof_s, getf_s, getf_gcof_s, moirai_s, moirai_gcof_s;
};

std::vector<Network> networks() {
  return {
      {"swin-1.8b", "swin-1.8b", {}, 17.63, 15.24, 120, 94.8, 129, 98.4},
      {"gpt3-330m", "gpt3-350m", {}, 15.92, 14.4, 75, 58.04, 82.8, 62.4},
      {"gpt3-13b", "gpt3-13b", {}, 125.53, 117.48, 942, 655.2, 990, 664.2},
      {"alphafold2-87m", "evoformer", {}, 20.18, 18.62, 106.8, 74.4, 114, 82.8},
      // The stack in as many blocks as give the op count of the paper's largest graph.
      {"alphafold2-3.2b, 50,560 ops",
       "evoformer-128",
       {"layers=175"},
       507.65,
       485.35,
       2145,
       1290,
       2305.2,
       1330.8},
  };
}

const char* const kZooPlanners[] = {"m-sct", "getf", "heft", "auto", "placeto", "moirai"};

std::optional<double> paper_seconds(const Network& n, std::string_view planner, bool coarse) {
  if (planner == "m-sct") return coarse ? n.msct_gcof_s : n.msct_s;
  if (planner == "getf") return coarse ? n.getf_gcof_s : n.getf_s;
  if (planner == "moirai") return coarse ? n.moirai_gcof_s : n.moirai_s;
  return std::nullopt;
}

BenchRow zoo_row(const std::string& instance, const std::string& planner, const std::string& metric,
                 const std::string& unit, double value) {
  return bench_row("moirai", instance, planner, metric, unit, value);
}

Status bench_network(const Network& network, const char* cluster, bool coarse, const BenchOptions& options,
                     const Control& control, std::vector<BenchRow>& rows) {
  HEDDLE_ASSIGN_OR_RETURN(const auto params, parse_zoo_params(network.params));
  HEDDLE_ASSIGN_OR_RETURN(auto graph, build_zoo_graph(network.model, params));
  const auto fine = static_cast<double>(graph->num_ops());
  const std::string name = std::string(network.instance) + ", " + std::string_view(cluster).substr(7).data() +
                           (coarse ? ", gcof" : "");
  if (coarse) {
    const Stopwatch watch;
    const auto fusion = fuse_ops(*graph, default_fusion_rules());
    HEDDLE_ASSIGN_OR_RETURN(graph, coarsen(*graph, fusion));
    rows.push_back(zoo_row(name, "", "coarsening", "s", watch.seconds()));
  }
  auto ops = zoo_row(name, "", "ops", "", static_cast<double>(graph->num_ops()));
  if (coarse) {
    ops.beside("single ops", fine);
  }
  rows.push_back(ops);
  HEDDLE_ASSIGN_OR_RETURN(const auto problem, bench_problem(graph, cluster, *roofline_cost_model()));
  const size_t begin = rows.size();
  std::optional<std::pair<std::string, double>> first;  // that has a plan
  for (const char* planner : kZooPlanners) {
    if (control.cancel.cancelled()) break;
    const double limit = options.time_limit_s > 0 ? options.time_limit_s : kZooSeconds;
    auto result = run_planner(*find_planner(planner), problem, planner_options(options, limit, control));
    // One planner's "no" does not hide the others' answers.
    if (!result.ok() && result.error().code() == Code::kInfeasible) continue;
    if (!result.ok()) return std::move(result).error().with_context(name + ", " + planner);
    auto latency = zoo_row(name, planner, std::string(planner) + " latency", "ms", result->value_us / 1e3);
    latency.at_least(result->bound.us / 1e3);
    latency.seconds = result->planning_s;
    set_trajectory(latency, result->trajectory, limit);
    if (first) {
      latency.beside(first->first, first->second);
    } else {
      first = {planner, latency.value};
    }
    rows.push_back(latency);
    auto seconds = zoo_row(name, planner, std::string(planner) + " planning", "s", result->planning_s);
    seconds.reference = paper_seconds(network, planner, coarse);
    if (!seconds.reference) continue;
    seconds.reference_source = "Moirai, table V";
    rows.push_back(seconds);
  }
  share_best_known(rows, begin);
  return {};
}

}  // namespace

Status bench_moirai_zoo(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows) {
  for (const auto& network : networks()) {
    if (!wanted(options, "zoo") && !wanted(options, network.model)) continue;
    for (const char* cluster : {"preset:moirai-inter", "preset:moirai-intra"}) {
      for (const bool coarse : {false, true})
        HEDDLE_RETURN_IF_ERROR(whole_instance(
            control, rows, [&] { return bench_network(network, cluster, coarse, options, control, rows); }));
    }
  }
  return {};
}

std::vector<std::string> moirai_parts() {
  std::vector<std::string> parts = {"workloads", "zoo"};
  for (const auto& network : networks()) parts.emplace_back(network.model);
  return parts;
}

Status bench_moirai(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows) {
  const bool all = options.only.empty();
  const auto parts = moirai_parts();
  const auto of_zoo = [&](const std::string& part) {
    return part != "workloads" && std::ranges::find(parts, part) != parts.end();
  };
  if (all || !std::ranges::all_of(options.only, of_zoo))
    HEDDLE_RETURN_IF_ERROR(bench_moirai_workloads(options, control, rows));
  return all || std::ranges::any_of(options.only, of_zoo) ? bench_moirai_zoo(options, control, rows)
                                                          : Status();
}

}  // namespace heddle::bench
