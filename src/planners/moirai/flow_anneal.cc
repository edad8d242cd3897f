// Moves: an op, or a connected set of ops of one device, goes to another device; an op with its incoming
// flows, or a flow alone, goes to another place in the order, between what it needs and what needs it. Half
// of the moves begin on the critical path.

#include <algorithm>

#include "flow_methods.h"
#include "flow_timer.h"
#include "search/anneal.h"

namespace heddle {
namespace {

constexpr int64_t kFirstRound = 2'000;      // moves
constexpr int64_t kRoundMovesPerTask = 60;  // of a first round of a large workload
// Temperature over makespan; of the two rounds of each length one begins mild, one hot: at a mean op's time
// at least, so that small workloads change at all.
constexpr double kMild = 0.003, kHot = 0.02, kColdest = 1e-6;
constexpr int kCriticalTries = 8, kRoomTries = 24;
constexpr uint64_t kMovesPerLook = 64;
constexpr size_t kLargestSet = 48;

class FlowSearch : public AnnealSearch {
 public:
  FlowSearch(const FlowWorkload& w, FlowDecisions start, const FlowAnnealOptions& options)
      : w_(w),
        options_(options),
        around_(w),
        timer_(w),
        random_(options.seed),
        used_(w.num_devices(), 0),
        in_set_(w.num_ops(), 0) {
    result_.best = std::move(start);
    restore_best();
    best_ = value_;
    double least = 0;
    for (const auto& op : w.ops)
      least += static_cast<double>(*std::min_element(op.ticks.begin(), op.ticks.end()));
    mean_op_ = least / static_cast<double>(w.num_ops());
  }

  FlowAnnealResult run() {
    int64_t length =
        std::max<int64_t>(kFirstRound, kRoundMovesPerTask * static_cast<int64_t>(w_.num_tasks()));
    const bool nothing_to_move = w_.num_ops() < 2 || w_.num_devices() < 1;
    double hot = kMild;
    if (!nothing_to_move) sweep();
    int idle = 0;
    for (int rounds = 1; !done() && !nothing_to_move; ++rounds) {
      const int64_t before = best_;
      round(length, hot);
      idle = best_ < before ? 0 : idle + 1;
      if (options_.idle_rounds > 0 && idle >= options_.idle_rounds) break;
      if (rounds % 2 == 0) {
        length *= 2;
        hot = kMild;
      } else {
        hot = std::max(kHot, mean_op_ / static_cast<double>(std::max<int64_t>(1, best_)));
      }
      restore_best();
      if (options_.on_round) options_.on_round();
    }
    return std::move(result_);
  }

  // For anneal().
  bool done() const {
    return stopped_ || best_ <= options_.target || (options_.moves > 0 && result_.moves >= options_.moves);
  }
  bool propose() {
    ++result_.moves;
    auto task = static_cast<uint32_t>(random_.below(w_.num_tasks()));
    if (random_.chance(0.5)) {
      for (int i = 0; i < kCriticalTries && !timer_.critical(task); ++i)
        task = static_cast<uint32_t>(random_.below(w_.num_tasks()));
    }
    const double kind = random_.unit();
    const bool is_op = task < w_.num_ops();
    const uint32_t op =
        is_op ? task
              : (random_.chance(0.5) ? w_.flows[task - w_.num_ops()].from : w_.flows[task - w_.num_ops()].to);
    if (w_.num_devices() > 1 && kind < 0.55) return change_devices(op);
    return !is_op && kind < 0.75 ? move_flow(task) : move_op(op);
  }
  double rise(Metropolis& rule) { return time(value_ + static_cast<int64_t>(std::min(rule.most(), 1e15))); }
  void keep() {
    timer_.keep();
    used_[old_] -= memory_;
    used_[device_] += memory_;
    value_ = next_;
    if (value_ >= best_) return;
    best_ = value_;
    result_.best = now_;
  }
  void undo() {
    timer_.drop();
    if (set_.empty())
      std::copy(saved_.begin(), saved_.end(), now_.order.begin() + static_cast<ptrdiff_t>(first_));
    for (size_t i = 0; i < set_.size(); ++i) now_.device[set_[i]] = i < there_ ? old_ : device_;
  }

 private:
  void round(int64_t length, double hot) {
    const double scale = static_cast<double>(std::max<int64_t>(1, best_));
    const AnnealSchedule schedule{.hot = scale * hot,
                                  .cold = scale * kColdest,
                                  .moves = static_cast<uint64_t>(length),
                                  .moves_per_look = kMovesPerLook};
    stopped_ = anneal(*this, schedule, options_.deadline, random_).cut_off;
  }

  // What is proposed makes the schedule so much longer; infinite where it is longer than `most`.
  double time(int64_t most) {
    next_ = timer_.time(now_, most, first_, last_);
    return next_ == kNever ? std::numeric_limits<double>::infinity() : static_cast<double>(next_ - value_);
  }

  size_t largest_closure() const { return std::max<size_t>(kLargestSet, w_.num_ops() / 4); }

  // Everything that an op needs, or that needs it, goes elsewhere where that is better: each op and device
  // once.
  void sweep() {
    for (uint32_t v = 0; v < w_.num_ops() && !stopped_; ++v) {
      if (v % kMovesPerLook == 0 && options_.deadline.should_stop()) stopped_ = true;
      for (const bool needed : {true, false}) {
        set_.clear();
        if (!may_join(v, now_.device[v])) continue;
        join(v);
        collect_closure(now_.device[v], needed, largest_closure());
        for (const uint32_t u : set_) in_set_[u] = 0;
        for (uint32_t k = 0; k < w_.num_devices(); ++k) {
          const auto set = set_;  // making room may add to it
          if (k != now_.device[v] && move_set(k)) {
            if (time(value_ - 1) < 0) {
              keep();
              break;
            }
            undo();
          }
          set_ = set;
        }
        ++result_.moves;
      }
    }
  }

  bool may_join(uint32_t op, uint32_t device) const {
    return !in_set_[op] && now_.device[op] == device && (options_.fixed.empty() || !options_.fixed[op]);
  }
  void join(uint32_t op) {
    in_set_[op] = 1;
    set_.push_back(op);
  }

  // Ops of one device that move together: one op, a connected set, readers of one op (with or without it),
  // what lies close together in the order, or what an op needs or what needs it.
  void collect_set(uint32_t op) {
    const uint32_t device = now_.device[op];
    set_.clear();
    join(op);
    const double kind = random_.unit();
    if (kind > 0.45) {
      const size_t size = 1 + random_.below(random_.chance(0.25) ? kLargestSet : 6);
      if (kind < 0.68)
        collect_connected(device, size);
      else if (kind < 0.8)
        collect_siblings(op, device, size);
      else if (kind < 0.92)
        collect_neighbours(op, device, size);
      else
        collect_closure(device, kind < 0.96, 1 + random_.below(largest_closure()));
    }
    for (const uint32_t v : set_) in_set_[v] = 0;
  }
  void collect_connected(uint32_t device, size_t size) {
    for (size_t tries = 0; set_.size() < size && tries < 4 * size; ++tries) {
      const uint32_t from = set_[set_.size() - 1 - random_.below(std::min<size_t>(set_.size(), 4))];
      const auto in = around_.in(from), out = around_.out(from);
      if (in.empty() && out.empty()) break;
      const size_t pick = random_.below(in.size() + out.size());
      const uint32_t next = pick < in.size() ? w_.flows[in[pick]].from : w_.flows[out[pick - in.size()]].to;
      if (may_join(next, device)) join(next);
    }
  }
  void collect_siblings(uint32_t op, uint32_t device, size_t size) {
    const auto in = around_.in(op);
    if (in.empty()) return;
    const uint32_t source = w_.flows[in[random_.below(in.size())]].from;
    if (random_.chance(0.3) && may_join(source, device)) join(source);
    const auto out = around_.out(source);
    const size_t offset = random_.below(out.size());
    for (size_t i = 0; i < out.size() && set_.size() < size; ++i) {
      const uint32_t next = w_.flows[out[(offset + i) % out.size()]].to;
      if (may_join(next, device)) join(next);
    }
  }
  // Breadth first; whole when it is no larger than the limit.
  void collect_closure(uint32_t device, bool needed, size_t most) {
    for (size_t i = 0; i < set_.size(); ++i) {
      for (const uint32_t q : needed ? around_.in(set_[i]) : around_.out(set_[i])) {
        const uint32_t next = needed ? w_.flows[q].from : w_.flows[q].to;
        if (set_.size() < most && may_join(next, device)) join(next);
      }
    }
  }
  void collect_neighbours(uint32_t op, uint32_t device, size_t size) {
    for (size_t i = timer_.place(op) + 1; i < now_.order.size() && set_.size() < size; ++i) {
      const uint32_t next = now_.order[i];
      if (next < w_.num_ops() && may_join(next, device)) join(next);
    }
  }

  bool change_devices(uint32_t op) {
    if (!options_.fixed.empty() && options_.fixed[op]) return false;
    const uint32_t old = now_.device[op];
    uint32_t device = static_cast<uint32_t>(random_.below(w_.num_devices() - 1));
    if (device >= old) ++device;
    // Next to a neighbour more often than anywhere.
    if (random_.chance(0.6)) {
      const auto in = around_.in(op), out = around_.out(op);
      if (!in.empty() || !out.empty()) {
        const size_t pick = random_.below(in.size() + out.size());
        const uint32_t near = pick < in.size() ? w_.flows[in[pick]].from : w_.flows[out[pick - in.size()]].to;
        if (now_.device[near] != old) device = now_.device[near];
      }
    }
    collect_set(op);
    return move_set(device);
  }

  // The set, all on one device, goes to another.
  bool move_set(uint32_t device) {
    old_ = now_.device[set_.front()];
    device_ = device;
    memory_ = 0;
    for (const uint32_t v : set_) memory_ += w_.ops[v].memory;
    there_ = set_.size();
    if (used_[device] + memory_ > w_.memory[device] && !make_room()) return false;
    first_ = now_.order.size(), last_ = 0;
    for (size_t i = 0; i < set_.size(); ++i) {
      const uint32_t v = set_[i];
      now_.device[v] = i < there_ ? device : old_;
      first_ = std::min<size_t>(first_, timer_.place(v));
      last_ = std::max<size_t>(last_, timer_.place(v));
      for (const uint32_t q : around_.in(v))
        first_ = std::min<size_t>(first_, timer_.place(w_.num_ops() + q));
      for (const uint32_t q : around_.out(v)) last_ = std::max<size_t>(last_, timer_.place(w_.num_ops() + q));
    }
    return true;
  }

  // Where the set does not fit, ops of that device come back for it.
  bool make_room() {
    for (int tries = 0; tries < kRoomTries; ++tries) {
      const auto v = static_cast<uint32_t>(random_.below(w_.num_ops()));
      const bool fixed = !options_.fixed.empty() && options_.fixed[v];
      const double rest = memory_ - w_.ops[v].memory;
      if (now_.device[v] != device_ || fixed || used_[old_] - rest > w_.memory[old_]) continue;
      if (std::find(set_.begin(), set_.end(), v) != set_.end()) continue;
      memory_ = rest;
      set_.push_back(v);
      if (used_[device_] + memory_ <= w_.memory[device_]) return true;
    }
    return false;
  }

  bool move_flow(uint32_t task) {
    const Flow& f = w_.flows[task - w_.num_ops()];
    const uint32_t after = timer_.place(f.from), before = timer_.place(f.to);
    const uint32_t at = timer_.place(task);
    const uint32_t to = after + 1 + static_cast<uint32_t>(random_.below(before - after - 1));
    if (to == at) return false;
    const uint32_t low = std::min(at, to), high = std::max(at, to) + 1;
    save(low, high);
    const auto begin = now_.order.begin();
    if (at < to)
      std::rotate(begin + at, begin + at + 1, begin + to + 1);
    else
      std::rotate(begin + to, begin + at, begin + at + 1);
    return true;
  }

  // The op goes just before some place between its feeders and its readers' flows; its incoming flows that
  // lie later than that place, or close before the op, come along.
  bool move_op(uint32_t op) {
    uint32_t low = 0, high = static_cast<uint32_t>(now_.order.size());
    for (const uint32_t q : around_.in(op)) low = std::max(low, timer_.place(w_.flows[q].from) + 1);
    for (const uint32_t q : around_.out(op))
      high = std::min(high, timer_.place(static_cast<uint32_t>(w_.num_ops()) + q));
    if (high - low < 2) return false;
    // Near places more often than far ones.
    const uint32_t at = timer_.place(op);
    uint32_t to = low + static_cast<uint32_t>(random_.below(high - low));
    if (random_.chance(0.6)) {
      const uint32_t reach = 24;
      const uint32_t a = std::max(low, at > reach ? at - reach : 0), b = std::min(high, at + reach + 1);
      to = a + static_cast<uint32_t>(random_.below(b - a));
    }
    if (to == at) return false;
    const uint32_t first = std::min(to, first_of_unit(op)), last = std::max(to, at) + 1;
    save(first, last);
    moving_.clear();
    rest_.clear();
    const bool forward = to > at;
    size_t rest_before = 0;
    for (uint32_t i = first; i < last; ++i) {
      const uint32_t task = now_.order[i];
      const bool mine = task == op || (task >= w_.num_ops() && w_.flows[task - w_.num_ops()].to == op);
      (mine ? moving_ : rest_).push_back(task);
      if (!mine && (forward ? i <= to : i < to)) rest_before = rest_.size();
    }
    auto out = now_.order.begin() + first;
    out = std::copy_n(rest_.begin(), rest_before, out);
    out = std::copy(moving_.begin(), moving_.end(), out);
    std::copy(rest_.begin() + static_cast<ptrdiff_t>(rest_before), rest_.end(), out);
    return true;
  }
  uint32_t first_of_unit(uint32_t op) const {
    uint32_t first = timer_.place(op);
    while (first > 0) {
      const uint32_t task = now_.order[first - 1];
      if (task < w_.num_ops() || w_.flows[task - w_.num_ops()].to != op) break;
      --first;
    }
    return first;
  }

  // These places of the order are about to change, and no device.
  void save(uint32_t low, uint32_t high) {
    saved_.assign(now_.order.begin() + low, now_.order.begin() + high);
    set_.clear();
    memory_ = 0;
    first_ = low, last_ = high - 1;
  }
  void restore_best() {
    now_ = result_.best;
    std::fill(used_.begin(), used_.end(), 0.0);
    for (size_t v = 0; v < w_.num_ops(); ++v) used_[now_.device[v]] += w_.ops[v].memory;
    value_ = timer_.restart(now_);
  }

  const FlowWorkload& w_;
  const FlowAnnealOptions& options_;
  const FlowAdjacency around_;
  FlowTimer timer_;
  Random random_;
  FlowDecisions now_;
  std::vector<double> used_;
  std::vector<uint8_t> in_set_;
  int64_t value_ = 0;
  double mean_op_ = 0;  // ticks: an op's least time
  bool stopped_ = false;
  // The move being tried: the places [first_, last_] change, or the devices of set_, of which the first
  // there_ ops go from old_ to device_ and the others come back for them; memory_ is what goes in all.
  std::vector<uint32_t> set_, saved_, moving_, rest_;
  size_t first_ = 0, last_ = 0, there_ = 0;
  uint32_t old_ = 0, device_ = 0;
  double memory_ = 0;
  int64_t next_ = 0;
  int64_t best_ = 0;
  FlowAnnealResult result_;
};

}  // namespace

FlowAnnealResult anneal_flows(const FlowWorkload& workload, FlowDecisions start,
                              const FlowAnnealOptions& options) {
  return FlowSearch(workload, std::move(start), options).run();
}

}  // namespace heddle
