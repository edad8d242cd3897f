#include "heddle/runtime/cold_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>

#include "heddle/plan/builder.h"
#include "heddle/runtime/profiler.h"

namespace heddle {
namespace {

// If the number of segments is not given: minimum weight of a segment, and maximum number.
constexpr double kLeastWeight = 100;
constexpr double kMostUsual = 4;
// Search range of a border around its nominal position, in slices.
constexpr double kReach = 0.3;

constexpr double kBytesPerOp = 1 << 20;
// The producing segment converts a crossing tensor to the plain layout, the reading one back to its own: two
// passes at some 4 GB/s. This is small beside compiling and decides between otherwise equal cuts.
constexpr double kCrossingUsPerByte = 2.0 / 4000;
constexpr int kLeastMost = 4;
constexpr size_t kMostPlaces = 400;
// With up to kMostTried segments, all cuts at this many positions are tried: some 2,000.
constexpr size_t kFewPlaces = 24;
constexpr int kMostTried = 4;
constexpr double kLeastGain = 0.01;

// Tensors that cross a border, and their bytes.
struct ColdCrossing {
  int64_t tensors = 0, bytes = 0;
};

// [position] what crosses a border behind it. O(V + E).
std::vector<ColdCrossing> cold_crossings(const Graph& graph, std::span<const OpId> order) {
  std::vector<size_t> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) place[order[i].index()] = i;
  std::vector<ColdCrossing> cuts(order.size() + 1);
  for (size_t t = 0; t < graph.num_tensors(); ++t) {
    const Tensor& tensor = graph.tensor(TensorId(t));
    if (!tensor.producer.valid() || tensor.consumers.empty()) continue;
    size_t last = 0;
    for (const OpId reader : tensor.consumers) last = std::max(last, place[reader.index()]);
    const size_t from = place[tensor.producer.index()];
    // Differences, summed up below: the tensor crosses the borders from here to just before its last reader.
    ++cuts[from].tensors;
    cuts[from].bytes += tensor.bytes;
    --cuts[last].tensors;
    cuts[last].bytes -= tensor.bytes;
  }
  for (size_t i = 1; i < cuts.size(); ++i) {
    cuts[i].tensors += cuts[i - 1].tensors;
    cuts[i].bytes += cuts[i - 1].bytes;
  }
  return cuts;
}

// [position] an op's share of the compile time if nothing was measured: 1 per op plus its parameters in MB. A
// shared parameter counts at its first reader. docs/measurements/cold.md has the measurement behind this.
std::vector<double> cold_weights(const Graph& graph, std::span<const OpId> order) {
  std::vector<double> weights;
  std::set<ParamId> seen;
  for (const OpId op : order) {
    double weight = static_cast<double>(std::max<size_t>(finest_ops(graph, std::span(&op, 1)).size(), 1));
    for (const ParamId p : graph.op(op).params) {
      if (seen.insert(p).second) weight += static_cast<double>(graph.param(p).bytes) / kBytesPerOp;
    }
    weights.push_back(weight);
  }
  return weights;
}

class BorderSearch {
 public:
  BorderSearch(const Graph& graph, std::span<const OpId> order, const ColdCosts& costs,
               const ColdMachine& machine, int threads)
      : costs_(costs), machine_(machine), threads_(threads), crossings_(cold_crossings(graph, order)) {
    for (const OpId op : order) {
      compile_.push_back(compile_.back() + costs.compile_us[op.index()]);
      run_.push_back(run_.back() + costs.run_us[op.index()]);
    }
    choose_places();
  }

  std::vector<size_t> search(int most) const {
    std::vector<size_t> best;
    double best_us = cost(best);
    std::vector<size_t> grown;
    for (int segments = 2; segments <= most; ++segments) {
      grown = with_one_more(grown);
      if (static_cast<int>(grown.size()) + 1 < segments) break;  // no position is left
      descend(grown);
      for (std::vector<size_t> other : {evenly(segments), coarsely(segments)}) {
        if (other.size() != grown.size()) continue;
        descend(other);
        if (cost(other) < cost(grown)) grown = std::move(other);
      }
      const double us = cost(grown);
      if (us >= best_us * (1 - kLeastGain)) continue;
      best = grown;
      best_us = us;
    }
    return best;
  }

 private:
  // Positions for borders: all, or in long orders the one with the least crossing in each slice of the work.
  void choose_places() {
    const size_t borders = compile_.size() < 3 ? 0 : compile_.size() - 2;
    const double all = compile_.back() + run_.back();
    const double slice = borders > kMostPlaces ? all / kMostPlaces : 0;
    double end = 0;
    for (size_t i = 0; i < borders; ++i) {
      const double at = compile_[i + 1] + run_[i + 1];
      if (places_.empty() || at >= end) {
        places_.push_back(i);
        end = at + slice;
      } else if (crossings_[i].bytes < crossings_[places_.back()].bytes) {
        places_.back() = i;
      }
    }
  }

  // Duration of the request.
  double cost(const std::vector<size_t>& borders) const {
    std::vector<ColdTask> tasks;
    double across = 0;
    size_t from = 0;
    for (size_t b = 0; b <= borders.size(); ++b) {
      const size_t to = b < borders.size() ? borders[b] + 1 : compile_.size() - 1;
      ColdTask task;
      task.compile_us = costs_.segment_us + compile_[to] - compile_[from];
      task.run_us = run_[to] - run_[from];
      task.threads = threads_;
      if (b > 0) task.after.push_back(static_cast<int32_t>(b) - 1);
      if (b < borders.size())
        across += static_cast<double>(crossings_[borders[b]].bytes) * kCrossingUsPerByte;
      tasks.push_back(std::move(task));
      from = to;
    }
    const auto times = predict_cold_start(tasks, machine_);
    return times ? times->back().finish_us + across : std::numeric_limits<double>::infinity();
  }

  std::vector<size_t> with_one_more(const std::vector<size_t>& borders) const {
    std::vector<size_t> best = borders;
    double best_us = std::numeric_limits<double>::infinity();
    for (const size_t place : places_) {
      const auto at = std::lower_bound(borders.begin(), borders.end(), place);
      if (at != borders.end() && *at == place) continue;
      std::vector<size_t> more = borders;
      more.insert(more.begin() + (at - borders.begin()), place);
      const double us = cost(more);
      if (us >= best_us) continue;
      best = std::move(more);
      best_us = us;
    }
    return best;
  }

  // Borders for equal compile times.
  std::vector<size_t> evenly(int segments) const {
    std::vector<size_t> borders;
    for (const size_t place : places_) {
      const double share = compile_[place + 1] / compile_.back() * segments;
      if (share >= static_cast<double>(borders.size()) + 1 && static_cast<int>(borders.size()) + 1 < segments)
        borders.push_back(place);
    }
    return borders;
  }

  // The best of all cuts at a sample of the positions; empty if there would be too many.
  std::vector<size_t> coarsely(int segments) const {
    std::vector<size_t> best, trial;
    if (segments > kMostTried) return best;
    const size_t few = std::min(places_.size(), kFewPlaces);
    double best_us = std::numeric_limits<double>::infinity();
    const auto extend = [&](auto&& self, size_t from) -> void {
      if (static_cast<int>(trial.size()) + 1 == segments) {
        const double us = cost(trial);
        if (us < best_us) {
          best = trial;
          best_us = us;
        }
        return;
      }
      for (size_t i = from; i < few; ++i) {
        trial.push_back(places_[i * places_.size() / few]);
        self(self, i + 1);
        trial.pop_back();
      }
    };
    extend(extend, 0);
    return best;
  }

  // Moves one border at a time to its best position until none moves.
  void descend(std::vector<size_t>& borders) const {
    double us = cost(borders);
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t b = 0; b < borders.size(); ++b) {
        std::vector<size_t> trial = borders;
        for (const size_t place : places_) {
          if (b > 0 && place <= borders[b - 1]) continue;
          if (b + 1 < borders.size() && place >= borders[b + 1]) break;
          trial[b] = place;
          const double with = cost(trial);
          if (with >= us) continue;
          us = with;
          borders[b] = place;
          moved = true;
        }
      }
    }
  }

  const ColdCosts& costs_;
  const ColdMachine& machine_;
  int threads_;
  std::vector<ColdCrossing> crossings_;
  std::vector<double> compile_ = {0}, run_ = {0};  // prefix sums
  std::vector<size_t> places_;
};

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
      return invalid_input("a measured start must name the times of every segment of its plan");
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
    return invalid_input("a plan needs at least one segment, not " + std::to_string(options.segments));
  const DeviceId device = options.device.valid() ? options.device : largest_device(problem);
  if (!device.valid()) return invalid_input("there is no usable device");
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
      return invalid_input("a cold start's costs must name the times of every op");
    const auto threads = std::max<size_t>(1, problem.cluster->device(device).cores.size());
    const int most =
        options.segments > 0 ? options.segments : std::max(kLeastMost, 2 * options.machine.load_workers);
    borders =
        BorderSearch(*problem.graph, order, costs, options.machine, static_cast<int>(threads)).search(most);
  }
  size_t segment = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    a.segment[order[i].index()] = static_cast<int>(segment);
    if (segment < borders.size() && borders[segment] == i) ++segment;
  }
  return build_plan(problem, a);
}

}  // namespace heddle
