// A pipeline of contiguous parts for throughput: the topological order is cut into intervals, one per device,
// so that the busiest device (or cut) is as little busy as possible (DiviML, section IV; EfficientMIP's
// contiguous max-load problem).
//
// For a load T, a dynamic program over sets of used devices asks which prefixes can be served with no load
// above T; devices of one class are interchangeable, so a set is a count per class. The least T comes from
// bisection between the area bound and the best single device. A cut's load is what crosses it, sent over the
// route between the two devices. O(rounds * sets * classes^2 * ops). Exact for a chain on devices with links
// of their own (up to the bisection's tolerance); exploits unequal devices and cut sizes; ignores placements
// that are not contiguous in this one order.
#include <algorithm>
#include <map>
#include <numeric>

#include "candidates.h"
#include "configurations.h"
#include "list_schedule.h"
#include "planners.h"

namespace heddle {
namespace {

constexpr int kRounds = 40;           // of bisection: 2^-40 of the range
constexpr size_t kMostStates = 2048;  // sets of devices; beyond it the slowest devices are left out
// Stands for "cannot run it" in sums that must stay finite; no load limit comes near it.
constexpr double kBlocked = 1e18;
constexpr double kMostWork = 4e9;  // rounds * states * classes^2 * ops

class PipelineSearch {
 public:
  PipelineSearch(const Problem& problem, const std::vector<DeviceId>& set, const Deadline& deadline)
      : problem_(problem), deadline_(deadline), n_(problem.graph->num_ops()) {
    group_devices(set);
    prefix_times();
    cut_bytes();
  }

  // The parts of the best pipeline: device and end (exclusive, in topological order) of each; empty when
  // there is none.
  std::vector<std::pair<DeviceId, size_t>> run() {
    double low = 0, high = upper();
    if (high >= kImpossible || !feasible(high)) return {};
    auto best = parts();
    for (int i = 0; i < kRounds && high - low > 1e-9 * high && !deadline_.should_stop(); ++i) {
      const double middle = (low + high) / 2;
      if (feasible(middle)) {
        best = parts();
        high = middle;
      } else {
        low = middle;
      }
    }
    return best;
  }

 private:
  struct Class {
    std::vector<DeviceId> devices;
    std::vector<double> sum;  // time of the first i ops
    std::vector<size_t> end;  // for the T at hand: how far a part that begins at i may reach
  };

  void group_devices(const std::vector<DeviceId>& set) {
    std::map<std::string, std::vector<DeviceId>> by_class;
    for (const auto d : set) {
      const auto& device = problem_.cluster->device(d);
      by_class[device.device_class + " " + std::to_string(device.speed)].push_back(d);
    }
    for (auto& [name, devices] : by_class) classes_.push_back({std::move(devices), {}, {}});
    const auto all_times = [&](const Class& c) {
      double sum = 0;
      for (size_t v = 0; v < n_; ++v) sum += problem_.costs->us(OpId(v), c.devices[0]);
      return sum;
    };
    std::stable_sort(classes_.begin(), classes_.end(),
                     [&](const Class& a, const Class& b) { return all_times(a) < all_times(b); });
    // Drop devices of the slowest class until the sets can be walked.
    while (num_states() > kMostStates || work() > kMostWork) {
      auto& last = classes_.back();
      if (classes_.size() == 1 && last.devices.size() == 1) break;
      last.devices.pop_back();
      if (last.devices.empty()) classes_.pop_back();
    }
  }

  size_t num_states() const {
    size_t states = 1;
    for (const auto& c : classes_) states = std::min(kMostStates * 2, states * (c.devices.size() + 1));
    return states;
  }

  double work() const {
    return static_cast<double>(kRounds) * static_cast<double>(num_states()) *
           static_cast<double>(classes_.size() * classes_.size()) * static_cast<double>(n_);
  }

  void prefix_times() {
    const auto topo = problem_.graph->topological_order();
    for (auto& c : classes_) {
      c.sum.assign(n_ + 1, 0);
      for (size_t i = 0; i < n_; ++i)
        c.sum[i + 1] = c.sum[i] + std::min(problem_.costs->us(topo[i], c.devices[0]), kBlocked);
    }
  }

  // Bytes of the tensors made before position i and read at or after it.
  void cut_bytes() {
    std::vector<double> change(n_ + 2, 0);
    const auto& graph = *problem_.graph;
    for (const auto& t : graph.tensors()) {
      if (!t.producer.valid() || t.consumers.empty()) continue;
      int last = 0;
      for (const auto c : t.consumers) last = std::max(last, graph.topological_position(c));
      const auto from = static_cast<size_t>(graph.topological_position(t.producer)) + 1;
      change[from] += static_cast<double>(t.bytes);
      change[static_cast<size_t>(last) + 1] -= static_cast<double>(t.bytes);
    }
    cut_.assign(n_ + 1, 0);
    double sum = 0;
    for (size_t i = 0; i <= n_; ++i) cut_[i] = sum += change[i];
  }

  // A load that any pipeline that can run at all keeps to: every op on its slowest device, and every cut.
  double upper() const {
    double best = kImpossible;
    for (const auto& c : classes_) best = std::min(best, c.sum[n_]);
    if (best < kBlocked) return best;
    double sum = 0;
    for (size_t v = 0; v < n_; ++v) {
      double slowest = 0;
      for (const auto& c : classes_) {
        const double t = problem_.costs->us(OpId(v), c.devices[0]);
        if (t < kImpossible) slowest = std::max(slowest, t);
      }
      sum += slowest;
    }
    for (size_t a = 0; a < classes_.size(); ++a) {
      for (size_t b = 0; b < classes_.size(); ++b) {
        for (size_t i = 0; i <= n_; ++i) {
          const double t = send_us(a, b, i);
          if (t < kImpossible) sum = std::max(sum, t);
        }
      }
    }
    return sum;
  }

  double send_us(size_t from, size_t to, size_t at) const {
    const auto a = classes_[from].devices[0];
    const auto b = from == to ? (classes_[to].devices.size() > 1 ? classes_[to].devices[1] : a)
                              : classes_[to].devices[0];
    return transfer_us(*problem_.cluster, a, b, static_cast<int64_t>(cut_[at]));
  }

  // reach_[state][last class] holds, for each prefix length, where its last part began (or kNo).
  bool feasible(double limit) {
    for (auto& c : classes_) {
      c.end.assign(n_ + 1, 0);
      size_t j = 0;
      for (size_t i = 0; i <= n_; ++i) {
        j = std::max(i, j);
        while (j < n_ && c.sum[j + 1] - c.sum[i] <= limit) ++j;
        c.end[i] = j;
      }
    }
    const auto k = classes_.size();
    from_.assign(num_states() * k * (n_ + 1), kNo);
    for (size_t state = 0; state < num_states(); ++state) {
      for (size_t c = 0; c < k; ++c) {
        if (count(state, c) < classes_[c].devices.size()) extend(state, c, limit);
      }
      for (size_t c = 0; c < k; ++c) {
        if (at(state, c, n_) != kNo) {
          final_state_ = state;
          final_class_ = c;
          return true;
        }
      }
    }
    return false;
  }

  size_t count(size_t state, size_t c) const {
    for (size_t i = 0; i < c; ++i) state /= classes_[i].devices.size() + 1;
    return state % (classes_[c].devices.size() + 1);
  }
  size_t step(size_t c) const {
    size_t s = 1;
    for (size_t i = 0; i < c; ++i) s *= classes_[i].devices.size() + 1;
    return s;
  }
  // Packs where a part began and the class before it.
  uint64_t& at(size_t state, size_t c, size_t i) {
    return from_[(state * classes_.size() + c) * (n_ + 1) + i];
  }

  // One more device of class c takes the ops after each prefix that `state` can serve.
  void extend(size_t state, size_t c, double limit) {
    const size_t next = state + step(c);
    const auto& reach = classes_[c].end;
    size_t filled = 0;  // prefixes up to here have been given an answer by an earlier begin
    for (size_t i = 0; i <= n_; ++i) {
      const auto before =
          state == 0 ? (i == 0 ? classes_.size() : kNoClass) : class_before(state, c, i, limit);
      if (before == kNoClass) continue;
      const size_t first = std::max(filled, i) + 1;
      for (size_t j = first; j <= reach[i]; ++j) {
        auto& slot = at(next, c, j);
        if (slot == kNo) slot = i * (classes_.size() + 1) + before;
      }
      filled = std::max(filled, reach[i]);
    }
  }

  // A class that serves the last part of prefix i in this state and whose cut to class c is light enough.
  size_t class_before(size_t state, size_t c, size_t i, double limit) {
    for (size_t b = 0; b < classes_.size(); ++b) {
      if (at(state, b, i) != kNo && send_us(b, c, i) <= limit) return b;
    }
    return kNoClass;
  }

  std::vector<std::pair<DeviceId, size_t>> parts() {
    std::vector<std::pair<size_t, size_t>> reversed;  // class, end
    size_t state = final_state_, c = final_class_, end = n_;
    while (end > 0) {
      const auto packed = at(state, c, end);
      reversed.emplace_back(c, end);
      state -= step(c);
      end = packed / (classes_.size() + 1);
      c = packed % (classes_.size() + 1);
    }
    std::vector<size_t> used(classes_.size(), 0);
    std::vector<std::pair<DeviceId, size_t>> list;
    for (size_t i = reversed.size(); i-- > 0;) {
      auto& u = used[reversed[i].first];
      list.emplace_back(classes_[reversed[i].first].devices[u++], reversed[i].second);
    }
    return list;
  }

  static constexpr uint64_t kNo = UINT64_MAX;
  static constexpr size_t kNoClass = SIZE_MAX;
  const Problem& problem_;
  const Deadline& deadline_;
  size_t n_;
  std::vector<Class> classes_;
  std::vector<double> cut_;
  std::vector<uint64_t> from_;
  size_t final_state_ = 0, final_class_ = 0;
};

class Pipeline final : public Planner {
 public:
  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions& options) override {
    BestPlan best(problem);
    for (const auto& set : device_configurations(problem)) {
      const auto parts = PipelineSearch(problem, set, options.deadline).run();
      if (!parts.empty()) offer(problem, parts, best);
    }
    if (!best.found() && problem.graph->num_ops() > 0)
      return no_room(problem, problem.graph->topological_order()[0]);
    return best.output(options.deadline.cancelled() ? StopReason::kCancelled
                       : options.deadline.expired() ? StopReason::kTimeLimit
                                                    : StopReason::kFinished);
  }

 private:
  static void offer(const Problem& problem, const std::vector<std::pair<DeviceId, size_t>>& parts,
                    BestPlan& best) {
    const auto topo = problem.graph->topological_order();
    Assignment a;
    a.order.assign(topo.begin(), topo.end());
    a.device.resize(topo.size());
    std::vector<int> segment(topo.size());
    size_t i = 0;
    for (size_t p = 0; p < parts.size(); ++p) {
      for (; i < parts[p].second; ++i) {
        a.device[topo[i].index()] = parts[p].first;
        segment[topo[i].index()] = static_cast<int>(p);
      }
    }
    best.offer(a, std::to_string(parts.size()) + " parts");
    a.segment = std::move(segment);
    best.offer(a, std::to_string(parts.size()) + " parts, each one segment");
  }
};

}  // namespace

std::unique_ptr<Planner> make_pipeline() { return std::make_unique<Pipeline>(); }

}  // namespace heddle
