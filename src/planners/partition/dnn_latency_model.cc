// Tarnawski et al. 2020, section 4: the integer programme for latency (their figure 6), as constraints that
// hold under literals instead of big constants:
//   x[u,p]                unit u is in piece p, or (p = k q) on the CPUs
//   S[p], F[p]            piece p begins to move its inputs in, and has moved its outputs out
//   F[p] >= S[p] + sum work x + sum cost pays        (pays: net is in p and elsewhere)
//   l[v] >= F[p]          where x[v,p]; l[v]: when the output is in host memory
//   S[p] >= l[u]          where x[v,p] and not x[u,p], for each edge u -> v
// and, beyond the paper, when each node's work ends, e[v] (a piece is serial, so its nodes have an order):
//   e[v] >= S[p] + work   where x[v,p];   e[v] >= l[u] + cpu   on the CPUs;   l[v] >= e[v]
//   e[v] >= e[u] + work(v) + cost(u) for leaving a piece + cost(u) for entering one
// The last holds wherever the nodes are; without it the relaxation knows no paths.
#include "dnn_latency_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "heddle/solve/cp.h"

namespace heddle {
namespace {

constexpr int64_t kNoLimit = INT64_MAX / 4;
constexpr double kMostBytes = 1e18;

class LatencyModel {
 public:
  LatencyModel(const LatencyProblem& problem, const std::vector<int32_t>& hint, double hint_value,
               double bound)
      : problem_(problem), units_(problem.units), cpu_(problem.cpu()), hint_(in_order_of_start(hint)) {
    scale_ = std::exp2(std::floor(30 - std::log2(std::max(hint_value, 1e-300))));
    horizon_ = static_cast<int64_t>(std::ceil(hint_value * scale_));
    latency_ = model_.add_integer(std::min(steps(bound), horizon_), horizon_, "latency");
    add_places();
    add_pieces();
    add_nodes();
    model_.hint(latency_, horizon_);
    model_.minimise(CpExpr(latency_));
  }

  const CpModel& model() const { return model_; }
  double scale() const { return scale_; }

  std::vector<int32_t> pieces(std::span<const double> values) const {
    std::vector<int32_t> piece(units_.size(), cpu_);
    for (size_t u = 0; u < units_.size(); ++u)
      for (int32_t p = 0; p <= cpu_; ++p)
        if (values[at(x(static_cast<int32_t>(u), p).var().index)] > 0.5) piece[u] = p;
    return piece;
  }

 private:
  CpLit x(int32_t unit, int32_t piece) const { return x_[at(unit) * (at(cpu_) + 1) + at(piece)]; }
  CpLit pays(size_t net, int32_t piece) const { return pays_[net * at(cpu_) + at(piece)]; }
  int64_t steps(double time) const { return static_cast<int64_t>(std::floor(time * scale_)); }

  // to - from >= least, where all of `when` are true
  void after(CpVar to, CpVar from, int64_t least, std::span<const CpLit> when = {}) {
    CpExpr difference(to);
    difference.add(from, -1);
    model_.linear(least, std::move(difference), kNoLimit, when);
  }

  // With one piece each the accelerators are alike: they are numbered by start.
  std::vector<int32_t> in_order_of_start(const std::vector<int32_t>& hint) const {
    if (problem_.pieces > 1) return hint;
    DnnLatency state(problem_, hint);
    if (!std::isfinite(state.latency(std::numeric_limits<double>::infinity()))) return hint;
    std::vector<double> start(at(cpu_), std::numeric_limits<double>::infinity());
    for (const int32_t piece : hint) {
      if (piece < cpu_) start[at(piece)] = state.start(piece);
    }
    std::vector<int32_t> order(start.size()), rank(start.size() + 1);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return start[at(a)] < start[at(b)]; });
    for (size_t i = 0; i < order.size(); ++i) rank[at(order[i])] = static_cast<int32_t>(i);
    rank.back() = cpu_;
    auto result = hint;
    for (auto& piece : result) piece = rank[at(piece)];
    return result;
  }

  void add_places() {
    for (size_t u = 0; u < units_.size(); ++u) {
      std::vector<CpLit> row;
      for (int32_t p = 0; p <= cpu_; ++p) {
        x_.push_back(model_.add_literal());
        model_.hint(x_.back().var(), hint_[u] == p);
        if (units_.allowed(static_cast<int32_t>(u), p)) {
          row.push_back(x_.back());
        } else {
          model_.linear(0, CpExpr(x_.back().var()), 0);
        }
      }
      model_.exactly_one(row);
    }
    for (const auto& net : units_.nets) {
      for (int32_t p = 0; p < cpu_; ++p) {
        const auto literal = model_.add_literal();
        bool in = false, out = false;
        for (size_t i = 0; i < net.pins.size(); ++i) {
          const auto here = net.pins[i], next = net.pins[(i + 1) % net.pins.size()];
          const CpLit clause[] = {!x(here, p), x(next, p), literal};
          model_.any_of(clause);
          (hint_[at(here)] == p ? in : out) = true;
        }
        model_.hint(literal.var(), in && out);
        pays_.push_back(literal);
      }
    }
  }

  void add_pieces() {
    const auto q = problem_.pieces;
    const auto limit = static_cast<int64_t>(std::min(units_.accelerator_bytes, kMostBytes));
    CpExpr memory;
    for (int32_t p = 0; p < cpu_; ++p) {
      start_.push_back(model_.add_integer(0, horizon_));
      finish_.push_back(model_.add_integer(0, horizon_));
      CpExpr slack(finish_.back());
      slack.add(start_.back(), -1);
      for (size_t u = 0; u < units_.size(); ++u) {
        const auto unit = static_cast<int32_t>(u);
        int64_t work = 0;
        for (const auto v : units_.members[u]) work += steps(problem_.workload.nodes[at(v)].accelerator);
        if (work > 0) slack.add(x(unit, p), -work);
        const auto bytes = static_cast<int64_t>(std::floor(units_.bytes[u]));
        if (bytes > 0) memory.add(x(unit, p), bytes);
      }
      for (size_t net = 0; net < units_.nets.size(); ++net)
        if (const auto cost = steps(units_.nets[net].cost); cost > 0) slack.add(pays(net, p), -cost);
      model_.linear(0, std::move(slack), horizon_);
      after(latency_, finish_.back(), 0);
      if ((p + 1) % q == 0) {
        model_.linear(0, std::move(memory), limit);
        memory = CpExpr();
      }
      if (p % q != 0) after(start_[at(p)], finish_[at(p) - 1], 0);
      if (q == 1 && p > 0) after(start_[at(p)], start_[at(p) - 1], 0);
    }
  }

  void add_nodes() {
    const auto& w = problem_.workload;
    for (size_t v = 0; v < w.nodes.size(); ++v) {
      const auto unit = problem_.unit_of[v];
      end_.push_back(model_.add_integer(0, horizon_));
      there_.push_back(model_.add_integer(0, horizon_));
      after(there_[v], end_[v], 0);
      after(latency_, there_[v], 0);
      for (int32_t p = 0; p < cpu_; ++p) {
        const CpLit when[] = {x(unit, p)};
        after(there_[v], finish_[at(p)], 0, when);
        after(end_[v], start_[at(p)], steps(w.nodes[v].accelerator), when);
      }
      const CpLit on_cpu[] = {x(unit, cpu_)};
      model_.linear(steps(w.nodes[v].cpu), CpExpr(end_[v]), kNoLimit, on_cpu);
    }
    std::map<std::vector<int32_t>, size_t> net_of;
    for (size_t net = 0; net < units_.nets.size(); ++net) net_of[units_.nets[net].pins] = net;
    for (const auto& [a, b] : w.edges) {
      const auto from = problem_.unit_of[at(a)], to = problem_.unit_of[at(b)];
      const auto accelerator = steps(w.nodes[at(b)].accelerator), cpu = steps(w.nodes[at(b)].cpu);
      const CpLit on_cpu[] = {x(to, cpu_)};
      after(end_[at(b)], there_[at(a)], cpu, on_cpu);
      CpExpr along(end_[at(b)]);
      along.add(end_[at(a)], -1);
      along.add(x(to, cpu_), accelerator - cpu);
      if (from != to) {
        for (int32_t p = 0; p < cpu_; ++p) {
          const CpLit when[] = {x(to, p), !x(from, p)};
          after(start_[at(p)], there_[at(a)], 0, when);
        }
        // The net's literals speak of this edge only when it has no other pins.
        std::vector<int32_t> pins{std::min(from, to), std::max(from, to)};
        bool alone = true;
        for (const auto c : w.out[at(a)])
          alone = alone && (problem_.unit_of[at(c)] == from || problem_.unit_of[at(c)] == to);
        const auto found = net_of.find(pins);
        const auto cost = steps(w.nodes[at(a)].cost);
        if (alone && found != net_of.end() && cost > 0)
          for (int32_t p = 0; p < cpu_; ++p) along.add(pays(found->second, p), -cost);
      }
      model_.linear(accelerator, std::move(along), kNoLimit);
    }
  }

  const LatencyProblem& problem_;
  const DnnUnits& units_;
  int32_t cpu_;
  std::vector<int32_t> hint_;
  CpModel model_;
  double scale_ = 1;
  int64_t horizon_ = 0;
  CpVar latency_;
  std::vector<CpLit> x_, pays_;
  std::vector<CpVar> start_, finish_;  // of pieces
  std::vector<CpVar> end_, there_;     // e and l of nodes
};

}  // namespace

Status solve_latency_model(const LatencyProblem& problem, const std::vector<int32_t>& hint, double hint_value,
                           double bound, SolveOptions options, const LoadModelCallbacks& callbacks) {
  const LatencyModel model(problem, hint, hint_value, bound);
  options.on_progress = [&](const SolveProgress& progress) {
    if (!progress.values.empty()) callbacks.split(model.pieces(progress.values));
    if (std::isfinite(progress.bound)) callbacks.bound(progress.bound / model.scale());
  };
  HEDDLE_ASSIGN_OR_RETURN(const auto solution, solve(model.model(), options));
  if (solution.status == SolveStatus::kInfeasible)
    return Error(Code::kInternal, "CP-SAT finds no split as good as the one it was given");
  if (solution.has_values()) callbacks.split(model.pieces(solution.values));
  if (std::isfinite(solution.bound)) callbacks.bound(solution.bound / model.scale());
  return {};
}

}  // namespace heddle
