#include "lns_window.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/param_use.h"
#include "schedule_model.h"

namespace heddle {
namespace {

// Ticks of the window's time. More would be more exact than need be, and make CP-SAT slow: where constraints
// form a cycle it tightens domains by one duration at a time. So nothing in the window starts later than some
// lengths of it either, and transfers and loads of a few ticks wait for no other.
constexpr double kTicks = 1 << 13;
constexpr int64_t kLatest = 3 << 13, kLeastWait = 16;
constexpr double kMostTicks = 1LL << 40;
constexpr int64_t kReach = int64_t{1} << 50;
// With more transfers than this that may wait for each other they are taken to pass each other.
constexpr size_t kMostTransfers = 3000;
constexpr size_t kNone = SIZE_MAX;

// What the rest of a plan leaves to a window of it.
struct Surroundings {
  std::vector<double> free_us;    // per device: when the last op before ends
  std::vector<double> tail_us;    // per device: the longest chain that begins with the first op after
  std::vector<double> rest_us;    // per op after: the longest chain from its start
  double least_us = 0;            // the makespan that the rest alone needs
  std::vector<double> loaded_us;  // per resource: loads of ops before (cold)
  ParamRoom params;               // of ops outside; read where memory has limits, or from a cold start
};

// Of the places [first, last) of the plan's order. O(V + E).
class Survey {
 public:
  Survey(const FlatProblem& flat, const TimedPlan& timed, size_t first, size_t last)
      : flat_(flat),
        plan_(*timed.plan),
        timed_(timed),
        first_(first),
        last_(last),
        around_{.params = ParamRoom(flat)} {}

  Surroundings run() {
    before();
    after();
    makespan();
    params();
    return std::move(around_);
  }

 private:
  void before() {
    around_.free_us.assign(flat_.num_devices(), 0);
    for (size_t i = 0; i < first_; ++i) {
      const uint32_t v = plan_.order[i];
      double& free = around_.free_us[plan_.device[v]];
      free = std::max(free, (*timed_.finish)[v]);
    }
  }

  void after() {
    around_.rest_us.assign(flat_.num_ops(), 0);
    around_.tail_us.assign(flat_.num_devices(), 0);
    for (size_t i = plan_.order.size(); i-- > last_;) {
      const uint32_t v = plan_.order[i], d = plan_.device[v];
      double rest = around_.tail_us[d];
      for (const uint32_t o : flat_.overlaps(d)) rest = std::max(rest, around_.tail_us[o]);
      for (const uint32_t t : flat_.outputs(v)) {
        for (const uint32_t w : flat_.readers(t))
          rest = std::max(rest, flat_.transfer_us(d, plan_.device[w], flat_.bytes(t)) + around_.rest_us[w]);
      }
      around_.rest_us[v] = around_.tail_us[d] = rest + flat_.us(v, d);
    }
  }

  // Chains that pass by the window.
  void makespan() {
    double& least = around_.least_us;
    for (size_t d = 0; d < flat_.num_devices(); ++d)
      least = std::max(least, around_.free_us[d] + around_.tail_us[d]);
    std::vector<uint8_t> is_before(flat_.num_ops(), 0);
    for (size_t i = 0; i < first_; ++i) {
      is_before[plan_.order[i]] = 1;
      least = std::max(least, (*timed_.finish)[plan_.order[i]]);
    }
    for (size_t i = last_; i < plan_.order.size(); ++i) {
      const uint32_t w = plan_.order[i];
      double head = 0;
      for (const uint32_t t : flat_.inputs(w)) {
        const uint32_t u = flat_.producer(t);
        if (is_before[u])
          head = std::max(head, (*timed_.finish)[u] +
                                    flat_.transfer_us(plan_.device[u], plan_.device[w], flat_.bytes(t)));
      }
      least = std::max(least, head + around_.rest_us[w]);
    }
  }

  void params() {
    const bool cold = flat_.is_cold();
    if (!flat_.has_limits() && !cold) return;
    around_.loaded_us.assign(flat_.num_resources(), 0);
    for (size_t i = 0; i < plan_.order.size(); ++i) {
      if (i >= first_ && i < last_) continue;
      const uint32_t v = plan_.order[i], d = plan_.device[v];
      const int64_t bytes = around_.params.add(v, d);
      if (!cold || bytes == 0 || i >= last_ || !flat_.needs_load(d)) continue;
      const auto& way = flat_.load_way(d);
      for (const uint32_t r : way.resources) around_.loaded_us[r] += way.time_us(bytes);
    }
  }

  const FlatProblem& flat_;
  const FlatPlan& plan_;
  const TimedPlan& timed_;
  const size_t first_, last_;
  Surroundings around_;
};

class ScheduleWindow {
 public:
  ScheduleWindow(const FlatProblem& flat, const TimedPlan& timed, const Neighbourhood& area)
      : flat_(flat),
        plan_(*timed.plan),
        timed_(timed),
        k_(flat.num_devices()),
        first_(area.first),
        around_(Survey(flat, timed, area.first, area.last).run()),
        m_(area.last - area.first, k_, kReach) {
    ops_.assign(plan_.order.begin() + static_cast<long>(area.first),
                plan_.order.begin() + static_cast<long>(area.last));
    position_.resize(flat.num_ops());
    for (size_t i = 0; i < plan_.order.size(); ++i) position_[plan_.order[i]] = i;
    origin_us_ = timed.makespan_us;
    for (const uint32_t v : ops_) origin_us_ = std::min(origin_us_, (*timed.start)[v]);
    double end_us = origin_us_;
    for (const uint32_t v : ops_) end_us = std::max(end_us, (*timed.finish)[v]);
    tick_us_ = std::max(end_us - origin_us_, 1e-9 * timed.makespan_us + 1e-12) / kTicks;
    // Rounding may lengthen a chain by half a tick per link.
    horizon_ = ticks(timed.makespan_us) + 4 * static_cast<int64_t>(ops_.size()) + 64;
    choose_devices(area);
  }

  // Nothing in the window can shorten the plan.
  bool hopeless() const { return around_.least_us >= timed_.makespan_us * (1 - 1e-12); }

  void build() {
    makespan_ = m_.cp.add_integer(ticks(around_.least_us), horizon_);
    for (size_t p = 0; p < ops_.size(); ++p) add_op(p);
    choose_contention();
    for (size_t p = 0; p < ops_.size(); ++p) {
      for (const uint32_t t : flat_.inputs(ops_[p])) {
        if (local(flat_.producer(t)) == kNone) add_tensor(t);
      }
      for (const uint32_t t : flat_.outputs(ops_[p])) add_tensor(t);
    }
    if (flat_.is_cold()) add_loads();
    add_exclusion();
    m_.limit_params(flat_, around_.params, ops_, plan_.device);
    m_.cp.minimise(CpExpr(makespan_));
  }
  const CpModel& cp() const { return m_.cp; }

  FlatPlan decode(const std::vector<double>& values) const {
    FlatPlan plan = plan_;
    std::vector<uint32_t> position;
    for (size_t p = 0; p < ops_.size(); ++p) {
      plan.device[ops_[p]] = m_.device(p, values);
      position.push_back(flat_.topological_position(ops_[p]));
    }
    size_t place = first_;
    for (const uint32_t p : ScheduleModel::order({&start_}, values, position)) plan.order[place++] = ops_[p];
    return plan;
  }

 private:
  size_t local(uint32_t op) const {
    const size_t at = position_[op];
    return at >= first_ && at < first_ + ops_.size() ? at - first_ : kNone;
  }
  bool is_before(uint32_t op) const { return position_[op] < first_; }
  int64_t ticks(double us) const {
    return std::llround(std::clamp((us - origin_us_) / tick_us_, -kMostTicks, kMostTicks));
  }
  int64_t length(double us) const { return std::llround(std::clamp(us / tick_us_, 0.0, kMostTicks)); }
  int64_t latest() const { return std::min(horizon_, kLatest); }
  int64_t run(size_t p, size_t i) const { return length(flat_.us(ops_[p], i)); }
  bool possible(size_t p, size_t i) const { return m_.possible(p, i); }
  CpLit on(size_t p, size_t i) const { return m_.on(p, i); }
  // The end of p when it runs on i.
  CpExpr end_on(size_t p, size_t i) const { return CpExpr(start_[p]).add(run(p, i)); }
  // The end of p wherever it runs.
  CpExpr end_of(size_t p) const {
    return m_.end_of(p, start_[p], [&](size_t i) { return run(p, i); });
  }

  void choose_devices(const Neighbourhood& area) {
    for (size_t p = 0; p < ops_.size(); ++p) m_.runs(p, plan_.device[ops_[p]]);
    is_free_.assign(ops_.size(), 0);
    std::map<uint32_t, std::vector<size_t>> units;
    for (size_t f = 0; f < area.free.size(); ++f) {
      const size_t p = local(area.free[f]);
      is_free_[p] = 1;
      units[area.unit.empty() ? static_cast<uint32_t>(f) : area.unit[f]].push_back(p);
    }
    for (const auto& [number, members] : units) {
      std::vector<uint32_t> devices;
      const uint32_t now = plan_.device[ops_[members[0]]];
      for (uint32_t i = 0; i < k_; ++i) {
        const bool wanted = i == now || area.devices.empty() ||
                            std::find(area.devices.begin(), area.devices.end(), i) != area.devices.end();
        const bool able = std::all_of(members.begin(), members.end(),
                                      [&](size_t p) { return flat_.us(ops_[p], i) < kImpossible; });
        if (wanted && able) devices.push_back(i);
      }
      if (devices.size() < 2) continue;
      std::vector<CpLit> one;
      for (const uint32_t i : devices) {
        one.push_back(m_.may_run(members[0], i, i == now));
        for (const size_t p : members) m_.runs_if(p, i, one.back());
      }
      m_.cp.exactly_one(one);
    }
  }

  void add_op(size_t p) {
    const uint32_t v = ops_[p];
    start_.push_back(m_.cp.add_integer(0, latest()));
    m_.cp.hint(start_[p], std::clamp<int64_t>(ticks((*timed_.start)[v]), 0, latest()));
    std::vector<int64_t> tails;
    for (size_t i = 0; i < k_; ++i) {
      if (!possible(p, i)) {
        tails.push_back(0);
        continue;
      }
      double free = around_.free_us[i], tail = around_.tail_us[i];
      for (const uint32_t o : flat_.overlaps(i)) {
        free = std::max(free, around_.free_us[o]);
        tail = std::max(tail, around_.tail_us[o]);
      }
      tails.push_back(length(tail));
      if (ticks(free) > 0) m_.after(start_[p], CpExpr(0), ticks(free), m_.all({on(p, i)}));
    }
    m_.after(makespan_, m_.end_of(p, start_[p], [&](size_t i) { return run(p, i) + tails[i]; }), 0);
  }

  void choose_contention() {
    size_t transfers = 0;
    for (size_t p = 0; p < ops_.size(); ++p) {
      size_t places = 0;
      for (size_t i = 0; i < k_; ++i) places += possible(p, i) ? 1 : 0;
      for (const uint32_t t : flat_.outputs(ops_[p]))
        transfers += flat_.readers(t).empty() ? 0 : places * (k_ - 1);
    }
    // Together with cores that devices share, propagation takes longer than it gains.
    contention_ = flat_.has_contention() && flat_.core_groups().empty() && transfers <= kMostTransfers;
  }

  // A tensor that the window makes or reads, to every device where it may be read.
  void add_tensor(uint32_t t) {
    const uint32_t u = flat_.producer(t);
    const size_t pu = local(u);
    if (pu == kNone && !seen_.insert(t).second) return;
    std::set<size_t> joined;
    for (uint32_t j = 0; j < k_; ++j) {
      bool is_there = false;  // by a transfer for an op before
      double rest = -1;       // of a later reader there
      std::vector<size_t> inside;
      for (const uint32_t w : flat_.readers(t)) {
        const size_t pw = local(w);
        if (pw != kNone) {
          if (possible(pw, j)) inside.push_back(pw);
        } else if (plan_.device[w] == j) {
          if (is_before(w))
            is_there = true;
          else
            rest = std::max(rest, around_.rest_us[w]);
        }
      }
      if (inside.empty() && (rest < 0 || pu == kNone)) continue;
      if (pu != kNone) {
        for (const size_t w : inside) {
          if (joined.insert(w).second) m_.after(start_[w], end_of(pu), 0);
        }
        if (rest >= 0) m_.after(makespan_, end_of(pu), length(rest));
      }
      std::optional<CpVar> moves;
      for (uint32_t i = 0; i < k_; ++i) {
        if (pu == kNone ? plan_.device[u] != i : !possible(pu, i)) continue;
        const CpLit source = pu == kNone ? m_.always() : on(pu, i);
        add_way(t, i, j, source, inside, rest, is_there, moves);
      }
    }
  }

  void add_way(uint32_t t, uint32_t i, uint32_t j, CpLit source, const std::vector<size_t>& inside,
               double rest, bool is_there, std::optional<CpVar>& moves) {
    const uint32_t u = flat_.producer(t);
    const size_t pu = local(u);
    const auto& way = flat_.way(i, j);
    const CpExpr ready = pu == kNone ? CpExpr(ticks((*timed_.finish)[u])) : end_on(pu, i);
    if (way.passage == Passage::kNone && i != j) {
      for (const size_t w : inside) m_.forbid(m_.all({source, on(w, j)}));
      if (rest >= 0) m_.forbid(m_.all({source}));
      return;
    }
    const int64_t delay = i == j ? 0 : length(flat_.transfer_us(i, j, flat_.bytes(t)));
    const bool waits = contention_ && !is_there && i != j && way.passage == Passage::kRoute &&
                       !way.resources.empty() && delay >= kLeastWait;
    // Without a delay the rows that hold wherever the producer runs are enough.
    if (delay > 0 || pu == kNone) {
      for (const size_t w : inside) m_.after(start_[w], ready, delay, m_.all({source, on(w, j)}));
      if (rest >= 0 && pu != kNone) m_.after(makespan_, ready, delay + length(rest), m_.all({source}));
    }
    if (!waits) return;
    if (!moves) {
      moves = m_.cp.add_integer(0, latest());
      m_.cp.hint(*moves, std::clamp<int64_t>(ticks((*timed_.finish)[u]), 0, latest()));
    }
    std::vector<CpLit> when = m_.all({source});
    if (rest < 0) {
      // Only when something in the window reads it there.
      const CpLit needed = m_.cp.add_literal();
      bool now = plan_.device[u] == i;
      bool any = false;
      for (const size_t w : inside) {
        any = any || plan_.device[ops_[w]] == j;
        m_.implies(m_.all({source, on(w, j)}), needed);
      }
      m_.hint(needed, now && any);
      when = {needed};
    }
    m_.after(*moves, ready, 0, when);
    hold(way, *moves, delay, when);
    for (const size_t w : inside) m_.after(start_[w], *moves, delay, m_.all({source, on(w, j)}));
    if (rest >= 0 && pu != kNone) m_.after(makespan_, *moves, delay + length(rest), m_.all({source}));
  }

  void hold(const RoutedTransfer& way, CpVar from, int64_t ticks, const std::vector<CpLit>& when) {
    const CpInterval interval = m_.cp.interval(from, CpExpr(ticks), CpExpr(from).add(ticks), when);
    for (const uint32_t r : way.resources) m_.hold(r, interval);
  }

  int64_t new_bytes(size_t p, size_t i) const { return around_.params.new_bytes(ops_[p], i); }

  void add_loads() {
    for (size_t p = 0; p < ops_.size(); ++p) {
      std::optional<CpVar> loads;
      for (size_t i = 0; i < k_; ++i) {
        if (!possible(p, i) || !flat_.needs_load(i)) continue;
        const auto& way = flat_.load_way(i);
        const int64_t bytes = new_bytes(p, i);
        if (bytes == 0 || way.passage == Passage::kFree) continue;
        const auto here = m_.all({on(p, i)});
        if (way.passage == Passage::kNone) {
          m_.forbid(here);
          continue;
        }
        if (!loads) loads = m_.cp.add_integer(std::max(ticks(0), -8 * kLatest), latest());
        const int64_t time = length(way.time_us(bytes));
        double from = 0;
        for (const uint32_t r : way.resources) from = std::max(from, around_.loaded_us[r]);
        m_.after(*loads, CpExpr(0), std::max(ticks(from), -8 * kLatest), here);
        m_.after(start_[p], *loads, time, here);
        if (time >= kLeastWait) hold(way, *loads, time, here);
      }
    }
  }

  void add_exclusion() {
    const auto exclude = [&](std::span<const uint32_t> set) {
      std::vector<CpInterval> busy;
      bool open = set.size() > 1;
      size_t last = kNone;
      for (size_t p = 0; p < ops_.size(); ++p) {
        for (const uint32_t i : set) {
          if (!possible(p, i)) continue;
          open = open || is_free_[p];
          if (set.size() == 1 && !is_free_[p]) {
            if (last != kNone) m_.after(start_[p], end_on(last, i), 0);
            last = p;
          }
          if (run(p, i) > 0)
            busy.push_back(m_.cp.interval(start_[p], CpExpr(run(p, i)), end_on(p, i), m_.all({on(p, i)})));
        }
      }
      if (open && busy.size() > 1) m_.cp.no_overlap(busy);
    };
    for (uint32_t i = 0; i < k_; ++i) exclude(std::span(&i, 1));
    for (const auto& group : flat_.core_groups()) exclude(group);
    m_.add_resources();
  }

  const FlatProblem& flat_;
  const FlatPlan& plan_;
  const TimedPlan timed_;
  const size_t k_, first_;
  std::vector<uint32_t> ops_;
  std::vector<size_t> position_;
  double origin_us_ = 0, tick_us_ = 1;
  int64_t horizon_ = 0;
  const Surroundings around_;
  std::vector<uint8_t> is_free_;
  bool contention_ = false;
  ScheduleModel m_;
  CpVar makespan_;
  std::vector<CpVar> start_;
  std::set<uint32_t> seen_;
};

}  // namespace

Result<WindowAnswer> solve_window(const FlatProblem& flat, const TimedPlan& timed, const Neighbourhood& area,
                                  const SolveOptions& options) {
  WindowAnswer answer;
  answer.plan = *timed.plan;
  ScheduleWindow window(flat, timed, area);
  if (window.hopeless()) {
    answer.complete = true;
    return answer;
  }
  window.build();
  HEDDLE_ASSIGN_OR_RETURN(const Solution solution, solve(window.cp(), options));
  // Infeasible: rounding, or transfers in an order that the evaluator serves otherwise, leave the plan itself
  // no place.
  answer.complete = solution.status == SolveStatus::kOptimal || solution.status == SolveStatus::kInfeasible;
  if (!solution.has_values()) return answer;
  answer.plan = window.decode(solution.values);
  answer.changed = answer.plan.device != timed.plan->device || answer.plan.order != timed.plan->order;
  return answer;
}

}  // namespace heddle
