// The model. Variables: x(v, i), op v runs on device i; start S(v) and end E(v) of its stage; its own start
// P(v); the start Q(v) of its piece of work; makespan M. same(u, v): one stage. Minimise M with
//   sum over i of x(v, i) = 1;   S(v) <= P(v), P(v) + t(v, i) <= E(v) <= M where x(v, i)
//   P(w) >= P(u) + t(u, i) where x(u, i), and S(w) >= E(u) + way(i, j, b) where x(u, i), x(w, j) and not
//     same(u, w), for each tensor of b bytes from u to w
//   same(u, v): S, E and the device are equal. Of two ops that may not run after each other by the edges and
//     share an exclusive set of devices: same(u, v), or E(u) <= S(v), or E(v) <= S(u)
//   the pieces [Q(v), Q(v) + work(v, i)] lie in [S(v), E(v)] and do not overlap within an exclusive set
//   E(v) - S(v) >= overlap * t(v, i) + serial * (t(v, i) + sum over u of t(u, i) same(u, v)) where x(v, i)
//   P(v) >= earliest(v, i), M >= P(v) + t(v, i) + what follows v at least, where x(v, i)
// A stage takes at least the sum of its ops' work (bound_work()), so pieces laid end to end fit into it; and
// with serial + overlap <= 1 the last but one line holds for a stage of one group too, which takes the sum of
// its ops' times. Ops of one group are in the same stage, one after another. Times are whole ticks, rounded
// down: for the devices, stages and orders of any plan the least solution of what is left, all of it of the
// form "a >= b + constant", is by induction at most the plan's times / tick. So the bound times the tick is a
// bound on every plan. For stages of single ops on devices without contention the model is exact but for
// rounding and the stages' width.
#include "cp_stages.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "heddle/graph/analysis.h"
#include "heddle/plan/evaluator.h"
#include "heddle/plan/problem.h"
#include "heddle/plan/relaxation.h"
#include "heddle/plan/stage_list.h"

namespace heddle {
namespace {

constexpr int64_t kMostTicks = int64_t{1} << 40;

// The relaxation's times in ticks.
class StageTicks {
 public:
  StageTicks(const Problem& problem, const Relaxation& relaxation, double tick_us)
      : r(relaxation),
        n(problem.graph->num_ops()),
        k(relaxation.devices.size()),
        problem_(problem),
        tick_us_(tick_us),
        time_us_(problem.costs->bound_times()) {}

  double us(double ticks) const { return ticks * tick_us_; }
  // No plan has v where what it reads, or what reads it, cannot come or go; and ticks() takes finite times
  // only.
  bool possible(size_t v, size_t i) const {
    return r.t(v, i) < kImpossible && r.earliest_finish[v * k + i] < kImpossible &&
           r.remaining[v * k + i] < kImpossible;
  }
  int64_t time(size_t v, size_t i) const { return ticks(time_us(v, i)); }
  // The relaxation's times are work where stages are allowed: docs/bounds.md, "Stages".
  int64_t work(size_t v, size_t i) const { return ticks(r.t(v, i)); }
  int64_t head(size_t v, size_t i) const { return ticks(r.earliest_finish[v * k + i] - r.t(v, i)); }
  int64_t tail(size_t v, size_t i) const {
    return time(v, i) + std::max<int64_t>(0, ticks(r.remaining[v * k + i] - r.t(v, i)));
  }
  int64_t way(size_t i, size_t j, int64_t bytes) const {
    const double us = r.way_us(i, j, bytes);
    return std::isfinite(us) ? std::min(ticks(us), kMostTicks) : kMostTicks;
  }
  bool shares_pay(size_t i) const { return sharing(i).serial + sharing(i).overlap <= 1; }
  int64_t serial(size_t v, size_t i) const { return ticks(sharing(i).serial * time_us(v, i)); }
  int64_t overlap(size_t v, size_t i) const { return ticks(sharing(i).overlap * time_us(v, i)); }

  template <typename Visit>
  void for_reads(size_t w, const Visit& visit) const {
    for (const TensorId t : problem_.graph->op(OpId(w)).inputs) {
      const Tensor& tensor = problem_.graph->tensor(t);
      if (tensor.producer.valid()) visit(tensor.producer.index(), tensor.bytes);
    }
  }

  const Relaxation& r;
  const size_t n, k;

 private:
  int64_t ticks(double us) const { return static_cast<int64_t>(std::floor(us / tick_us_)); }
  double time_us(size_t v, size_t i) const {
    return time_us_[v * problem_.cluster->num_devices() + r.devices[i].index()];
  }
  StageModel sharing(size_t i) const { return problem_.costs->stage_model(r.devices[i]); }

  const Problem& problem_;
  const double tick_us_;
  const std::vector<double> time_us_;
};

// A plan's devices and stages, and their least times.
class StageHint {
 public:
  StageHint(const StageTicks& ticks, const Problem& problem, const std::vector<ListedStage>& stages);

  bool fits = false;                              // it names devices of the relaxation only
  std::vector<uint32_t> position, device, stage;  // per op; position: topological
  std::vector<int64_t> begin, own, piece, finish;
  int64_t horizon = 0;

 private:
  bool time(const StageTicks& t, size_t stages);
};

StageHint::StageHint(const StageTicks& ticks, const Problem& problem, const std::vector<ListedStage>& stages)
    : position(ticks.n), device(ticks.n, UINT32_MAX), stage(ticks.n, 0) {
  const auto order = problem.graph->topological_order();
  for (size_t i = 0; i < order.size(); ++i) position[order[i].index()] = static_cast<uint32_t>(i);
  const auto& devices = ticks.r.devices;
  for (size_t s = 0; s < stages.size(); ++s) {
    const auto at = std::find(devices.begin(), devices.end(), stages[s].device);
    for (const auto& group : stages[s].groups) {
      for (const OpId v : group) {
        if (at != devices.end()) device[v.index()] = static_cast<uint32_t>(at - devices.begin());
        stage[v.index()] = static_cast<uint32_t>(s);
      }
    }
  }
  fits = time(ticks, stages.size());
}

// Stage by stage in their order.
bool StageHint::time(const StageTicks& t, size_t stages) {
  std::vector<std::vector<uint32_t>> members(stages);
  for (uint32_t v = 0; v < t.n; ++v) {
    if (device[v] == UINT32_MAX || !t.possible(v, device[v])) return false;
    members[stage[v]].push_back(v);
  }
  begin.assign(t.n, 0), own.assign(t.n, 0), piece.assign(t.n, 0), finish.assign(t.n, 0);
  std::vector<int64_t> free(t.k, 0);
  for (auto& ops : members) {
    if (ops.empty()) continue;
    std::sort(ops.begin(), ops.end(), [&](uint32_t a, uint32_t b) { return position[a] < position[b]; });
    const size_t i = device[ops[0]];
    int64_t start = 0, total = 0, end = 0;
    for (const auto& set : t.r.exclusive) {
      if (std::find(set.begin(), set.end(), i) == set.end()) continue;
      for (const uint32_t j : set) start = std::max(start, free[j]);
    }
    for (const uint32_t v : ops) {
      t.for_reads(v, [&](size_t u, int64_t bytes) {
        if (stage[u] == stage[v]) return;
        start = std::max(start, finish[u] + t.way(device[u], i, bytes));
      });
      total += t.serial(v, i);
    }
    int64_t laid = start;
    for (const uint32_t v : ops) {
      own[v] = std::max(start, t.head(v, i));
      t.for_reads(v, [&](size_t u, int64_t) {
        if (stage[u] == stage[v]) own[v] = std::max(own[v], own[u] + t.time(u, i));
      });
      piece[v] = laid;
      laid += t.work(v, i);
      end =
          std::max({end, own[v] + t.time(v, i), laid, t.shares_pay(i) ? start + total + t.overlap(v, i) : 0});
    }
    for (const uint32_t v : ops) {
      begin[v] = start, finish[v] = end;
      horizon = std::max({horizon, end, own[v] + t.tail(v, i)});
    }
    free[i] = end;
  }
  return horizon < kMostTicks;
}

constexpr double kMostPairs = 60'000;  // pairs of ops x devices
constexpr double kTicksToHorizon = 1e6;

struct Pair {
  uint32_t u, v;
  CpLit same;
  std::optional<CpLit> u_first, v_first;  // absent where edges order the two
};

class Model {
 public:
  Model(const Problem& problem, const StageTicks& ticks, const StageHint& hint)
      : problem_(problem),
        t_(ticks),
        hint_(hint),
        n_(ticks.n),
        k_(ticks.k),
        m_(n_, k_, hint.horizon),
        makespan_(m_.cp.add_integer(0, hint.horizon, "makespan")) {
    m_.cp.hint(makespan_, hint_.horizon);
    for (size_t v = 0; v < n_; ++v) add_op(v);
    add_pairs();
    for (size_t w = 0; w < n_; ++w) t_.for_reads(w, [&](size_t u, int64_t bytes) { add_read(u, w, bytes); });
    for (const auto& set : t_.r.exclusive)
      m_.exclude(
          set, piece_start_, [&](size_t v, size_t i) { return t_.work(v, i); }, makespan_);
    m_.cp.minimise(CpExpr(makespan_));
  }

  const CpModel& cp() const { return m_.cp; }

  std::vector<ListedStage> decode(const std::vector<double>& values) const {
    const auto value = [&](CpVar var) { return ScheduleModel::value(var, values); };
    std::vector<ListedStage> stages;
    // Per device: its newest op; per op: its stage.
    std::vector<uint32_t> last(k_, UINT32_MAX), stage_of(n_);
    for (const uint32_t v : ScheduleModel::order({&start_, &end_}, values, hint_.position)) {
      const uint32_t device = m_.device(v, values), u = last[device];
      const bool joins =
          u != UINT32_MAX && value(start_[u]) == value(start_[v]) && value(end_[u]) == value(end_[v]);
      if (!joins) {
        stage_of[v] = static_cast<uint32_t>(stages.size());
        stages.push_back({t_.r.devices[device], {}});
      } else {
        stage_of[v] = stage_of[u];
      }
      last[device] = v;
      put(stages[stage_of[v]].groups, v);
    }
    return narrowed(std::move(stages));
  }

 private:
  // Joins v to the groups of the stage that hold what it reads.
  void put(std::vector<std::vector<OpId>>& groups, uint32_t v) const {
    std::vector<OpId> own;
    t_.for_reads(v, [&](size_t u, int64_t) {
      for (auto it = groups.begin(); it != groups.end();) {
        if (std::find(it->begin(), it->end(), OpId(u)) == it->end()) {
          ++it;
          continue;
        }
        own.insert(own.end(), it->begin(), it->end());
        it = groups.erase(it);
      }
    });
    std::sort(own.begin(), own.end(),
              [&](OpId a, OpId b) { return hint_.position[a.index()] < hint_.position[b.index()]; });
    own.push_back(OpId(static_cast<size_t>(v)));
    groups.push_back(std::move(own));
  }

  // Stages with more groups than the problem allows go one part after another.
  std::vector<ListedStage> narrowed(std::vector<ListedStage> stages) const {
    const auto width = static_cast<size_t>(problem_.execution.stage_width);
    std::vector<ListedStage> out;
    for (ListedStage& stage : stages) {
      for (size_t at = 0; at < stage.groups.size(); at += width) {
        const auto begin = stage.groups.begin() + static_cast<std::ptrdiff_t>(at);
        const auto end =
            stage.groups.begin() + static_cast<std::ptrdiff_t>(std::min(at + width, stage.groups.size()));
        out.push_back({stage.device, {begin, end}});
      }
    }
    return out;
  }

  void add_op(size_t v) {
    for (std::vector<CpVar>* vars : {&start_, &own_start_, &piece_start_, &end_})
      vars->push_back(m_.cp.add_integer(0, hint_.horizon));
    m_.cp.hint(start_[v], hint_.begin[v]);
    m_.cp.hint(own_start_[v], hint_.own[v]);
    m_.cp.hint(piece_start_[v], hint_.piece[v]);
    m_.cp.hint(end_[v], hint_.finish[v]);
    m_.after(own_start_[v], start_[v], 0);
    m_.after(piece_start_[v], start_[v], 0);
    m_.after(makespan_, end_[v], 0);
    for (size_t i = 0; i < k_; ++i) {
      const bool hinted = hint_.device[v] == i;
      // Nothing better than the hint has v there.
      if (!t_.possible(v, i) || (t_.head(v, i) + t_.tail(v, i) > hint_.horizon && !hinted)) continue;
      const CpLit there[] = {m_.may_run(v, i, hinted)};
      m_.after(own_start_[v], CpExpr(0), t_.head(v, i), there);
      m_.after(makespan_, own_start_[v], t_.tail(v, i), there);
      m_.after(end_[v], own_start_[v], t_.time(v, i), there);
      m_.after(end_[v], piece_start_[v], t_.work(v, i), there);
    }
    m_.choose_device(v);
  }

  bool may_meet(size_t u, size_t v) const {
    return std::any_of(t_.r.exclusive.begin(), t_.r.exclusive.end(), [&](const auto& set) {
      const auto here = [&](size_t w) {
        return std::any_of(set.begin(), set.end(), [&](uint32_t i) { return m_.possible(w, i); });
      };
      return here(u) && here(v);
    });
  }

  CpLit hinted(bool value) {
    const CpLit literal = m_.cp.add_literal();
    m_.hint(literal, value);
    return literal;
  }

  // Edges first, so that reads find their pairs; then all others that no path orders.
  void add_pairs() {
    read_pair_.resize(n_);
    const Reachability below(*problem_.graph);
    for (uint32_t w = 0; w < n_; ++w) {
      t_.for_reads(w, [&](size_t u, int64_t) {
        auto& known = read_pair_[w];
        if (std::any_of(known.begin(), known.end(), [&](size_t p) { return pairs_[p].u == u; })) return;
        known.push_back(pairs_.size());
        add_same({static_cast<uint32_t>(u), w, hinted(hint_.stage[u] == hint_.stage[w]), {}, {}});
      });
    }
    for (uint32_t u = 0; u < n_; ++u) {
      for (uint32_t v = u + 1; v < n_; ++v) {
        if (below.reaches(OpId(size_t{u}), OpId(size_t{v})) ||
            below.reaches(OpId(size_t{v}), OpId(size_t{u})) || !may_meet(u, v))
          continue;
        Pair pair{u, v, hinted(hint_.stage[u] == hint_.stage[v]), {}, {}};
        const bool apart = hint_.stage[u] != hint_.stage[v];
        pair.u_first = hinted(apart && hint_.finish[u] <= hint_.begin[v]);
        pair.v_first = hinted(apart && hint_.finish[v] <= hint_.begin[u] && hint_.finish[u] > hint_.begin[v]);
        m_.after(start_[v], end_[u], 0, std::span(&*pair.u_first, 1));
        m_.after(start_[u], end_[v], 0, std::span(&*pair.v_first, 1));
        for (const auto& set : t_.r.exclusive) {
          for (const uint32_t i : set) {
            for (const uint32_t j : set) {
              if (!m_.possible(u, i) || !m_.possible(v, j)) continue;
              std::vector<CpLit> ways{!m_.on(u, i), !m_.on(v, j), *pair.u_first, *pair.v_first};
              if (i == j) ways.push_back(pair.same);
              m_.cp.any_of(ways);
            }
          }
        }
        add_same(pair);
      }
    }
    for (size_t p = 0; p < pairs_.size(); ++p) {
      mates_.resize(n_);
      mates_[pairs_[p].u].push_back(p);
      mates_[pairs_[p].v].push_back(p);
    }
    for (size_t v = 0; v < n_ && !pairs_.empty(); ++v) add_length(v);
  }

  void add_same(const Pair& pair) {
    const std::span<const CpLit> when(&pair.same, 1);
    m_.cp.linear(0, CpExpr(start_[pair.u]).add(start_[pair.v], -1), 0, when);
    m_.cp.linear(0, CpExpr(end_[pair.u]).add(end_[pair.v], -1), 0, when);
    for (size_t i = 0; i < k_; ++i) {
      const CpLit a = m_.on(pair.u, i), b = m_.on(pair.v, i);
      if (m_.possible(pair.u, i) && m_.possible(pair.v, i)) {
        m_.cp.linear(0, CpExpr(0).add(a, 1).add(b, -1), 0, when);
      } else if (m_.possible(pair.u, i) || m_.possible(pair.v, i)) {
        const CpLit never = !(m_.possible(pair.u, i) ? a : b);
        m_.cp.all_of(std::span(&never, 1), when);
      }
    }
    pairs_.push_back(pair);
  }

  // The stage of v takes what its model says with v as the longest op.
  void add_length(size_t v) {
    for (size_t i = 0; i < k_; ++i) {
      if (!m_.possible(v, i) || !t_.shares_pay(i)) continue;
      CpExpr length(end_[v]);
      length.add(start_[v], -1);
      for (const size_t p : mates_[v]) {
        const size_t u = pairs_[p].u == v ? pairs_[p].v : pairs_[p].u;
        if (m_.possible(u, i)) length.add(pairs_[p].same, -t_.serial(u, i));
      }
      const CpLit here[] = {m_.on(v, i)};
      m_.after(std::move(length), CpExpr(0), t_.overlap(v, i) + t_.serial(v, i), here);
    }
  }

  void add_read(size_t u, size_t w, int64_t bytes) {
    CpLit same = pairs_[read_pair_[w][0]].same;
    for (const size_t p : read_pair_[w]) {
      if (pairs_[p].u == u) same = pairs_[p].same;
    }
    const CpLit apart[] = {!same};
    m_.after(start_[w], end_[u], 0, apart);
    m_.after(own_start_[w], own_start_[u], 0);
    for (size_t i = 0; i < k_; ++i) {
      const CpLit here[] = {m_.on(u, i)};
      if (m_.possible(u, i)) m_.after(own_start_[w], own_start_[u], t_.time(u, i), here);
    }
    m_.transfer(u, end_[u], w, start_[w], [&](size_t i, size_t j) { return t_.way(i, j, bytes); });
  }

  const Problem& problem_;
  const StageTicks& t_;
  const StageHint& hint_;
  const size_t n_, k_;
  ScheduleModel m_;
  CpVar makespan_;
  std::vector<CpVar> start_, own_start_, piece_start_, end_;
  std::vector<Pair> pairs_;
  std::vector<std::vector<size_t>> read_pair_, mates_;  // per op: its pairs
};

}  // namespace

bool cp_stages_fit(const Problem& problem) {
  const auto n = static_cast<double>(problem.graph->num_ops());
  return n > 0 && n * n / 2 * static_cast<double>(problem.usable_devices().size()) <= kMostPairs;
}

Result<CpStages> solve_cp_stages(const Problem& problem, const Relaxation& relaxation, const Plan& hint,
                                 CpScheduleOptions options) {
  HEDDLE_ASSIGN_OR_RETURN(const Timeline timeline, evaluate(problem, hint));
  CpStages result;
  result.stages = stages_of(hint);
  const StageTicks ticks(problem, relaxation, std::max(timeline.makespan_us, 1e-9) / kTicksToHorizon);
  const StageHint start(ticks, problem, result.stages);
  if (!start.fits) return result;
  const Model model(problem, ticks, start);
  // Who runs before whom is nearly all of it, of which linear programs know nothing: a layered graph of 20
  // ops on two devices is solved in 6 s without them and not in 30 s with them.
  options.linear_relaxation = false;
  HEDDLE_ASSIGN_OR_RETURN(const auto answer,
                          solve_relaxed(model.cp(), ticks.us(1), problem.graph->num_ops(), options));
  if (!answer.values.empty()) result.stages = model.decode(answer.values);
  result.bound_us = answer.bound_us;
  result.complete = answer.complete;
  return result;
}

}  // namespace heddle
