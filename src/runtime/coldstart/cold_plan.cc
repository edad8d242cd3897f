#include "heddle/runtime/cold_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "cold_cut.h"
#include "heddle/plan/builder.h"

namespace heddle {
namespace {

// If the number of segments is not given: minimum weight of a segment, and maximum number.
constexpr double kLeastWeight = 100;
constexpr double kMostUsual = 4;
// Search range of a border around its nominal position, in slices.
constexpr double kReach = 0.3;

DeviceId largest_device(const Problem& problem) {
  DeviceId best;
  for (const DeviceId d : problem.usable_devices()) {
    if (!best.valid() || problem.cluster->device(d).cores.size() > problem.cluster->device(best).cores.size())
      best = d;
  }
  return best;
}

// The positions behind which each segment except the last ends; ascending, distinct.
std::vector<size_t> choose_borders(const Graph& graph, std::span<const OpId> order, int segments) {
  std::vector<double> prefix = {0};
  for (const double weight : cold_weights(graph, order)) prefix.push_back(prefix.back() + weight);
  const auto cuts = cold_crossings(graph, order);
  if (segments == 0) segments = static_cast<int>(std::clamp(prefix.back() / kLeastWeight, 1.0, kMostUsual));
  const double slice = prefix.back() / segments;
  std::vector<size_t> borders;
  for (int b = 1; b < segments; ++b) {
    const double ideal = slice * b;
    size_t best = order.size();
    std::tuple<int64_t, int64_t, double> best_cost;
    for (size_t i = borders.empty() ? 0 : borders.back() + 1; i + 1 < order.size(); ++i) {
      const double distance = std::fabs(prefix[i + 1] - ideal);
      if (distance > kReach * slice) continue;
      const auto cost = std::make_tuple(cuts[i].tensors, cuts[i].bytes, distance);
      if (best == order.size() || cost < best_cost) {
        best = i;
        best_cost = cost;
      }
    }
    // An op larger than a slice may leave no position for this border.
    if (best < order.size()) borders.push_back(best);
  }
  return borders;
}

// Distributes each segment's measured time over its ops by their weights.
void spread(const Plan& plan, std::span<const double> weight, std::span<const double> us, double fixed_us,
            std::vector<double>& per_op) {
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    const auto& ops = plan.segments[s].ops;
    const double all = std::accumulate(ops.begin(), ops.end(), 0.0,
                                       [&](double sum, OpId op) { return sum + weight[op.index()]; });
    for (const OpId op : ops) per_op[op.index()] = std::max(0.0, us[s] - fixed_us) * weight[op.index()] / all;
  }
}

}  // namespace

Result<ColdCosts> fit_cold_costs(const Problem& problem, const ColdSample& whole, const ColdSample& parts) {
  for (const ColdSample* sample : {&whole, &parts}) {
    const size_t segments = sample->plan->segments.size();
    if (segments == 0 || sample->compile_us.size() != segments || sample->run_us.size() != segments)
      return Error(Code::kInvalidInput, "a measured start must name the times of every segment of its plan");
  }
  const Graph& graph = *problem.graph;
  const auto order = graph.topological_order();
  const auto by_place = cold_weights(graph, order);
  std::vector<double> weight(order.size());
  for (size_t i = 0; i < order.size(); ++i) weight[order[i].index()] = by_place[i];
  const auto sum = [](const std::vector<double>& us) { return std::accumulate(us.begin(), us.end(), 0.0); };
  ColdCosts costs;
  const double further =
      static_cast<double>(parts.plan->segments.size()) - static_cast<double>(whole.plan->segments.size());
  if (further > 0) {
    const double least = *std::min_element(parts.compile_us.begin(), parts.compile_us.end());
    costs.segment_us = std::clamp((sum(parts.compile_us) - sum(whole.compile_us)) / further, 0.0, least);
  }
  costs.compile_us.assign(order.size(), 0);
  costs.run_us.assign(order.size(), 0);
  spread(*parts.plan, weight, parts.compile_us, costs.segment_us, costs.compile_us);
  spread(*parts.plan, weight, parts.run_us, 0, costs.run_us);
  return costs;
}

double cold_cut_bound(const Problem& problem, const ColdCosts& costs, const ColdMachine& machine,
                      int threads) {
  const auto order = problem.graph->topological_order();
  double compile = costs.segment_us, run = 0, bound = 0;
  for (size_t i = order.size(); i-- > 0;) {
    const size_t op = order[i].index();
    compile += costs.compile_us[op];
    run += costs.run_us[op];
    bound = std::max(bound, costs.segment_us + costs.compile_us[op] + run);
  }
  return std::max({bound, compile / machine.load_workers, (compile + run * threads) / machine.cores});
}

Result<Plan> cold_plan(const Problem& problem, const ColdPlanOptions& options) {
  if (options.segments < 0)
    return Error(Code::kInvalidInput,
                 "a plan needs at least one segment, not " + std::to_string(options.segments));
  const DeviceId device = options.device.valid() ? options.device : largest_device(problem);
  if (!device.valid()) return Error(Code::kInvalidInput, "there is no usable device");
  const auto order = problem.graph->topological_order();
  Assignment a;
  a.order.assign(order.begin(), order.end());
  a.device.assign(order.size(), device);
  a.segment.resize(order.size());
  std::vector<size_t> borders;
  if (options.costs == nullptr) {
    borders = choose_borders(*problem.graph, order, options.segments);
  } else {
    const ColdCosts& costs = *options.costs;
    if (costs.compile_us.size() != order.size() || costs.run_us.size() != order.size())
      return Error(Code::kInvalidInput, "a cold start's costs must name the times of every op");
    const auto threads = std::max<size_t>(1, problem.cluster->device(device).cores.size());
    borders = search_cold_borders(*problem.graph, order, costs, options.machine, options.segments,
                                  static_cast<int>(threads));
  }
  size_t segment = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    a.segment[order[i].index()] = static_cast<int>(segment);
    if (segment < borders.size() && borders[segment] == i) ++segment;
  }
  return build_plan(problem, a);
}

}  // namespace heddle
