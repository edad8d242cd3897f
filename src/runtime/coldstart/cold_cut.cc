#include "cold_cut.h"

#include <algorithm>
#include <limits>
#include <set>

#include "heddle/runtime/profiler.h"

namespace heddle {
namespace {

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

}  // namespace

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

std::vector<size_t> search_cold_borders(const Graph& graph, std::span<const OpId> order,
                                        const ColdCosts& costs, const ColdMachine& machine, int segments,
                                        int threads) {
  const int most = segments > 0 ? segments : std::max(kLeastMost, 2 * machine.load_workers);
  return BorderSearch(graph, order, costs, machine, threads).search(most);
}

}  // namespace heddle
