#include "etf.h"

#include <algorithm>
#include <queue>

namespace heddle {
namespace {

class Etf {
 public:
  Etf(const FlatProblem& flat, const EtfRules& rules, const Reserve& reserve)
      : flat_(flat),
        rules_(rules),
        k_(flat.num_devices()),
        schedule_(flat, {.insertion = false, .contention = false}, reserve),
        queues_(k_, Queues(Later(rules.priority))),
        device_end_(k_, 0),
        last_on_(k_, kNoOp),
        placed_(flat.num_ops(), 0),
        ways_left_(flat.num_ops(), 0),
        tier_(flat.num_ops(), 0),
        missing_(flat.num_ops()),
        start_on_(flat.num_ops() * k_, kImpossible) {}

  // nullopt when an op fits nowhere or the deadline was cancelled.
  std::optional<FlatPlan> run(const Deadline& deadline) {
    for (uint32_t v = 0; v < flat_.num_ops(); ++v) {
      missing_[v] = static_cast<uint32_t>(flat_.inputs(v).size());
      if (missing_[v] == 0 && !make_ready(v)) return std::nullopt;
    }
    for (size_t done = 0; done < flat_.num_ops();) {
      if (done % 1024 == 0 && deadline.cancelled()) return std::nullopt;
      const Candidate best = next();
      if (best.op == kNoOp) return std::nullopt;
      // Memory may have been taken since the op became ready.
      const auto slot = schedule_.earliest(best.op)[best.device];
      if (!slot.possible()) {
        if (!drop(best.op, best.device)) return std::nullopt;
        continue;
      }
      place(best.op, best.device, slot);
      ++done;
      for (const uint32_t t : flat_.outputs(best.op)) {
        for (const uint32_t r : flat_.readers(t)) {
          if (--missing_[r] == 0 && !make_ready(r)) return std::nullopt;
        }
      }
    }
    return schedule_.decisions();
  }

 private:
  struct Candidate {
    uint32_t op = kNoOp, device = 0;
    double start = kImpossible;
  };
  struct Later {
    explicit Later(const std::vector<double>& p) : priority(&p) {}
    bool operator()(uint32_t a, uint32_t b) const {
      const double pa = (*priority)[a], pb = (*priority)[b];
      return pa != pb ? pa < pb : a > b;
    }
    const std::vector<double>* priority;
  };
  using Waiting = std::pair<double, uint32_t>;
  // Ready ops whose data is there when the device is free, by priority; the others by when it is.
  struct Queues {
    explicit Queues(const Later& order) : now(order) {}
    std::priority_queue<uint32_t, std::vector<uint32_t>, Later> now;
    std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> later;
  };

  uint8_t tier(uint32_t v, size_t i) const { return rules_.tier.empty() ? 0 : rules_.tier[v][i]; }

  bool make_ready(uint32_t v) {
    const auto& slots = schedule_.earliest(v);
    for (size_t i = 0; i < k_; ++i)
      start_on_[v * k_ + i] = slots[i].possible() ? slots[i].start : kImpossible;
    tier_[v] = 0;
    return offer_tier(v);
  }
  // Into the queues of the devices of the op's tier, or of the first one behind it that has any.
  bool offer_tier(uint32_t v) {
    int least = 256;
    for (size_t i = 0; i < k_; ++i) {
      if (start_on_[v * k_ + i] < kImpossible && tier(v, i) >= tier_[v])
        least = std::min<int>(least, tier(v, i));
    }
    if (least == 256) return false;
    tier_[v] = static_cast<uint16_t>(least);
    ways_left_[v] = 0;
    for (size_t i = 0; i < k_; ++i) {
      if (start_on_[v * k_ + i] == kImpossible || tier(v, i) != least) continue;
      queues_[i].later.emplace(start_on_[v * k_ + i], v);
      ++ways_left_[v];
    }
    return true;
  }
  bool drop(uint32_t v, size_t device) {
    start_on_[v * k_ + device] = kImpossible;
    if (--ways_left_[v] > 0) return true;
    ++tier_[v];
    return offer_tier(v);
  }
  bool queued(uint32_t v, size_t device) const {
    return !placed_[v] && start_on_[v * k_ + device] < kImpossible && tier(v, device) == tier_[v];
  }

  // The child that the device waits for after its last op.
  uint32_t awaited(size_t device) const {
    if (rules_.favourite.empty() || last_on_[device] == kNoOp) return kNoOp;
    const uint32_t child = rules_.favourite[last_on_[device]];
    return child == kNoOp || placed_[child] ? kNoOp : child;
  }
  // When the child could start elsewhere: until then the device is kept for it.
  double kept_until(size_t device, uint32_t child) const {
    const uint32_t parent = last_on_[device];
    double least = kImpossible;
    for (size_t i = 0; i < k_; ++i) {
      if (i == device) continue;
      double arrival = 0;
      for (const uint32_t t : flat_.inputs(child)) {
        if (flat_.producer(t) == parent)
          arrival = std::max(arrival, flat_.transfer_us(device, i, flat_.bytes(t)));
      }
      least = std::min(least, arrival);
    }
    return least == kImpossible ? device_end_[device] : schedule_.finish_us(parent) + least;
  }
  // An op whose data is everywhere already gains nothing by waiting.
  bool urgent(uint32_t v, double at) const {
    for (size_t i = 0; i < k_; ++i) {
      const double start = start_on_[v * k_ + i];
      if (start < kImpossible && start > at) return false;
    }
    return true;
  }

  Candidate on_device(size_t i) {
    auto& q = queues_[i];
    while (!q.later.empty() && q.later.top().first <= device_end_[i]) {
      if (queued(q.later.top().second, i)) q.now.push(q.later.top().second);
      q.later.pop();
    }
    while (!q.now.empty() && !queued(q.now.top(), i)) q.now.pop();
    while (!q.later.empty() && !queued(q.later.top().second, i)) q.later.pop();
    const auto device = static_cast<uint32_t>(i);
    Candidate best;
    if (!q.now.empty())
      best = {q.now.top(), device, device_end_[i]};
    else if (!q.later.empty())
      best = {q.later.top().second, device, q.later.top().first};
    const uint32_t child = awaited(i);
    if (child == kNoOp) return best;
    if (missing_[child] == 0 && queued(child, i)) {
      const double start = std::max(device_end_[i], start_on_[child * k_ + i]);
      if (best.op == kNoOp || start <= best.start) return {child, device, start};
    }
    if (best.op != kNoOp && best.op != child && !urgent(best.op, best.start))
      best.start = std::max(best.start, kept_until(i, child));
    return best;
  }

  Candidate next() {
    Candidate best;
    for (size_t i = 0; i < k_; ++i) {
      const Candidate c = on_device(i);
      if (c.op == kNoOp) continue;
      const bool better = best.op == kNoOp || c.start < best.start ||
                          (c.start == best.start &&
                           (rules_.priority[c.op] > rules_.priority[best.op] ||
                            (c.op == best.op && flat_.us(c.op, i) < flat_.us(best.op, best.device))));
      if (better) best = c;
    }
    return best;
  }

  void place(uint32_t v, uint32_t device, const ListSchedule::TimeSlot& slot) {
    schedule_.place(v, device);
    placed_[v] = 1;
    device_end_[device] = std::max(device_end_[device], slot.finish);
    last_on_[device] = v;
  }

  const FlatProblem& flat_;
  const EtfRules& rules_;
  const size_t k_;
  ListSchedule schedule_;
  std::vector<Queues> queues_;
  std::vector<double> device_end_;
  std::vector<uint32_t> last_on_;
  std::vector<uint8_t> placed_;
  std::vector<uint32_t> ways_left_;
  std::vector<uint16_t> tier_;
  std::vector<uint32_t> missing_;
  std::vector<double> start_on_;  // op x device, when the op became ready
};

}  // namespace

Result<PlannerOutput> plan_earliest_time_first(
    const Problem& problem, const PlannerOptions& options, const std::string& name,
    const std::function<EtfRules(const FlatProblem& flat)>& make_rules) {
  EtfRules rules;
  size_t made_for = 0;  // number of devices
  return plan_by_construction(problem, options, name, [&](const FlatProblem& flat, const Reserve& reserve) {
    if (made_for != flat.num_devices()) rules = make_rules(flat);
    made_for = flat.num_devices();
    return Etf(flat, rules, reserve).run(options.deadline);
  });
}

}  // namespace heddle
