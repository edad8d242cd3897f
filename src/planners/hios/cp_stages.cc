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
#include <numeric>
#include <optional>

#include "heddle/graph/analysis.h"
#include "heddle/plan/evaluator.h"
#include "heddle/solve/cp.h"

namespace heddle {
namespace {

constexpr double kMostPairs = 60'000;  // pairs of ops x devices
constexpr double kTicksToHorizon = 1e6;
constexpr int64_t kMostTicks = int64_t{1} << 40;

struct Pair {
  uint32_t u, v;
  CpLit same;
  std::optional<CpLit> u_first, v_first;  // absent where edges order the two
};

class Model {
 public:
  Model(const Problem& problem, const Relaxation& relaxation, const std::vector<ListedStage>& hint,
        double hint_us)
      : problem_(problem), r_(relaxation), n_(problem.graph->num_ops()), k_(r_.devices.size()) {
    tick_us_ = std::max(hint_us, 1e-9) / kTicksToHorizon;
    time_us_ = problem.costs->bound_times();
    take_hint(hint);
  }

  // False when the hint does not fit the relaxation (it names devices that are not there).
  bool build() {
    if (hint_device_.empty() || !time_hint()) return false;
    makespan_ = cp_.add_integer(0, horizon_, "makespan");
    cp_.hint(makespan_, horizon_);
    for (size_t v = 0; v < n_; ++v) add_op(v);
    add_pairs();
    add_reads();
    add_work();
    cp_.minimise(CpExpr(makespan_));
    return true;
  }

  const CpModel& cp() const { return cp_; }
  double us(double ticks) const { return ticks * tick_us_; }

  std::vector<ListedStage> decode(const std::vector<double>& values) const {
    const auto value = [&](CpVar var) { return values[static_cast<size_t>(var.index)]; };
    std::vector<uint32_t> device(n_), order(n_);
    for (size_t v = 0; v < n_; ++v) {
      for (uint32_t i = 0; i < k_; ++i) {
        if (x_[v * k_ + i] && value(x_[v * k_ + i]->var()) > 0.5) device[v] = i;
      }
    }
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      const double sa = value(start_[a]), sb = value(start_[b]);
      if (sa != sb) return sa < sb;
      const double ea = value(end_[a]), eb = value(end_[b]);
      return ea != eb ? ea < eb : position_[a] < position_[b];
    });
    std::vector<ListedStage> stages;
    std::vector<uint32_t> last(k_, UINT32_MAX),
        stage_of(n_);  // per device: its newest op and that op's stage
    for (const uint32_t v : order) {
      const uint32_t u = last[device[v]];
      const bool joins =
          u != UINT32_MAX && value(start_[u]) == value(start_[v]) && value(end_[u]) == value(end_[v]);
      if (!joins) {
        stage_of[v] = static_cast<uint32_t>(stages.size());
        stages.push_back({r_.devices[device[v]], {}});
      } else {
        stage_of[v] = stage_of[u];
      }
      last[device[v]] = v;
      put(stages[stage_of[v]].groups, v);
    }
    return narrowed(std::move(stages));
  }

 private:
  int64_t ticks(double us) const { return static_cast<int64_t>(std::floor(us / tick_us_)); }
  // No plan has v where what it reads, or what reads it, cannot come or go; and ticks() takes finite times
  // only.
  bool possible(size_t v, size_t i) const {
    return r_.t(v, i) < kImpossible && r_.earliest_finish[v * k_ + i] < kImpossible &&
           r_.remaining[v * k_ + i] < kImpossible;
  }
  double time_us(size_t v, size_t i) const {
    return time_us_[v * problem_.cluster->num_devices() + r_.devices[i].index()];
  }
  int64_t time(size_t v, size_t i) const { return ticks(time_us(v, i)); }
  // The relaxation's times are work where stages are allowed: docs/bounds.md, "Stages".
  int64_t work(size_t v, size_t i) const { return ticks(r_.t(v, i)); }
  int64_t head(size_t v, size_t i) const { return ticks(r_.earliest_finish[v * k_ + i] - r_.t(v, i)); }
  int64_t tail(size_t v, size_t i) const {
    return time(v, i) + std::max<int64_t>(0, ticks(r_.remaining[v * k_ + i] - r_.t(v, i)));
  }
  StageModel sharing(size_t i) const { return problem_.costs->stage_model(r_.devices[i]); }
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

  // Joins v to the groups of the stage that hold what it reads.
  void put(std::vector<std::vector<OpId>>& groups, uint32_t v) const {
    std::vector<OpId> own;
    for_reads(v, [&](size_t u, int64_t) {
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
              [&](OpId a, OpId b) { return position_[a.index()] < position_[b.index()]; });
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

  void take_hint(const std::vector<ListedStage>& hint) {
    const auto order = problem_.graph->topological_order();
    position_.assign(n_, 0);
    for (size_t i = 0; i < order.size(); ++i) position_[order[i].index()] = static_cast<uint32_t>(i);
    hint_device_.assign(n_, UINT32_MAX);
    hint_stage_.assign(n_, 0);
    for (size_t s = 0; s < hint.size(); ++s) {
      const auto at = std::find(r_.devices.begin(), r_.devices.end(), hint[s].device);
      for (const auto& group : hint[s].groups) {
        for (const OpId v : group) {
          if (at != r_.devices.end())
            hint_device_[v.index()] = static_cast<uint32_t>(at - r_.devices.begin());
          hint_stage_[v.index()] = static_cast<uint32_t>(s);
        }
      }
    }
    stages_ = hint.size();
  }

  // The least times of the hint's devices and stages in ticks, stage by stage in its order.
  bool time_hint() {
    std::vector<std::vector<uint32_t>> members(stages_);
    for (uint32_t v = 0; v < n_; ++v) {
      if (hint_device_[v] == UINT32_MAX || !possible(v, hint_device_[v])) return false;
      members[hint_stage_[v]].push_back(v);
    }
    begin_.assign(n_, 0), own_.assign(n_, 0), piece_.assign(n_, 0), finish_.assign(n_, 0);
    std::vector<int64_t> free(k_, 0);
    for (auto& stage : members) {
      if (stage.empty()) continue;
      std::sort(stage.begin(), stage.end(),
                [&](uint32_t a, uint32_t b) { return position_[a] < position_[b]; });
      const size_t i = hint_device_[stage[0]];
      int64_t start = 0, total = 0, end = 0;
      for (const auto& set : r_.exclusive) {
        if (std::find(set.begin(), set.end(), i) == set.end()) continue;
        for (const uint32_t j : set) start = std::max(start, free[j]);
      }
      for (const uint32_t v : stage) {
        for_reads(v, [&](size_t u, int64_t bytes) {
          if (hint_stage_[u] == hint_stage_[v]) return;
          start = std::max(start, finish_[u] + way(hint_device_[u], i, bytes));
        });
        total += serial(v, i);
      }
      int64_t piece = start;
      for (const uint32_t v : stage) {
        own_[v] = std::max(start, head(v, i));
        for_reads(v, [&](size_t u, int64_t) {
          if (hint_stage_[u] == hint_stage_[v]) own_[v] = std::max(own_[v], own_[u] + time(u, i));
        });
        piece_[v] = piece;
        piece += work(v, i);
        end = std::max({end, own_[v] + time(v, i), piece, shares_pay(i) ? start + total + overlap(v, i) : 0});
      }
      for (const uint32_t v : stage) {
        begin_[v] = start, finish_[v] = end;
        horizon_ = std::max({horizon_, end, own_[v] + tail(v, i)});
      }
      free[i] = end;
    }
    return horizon_ < kMostTicks;
  }
  int64_t way(size_t i, size_t j, int64_t bytes) const {
    const double us = r_.way_us(i, j, bytes);
    return std::isfinite(us) ? std::min(ticks(us), kMostTicks) : kMostTicks;
  }

  void add_op(size_t v) {
    for (std::vector<CpVar>* vars : {&start_, &own_start_, &piece_start_, &end_})
      vars->push_back(cp_.add_integer(0, horizon_));
    cp_.hint(start_[v], begin_[v]);
    cp_.hint(own_start_[v], own_[v]);
    cp_.hint(piece_start_[v], piece_[v]);
    cp_.hint(end_[v], finish_[v]);
    at_least(own_start_[v], start_[v], 0);
    at_least(piece_start_[v], start_[v], 0);
    at_least(makespan_, end_[v], 0);
    x_.resize(n_ * k_);
    std::vector<CpLit> one;
    for (size_t i = 0; i < k_; ++i) {
      // Nothing better than the hint has v there.
      if (!possible(v, i) || (head(v, i) + tail(v, i) > horizon_ && hint_device_[v] != i)) continue;
      const CpLit x = cp_.add_literal();
      x_[v * k_ + i] = x;
      one.push_back(x);
      cp_.hint(x.var(), hint_device_[v] == i ? 1 : 0);
      const std::span<const CpLit> there(&x, 1);
      cp_.linear(head(v, i), CpExpr(own_start_[v]), horizon_, there);
      at_least(makespan_, own_start_[v], tail(v, i), there);
      at_least(end_[v], own_start_[v], time(v, i), there);
      at_least(end_[v], piece_start_[v], work(v, i), there);
    }
    cp_.exactly_one(one);
  }

  // a >= b + least
  void at_least(CpVar a, CpVar b, int64_t least, std::span<const CpLit> when = {}) {
    cp_.linear(least, CpExpr(a).add(b, -1), horizon_, when);
  }

  bool may_meet(size_t u, size_t v) const {
    return std::any_of(r_.exclusive.begin(), r_.exclusive.end(), [&](const auto& set) {
      const auto here = [&](size_t w) {
        return std::any_of(set.begin(), set.end(), [&](uint32_t i) { return x_[w * k_ + i].has_value(); });
      };
      return here(u) && here(v);
    });
  }

  CpLit hinted(bool value) {
    const CpLit literal = cp_.add_literal();
    cp_.hint(literal.var(), value ? 1 : 0);
    return literal;
  }

  // Edges first, so that reads find their pairs; then all others that no path orders.
  void add_pairs() {
    read_pair_.resize(n_);
    const Reachability below(*problem_.graph);
    for (uint32_t w = 0; w < n_; ++w) {
      for_reads(w, [&](size_t u, int64_t) {
        auto& known = read_pair_[w];
        if (std::any_of(known.begin(), known.end(), [&](size_t p) { return pairs_[p].u == u; })) return;
        known.push_back(pairs_.size());
        add_same({static_cast<uint32_t>(u), w, hinted(hint_stage_[u] == hint_stage_[w]), {}, {}});
      });
    }
    for (uint32_t u = 0; u < n_; ++u) {
      for (uint32_t v = u + 1; v < n_; ++v) {
        if (below.reaches(OpId(size_t{u}), OpId(size_t{v})) ||
            below.reaches(OpId(size_t{v}), OpId(size_t{u})) || !may_meet(u, v))
          continue;
        Pair pair{u, v, hinted(hint_stage_[u] == hint_stage_[v]), {}, {}};
        const bool apart = hint_stage_[u] != hint_stage_[v];
        pair.u_first = hinted(apart && finish_[u] <= begin_[v]);
        pair.v_first = hinted(apart && finish_[v] <= begin_[u] && finish_[u] > begin_[v]);
        at_least(start_[v], end_[u], 0, std::span(&*pair.u_first, 1));
        at_least(start_[u], end_[v], 0, std::span(&*pair.v_first, 1));
        for (const auto& set : r_.exclusive) {
          for (const uint32_t i : set) {
            for (const uint32_t j : set) {
              if (!x_[u * k_ + i] || !x_[v * k_ + j]) continue;
              std::vector<CpLit> ways{!*x_[u * k_ + i], !*x_[v * k_ + j], *pair.u_first, *pair.v_first};
              if (i == j) ways.push_back(pair.same);
              cp_.any_of(ways);
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
    cp_.linear(0, CpExpr(start_[pair.u]).add(start_[pair.v], -1), 0, when);
    cp_.linear(0, CpExpr(end_[pair.u]).add(end_[pair.v], -1), 0, when);
    for (size_t i = 0; i < k_; ++i) {
      const auto &a = x_[pair.u * k_ + i], &b = x_[pair.v * k_ + i];
      if (a && b) {
        cp_.linear(0, CpExpr(0).add(*a, 1).add(*b, -1), 0, when);
      } else if (a || b) {
        const CpLit never = !(a ? *a : *b);
        cp_.all_of(std::span(&never, 1), when);
      }
    }
    pairs_.push_back(pair);
  }

  // The stage of v takes what its model says with v as the longest op.
  void add_length(size_t v) {
    for (size_t i = 0; i < k_; ++i) {
      if (!x_[v * k_ + i] || !shares_pay(i)) continue;
      CpExpr length(end_[v]);
      length.add(start_[v], -1);
      for (const size_t p : mates_[v]) {
        const size_t u = pairs_[p].u == v ? pairs_[p].v : pairs_[p].u;
        if (x_[u * k_ + i]) length.add(pairs_[p].same, -serial(u, i));
      }
      cp_.linear(overlap(v, i) + serial(v, i), std::move(length), horizon_, std::span(&*x_[v * k_ + i], 1));
    }
  }

  void add_reads() {
    for (size_t w = 0; w < n_; ++w) {
      for_reads(w, [&](size_t u, int64_t bytes) {
        CpLit same = pairs_[read_pair_[w][0]].same;
        for (const size_t p : read_pair_[w]) {
          if (pairs_[p].u == u) same = pairs_[p].same;
        }
        const CpLit apart = !same;
        at_least(start_[w], end_[u], 0, std::span(&apart, 1));
        at_least(own_start_[w], own_start_[u], 0);
        for (size_t i = 0; i < k_; ++i) {
          if (!x_[u * k_ + i]) continue;
          at_least(own_start_[w], own_start_[u], time(u, i), std::span(&*x_[u * k_ + i], 1));
          for (size_t j = 0; j < k_; ++j) {
            if (i == j || !x_[w * k_ + j]) continue;
            const CpLit both[] = {*x_[u * k_ + i], *x_[w * k_ + j]};
            // Longer than the hint is out of question; as a row its limits would cross, which CP-SAT refuses.
            if (const int64_t ticks = way(i, j, bytes); ticks > horizon_) {
              const CpLit not_both[] = {!both[0], !both[1]};
              cp_.any_of(not_both);
            } else if (ticks > 0) {
              at_least(start_[w], end_[u], ticks, both);
            }
          }
        }
      });
    }
  }

  void add_work() {
    for (const auto& set : r_.exclusive) {
      std::vector<CpInterval> pieces;
      CpExpr total(makespan_);
      for (size_t v = 0; v < n_; ++v) {
        for (const uint32_t i : set) {
          if (!x_[v * k_ + i] || work(v, i) == 0) continue;
          const CpLit x = *x_[v * k_ + i];
          pieces.push_back(cp_.interval(CpExpr(piece_start_[v]), CpExpr(work(v, i)),
                                        CpExpr(piece_start_[v]).add(work(v, i)), std::span(&x, 1)));
          total.add(x, -work(v, i));
        }
      }
      if (pieces.size() < 2) continue;
      cp_.no_overlap(pieces);
      cp_.linear(0, std::move(total), horizon_);
    }
  }

  const Problem& problem_;
  const Relaxation& r_;
  const size_t n_, k_;
  double tick_us_ = 1;
  std::vector<double> time_us_;
  std::vector<uint32_t> position_, hint_device_, hint_stage_;
  size_t stages_ = 0;
  std::vector<int64_t> begin_, own_, piece_, finish_;  // of the hint
  int64_t horizon_ = 0;
  CpModel cp_;
  CpVar makespan_;
  std::vector<CpVar> start_, own_start_, piece_start_, end_;
  std::vector<std::optional<CpLit>> x_;
  std::vector<Pair> pairs_;
  std::vector<std::vector<size_t>> read_pair_, mates_;  // per op: its pairs
};

}  // namespace

bool cp_stages_fit(const Problem& problem) {
  const auto n = static_cast<double>(problem.graph->num_ops());
  return n > 0 && n * n / 2 * static_cast<double>(problem.usable_devices().size()) <= kMostPairs;
}

Result<CpStages> solve_cp_stages(const Problem& problem, const Relaxation& relaxation, const Plan& hint,
                                 const CpStagesOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const Timeline timeline, evaluate(problem, hint));
  CpStages result;
  result.stages = stages_of(hint);
  Model model(problem, relaxation, result.stages, timeline.makespan_us);
  if (!model.build()) return result;
  SolveOptions solve_options;
  solve_options.deadline = options.deadline;
  solve_options.threads = options.threads;
  solve_options.seed = options.seed;
  // Who runs before whom is nearly all of it, of which linear programs know nothing: a layered graph of 20
  // ops on two devices is solved in 6 s without them and not in 30 s with them.
  solve_options.linear_relaxation = false;
  if (options.on_progress) {
    solve_options.on_progress = [&](const SolveProgress& p) {
      options.on_progress(model.us(std::max(p.bound, 0.0)));
    };
  }
  HEDDLE_ASSIGN_OR_RETURN(const Solution solution, solve(model.cp(), solve_options));
  if (solution.status == SolveStatus::kInfeasible)
    return Error(Code::kInternal, "the model of stages has no solution although a plan satisfies it");
  // The same rounding that the combinatorial bounds get.
  const double safe = 1 - 1e-12 - 4e-16 * static_cast<double>(problem.graph->num_ops());
  if (std::isfinite(solution.bound)) result.bound_us = std::max(0.0, model.us(solution.bound) * safe);
  if (solution.has_values()) result.stages = model.decode(solution.values);
  result.complete = solution.status == SolveStatus::kOptimal;
  return result;
}

}  // namespace heddle
