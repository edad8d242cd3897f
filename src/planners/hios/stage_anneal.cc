// A step takes one op out, times every slot it could go to (stage_state.h), and draws one by Boltzmann's
// weights: annealing with a heat bath (E. Aarts and J. Korst, "Simulated Annealing and Boltzmann Machines",
// 1989) instead of one random move that is mostly refused. Where one op alone is held fast by its neighbours,
// connected ops go out together, and the outcome is accepted by Metropolis's rule.
//
// What is annealed is the makespan and a small part of the longest path through the op that moves: without
// it most slots would be equal, since most ops are on no longest path.
#include <algorithm>
#include <cmath>

#include "search/anneal.h"
#include "stage_search.h"
#include "stage_state.h"

namespace heddle {
namespace {

// First and last temperature, in mean times of an op.
constexpr double kHot = 0.3, kCold = 0.004;
constexpr double kPathWeight = 0.03;
// Worse by more than so many temperatures is as good as impossible.
constexpr double kMostTemperatures = 12;
// Sets of connected ops: how often, how large, how often onto one device, how often a neighbour on another
// device may join them.
constexpr double kSetChance = 0.3, kOneDeviceChance = 0.5, kOtherDeviceChance = 0.3;
constexpr size_t kLargestSet = 4;
constexpr int kTriesToGrow = 12;
constexpr uint64_t kStepsPerLook = 64;  // between two looks at the clocks

class StageSearcher : public AnnealSearch {
 public:
  StageSearcher(const StageInstance& instance, const StageSchedule& start, const StageSearchOptions& options)
      : instance_(instance), options_(options), state_(instance), random_(options.seed) {
    state_.load(start);
    result_.best = start;
    result_.makespan_us = state_.makespan_us();
    in_set_.assign(instance.num_ops(), 0);
    double sum = 0;
    for (uint32_t v = 0; v < instance.num_ops(); ++v) sum += instance.us(v, state_.device(v));
    mean_us_ = instance.num_ops() > 0 ? sum / static_cast<double>(instance.num_ops()) : 0;
  }

  StageSearchResult run() {
    // Without times every schedule takes what its transfers take; there is nothing to scale temperatures by.
    if (instance_.num_ops() < 2 || !(mean_us_ > 0)) return std::move(result_);
    AnnealSchedule schedule{.hot = mean_us_ * kHot,
                            .cold = mean_us_ * kCold,
                            .moves_per_look = kStepsPerLook,
                            .follows_deadline = true};
    if (options_.steps > 0) schedule.moves = options_.steps;
    result_.steps = anneal(*this, schedule, options_.deadline, random_).moves;
    return std::move(result_);
  }

  // For anneal().
  bool done() const { return result_.makespan_us <= options_.bound_us; }
  void look(double share, double temperature) {
    temperature_ = temperature;
    if (!options_.on_progress || share < reported_) return;
    options_.on_progress(share, result_.makespan_us);
    reported_ = share + 1e-3;
  }
  bool propose() {
    set_.assign(1, static_cast<uint32_t>(random_.below(instance_.num_ops())));
    only_ = StageState::kAny;
    if (!random_.chance(kSetChance)) return true;
    grow_set();
    if (random_.chance(kOneDeviceChance))
      only_ = static_cast<uint32_t>(random_.below(instance_.num_devices()));
    return true;
  }
  // Takes the set out and puts it back: infinite where that fails. A slot for one op was drawn by Boltzmann's
  // weights, which is all the acceptance it needs.
  double rise(Metropolis& /*rule*/) {
    const double before = state_.makespan_us();
    double paths = 0;
    for (const uint32_t v : set_) paths -= state_.length_us(v);
    for (const uint32_t v : set_) state_.remove(v);
    for (const uint32_t v : set_) {
      slots_.clear();
      result_.timed += state_.slots(v, only_, before + kMostTemperatures * temperature_, slots_);
      if (slots_.empty()) return kNoTime;
      const StageState::Insertion slot = draw();
      paths += slot.length_us;
      if (!state_.insert(v, slot)) return kNoTime;
    }
    if (set_.size() == 1) return 0;
    return state_.makespan_us() - before + kPathWeight * paths / static_cast<double>(set_.size());
  }
  void keep() {
    state_.keep();
    if (state_.makespan_us() >= result_.makespan_us) return;
    result_.makespan_us = state_.makespan_us();
    result_.best = state_.schedule();
  }
  void undo() { state_.undo(); }

 private:
  // Ops joined by edges to the first, in the order of their starts.
  void grow_set() {
    const uint32_t device = state_.device(set_[0]);
    const size_t size = 2 + random_.below(kLargestSet - 1);
    in_set_[set_[0]] = 1;
    for (int i = 0; set_.size() < size && i < kTriesToGrow; ++i) {
      const uint32_t v = set_[random_.below(set_.size())];
      const auto in = instance_.inputs(v), out = instance_.outputs(v);
      if (in.empty() && out.empty()) break;
      const size_t which = random_.below(in.size() + out.size());
      const uint32_t w = which < in.size() ? in[which].op : out[which - in.size()].op;
      if (in_set_[w] || (state_.device(w) != device && !random_.chance(kOtherDeviceChance))) continue;
      in_set_[w] = 1;
      set_.push_back(w);
    }
    for (const uint32_t v : set_) in_set_[v] = 0;
    std::sort(set_.begin(), set_.end(), [&](uint32_t a, uint32_t b) {
      return state_.start_us(a) != state_.start_us(b) ? state_.start_us(a) < state_.start_us(b) : a < b;
    });
  }

  const StageState::Insertion& draw() {
    const double rest = state_.makespan_us();
    double least = kNoTime;
    weights_.clear();
    for (const auto& slot : slots_) {
      weights_.push_back(std::max(slot.length_us, rest) + kPathWeight * slot.length_us);
      least = std::min(least, weights_.back());
    }
    double sum = 0;
    for (double& w : weights_) {
      const double x = (w - least) / temperature_;
      w = x > kMostTemperatures ? 0 : std::exp(-x);
      sum += w;
    }
    double at = random_.unit() * sum;
    size_t last = 0;
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (weights_[i] == 0) continue;
      last = i;
      at -= weights_[i];
      if (at < 0) break;
    }
    return slots_[last];
  }

  const StageInstance& instance_;
  const StageSearchOptions options_;
  StageState state_;
  Random random_;
  StageSearchResult result_;
  double mean_us_ = 0, temperature_ = 0, reported_ = 0;
  uint32_t only_ = StageState::kAny;
  std::vector<uint32_t> set_;
  std::vector<uint8_t> in_set_;
  std::vector<StageState::Insertion> slots_;
  std::vector<double> weights_;
};

}  // namespace

StageSearchResult anneal_stages(const StageInstance& instance, const StageSchedule& start,
                                const StageSearchOptions& options) {
  return StageSearcher(instance, start, options).run();
}

}  // namespace heddle
