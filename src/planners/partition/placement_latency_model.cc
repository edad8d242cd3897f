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
#include "placement_latency_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "search/schedule_model.h"

namespace heddle {
namespace {

constexpr int64_t kNoLimit = INT64_MAX / 4;

class LatencyModel {
 public:
  LatencyModel(const LatencyProblem& problem, const std::vector<int32_t>& hint, double hint_value,
               double bound)

      : problem_(problem),
        units_(problem.units),
        cpu_(problem.cpu()),
        hint_(in_order_of_start(hint)),
        m_(units_.size(), at(cpu_) + 1, kNoLimit) {
    scale_ = std::exp2(std::floor(30 - std::log2(std::max(hint_value, 1e-300))));
    horizon_ = static_cast<int64_t>(std::ceil(hint_value * scale_));
    latency_ = m_.cp.add_integer(std::min(steps(bound), horizon_), horizon_, "latency");
    add_places();
    add_pieces();
    add_nodes();
    m_.cp.hint(latency_, horizon_);
    m_.cp.minimise(CpExpr(latency_));
  }

  const CpModel& model() const { return m_.cp; }
  double scale() const { return scale_; }

  std::vector<int32_t> pieces(std::span<const double> values) const {
    std::vector<int32_t> piece(units_.size(), cpu_);
    for (size_t u = 0; u < units_.size(); ++u) piece[u] = static_cast<int32_t>(m_.device(u, values));
    return piece;
  }

 private:
  CpLit x(int32_t unit, int32_t piece) const { return m_.on(at(unit), at(piece)); }
  CpLit pays(size_t net, int32_t piece) const { return pays_[net * at(cpu_) + at(piece)]; }
  int64_t steps(double time) const { return static_cast<int64_t>(std::floor(time * scale_)); }

  // With one piece each the accelerators are alike: they are numbered by start.
  std::vector<int32_t> in_order_of_start(const std::vector<int32_t>& hint) const {
    if (problem_.pieces > 1) return hint;
    PlacementLatency state(problem_, hint);
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
      for (int32_t p = 0; p <= cpu_; ++p) {
        if (units_.allowed(static_cast<int32_t>(u), p)) m_.may_run(u, at(p), hint_[u] == p);
      }
      m_.choose_device(u);
    }
    for (const auto& net : units_.nets) {
      for (int32_t p = 0; p < cpu_; ++p) {
        const auto literal = m_.cp.add_literal();
        bool in = false, out = false;
        for (size_t i = 0; i < net.pins.size(); ++i) {
          const auto here = net.pins[i], next = net.pins[(i + 1) % net.pins.size()];
          const CpLit clause[] = {!x(here, p), x(next, p), literal};
          m_.cp.any_of(clause);
          (hint_[at(here)] == p ? in : out) = true;
        }
        m_.hint(literal, in && out);
        pays_.push_back(literal);
      }
    }
  }

  void add_pieces() {
    const auto q = problem_.pieces;
    for (int32_t p = 0; p < cpu_; ++p) {
      start_.push_back(m_.cp.add_integer(0, horizon_));
      finish_.push_back(m_.cp.add_integer(0, horizon_));
      CpExpr slack(finish_.back());
      slack.add(start_.back(), -1);
      for (size_t u = 0; u < units_.size(); ++u) {
        const auto unit = static_cast<int32_t>(u);
        int64_t work = 0;
        for (const auto v : units_.members[u]) work += steps(problem_.workload.nodes[at(v)].accelerator);
        if (work > 0) slack.add(x(unit, p), -work);
      }
      for (size_t net = 0; net < units_.nets.size(); ++net)
        if (const auto cost = steps(units_.nets[net].cost); cost > 0) slack.add(pays(net, p), -cost);
      m_.cp.linear(0, std::move(slack), horizon_);
      m_.after(latency_, finish_.back(), 0);
      if (p % q == 0) {
        const auto bytes = [&](size_t unit, size_t piece) {
          return static_cast<int32_t>(piece) / q == p / q && static_cast<int32_t>(piece) < cpu_
                     ? static_cast<int64_t>(std::floor(units_.bytes[unit]))
                     : 0;
        };
        m_.limit_memory(bytes, units_.memory_limit());
      }
      if (p % q != 0) m_.after(start_[at(p)], finish_[at(p) - 1], 0);
      if (q == 1 && p > 0) m_.after(start_[at(p)], start_[at(p) - 1], 0);
    }
  }

  void add_nodes() {
    const auto& w = problem_.workload;
    for (size_t v = 0; v < w.nodes.size(); ++v) {
      const auto unit = problem_.unit_of[v];
      end_.push_back(m_.cp.add_integer(0, horizon_));
      there_.push_back(m_.cp.add_integer(0, horizon_));
      m_.after(there_[v], end_[v], 0);
      m_.after(latency_, there_[v], 0);
      for (int32_t p = 0; p < cpu_; ++p) {
        const CpLit when[] = {x(unit, p)};
        m_.after(there_[v], finish_[at(p)], 0, when);
        m_.after(end_[v], start_[at(p)], steps(w.nodes[v].accelerator), when);
      }
      const CpLit on_cpu[] = {x(unit, cpu_)};
      m_.after(end_[v], CpExpr(0), steps(w.nodes[v].cpu), on_cpu);
    }
    std::map<std::vector<int32_t>, size_t> net_of;
    for (size_t net = 0; net < units_.nets.size(); ++net) net_of[units_.nets[net].pins] = net;
    for (const auto& [a, b] : w.edges) {
      const auto from = problem_.unit_of[at(a)], to = problem_.unit_of[at(b)];
      const auto accelerator = steps(w.nodes[at(b)].accelerator), cpu = steps(w.nodes[at(b)].cpu);
      const CpLit on_cpu[] = {x(to, cpu_)};
      m_.after(end_[at(b)], there_[at(a)], cpu, on_cpu);
      CpExpr along(end_[at(b)]);
      along.add(end_[at(a)], -1);
      along.add(x(to, cpu_), accelerator - cpu);
      if (from != to) {
        for (int32_t p = 0; p < cpu_; ++p) {
          const CpLit when[] = {x(to, p), !x(from, p)};
          m_.after(start_[at(p)], there_[at(a)], 0, when);
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
      m_.after(std::move(along), CpExpr(0), accelerator);
    }
  }

  const LatencyProblem& problem_;
  const PlacementUnits& units_;
  int32_t cpu_;
  std::vector<int32_t> hint_;
  ScheduleModel m_;
  double scale_ = 1;
  int64_t horizon_ = 0;
  CpVar latency_;
  std::vector<CpLit> pays_;
  std::vector<CpVar> start_, finish_;  // of pieces
  std::vector<CpVar> end_, there_;     // e and l of nodes
};

}  // namespace

Status solve_latency_model(const LatencyProblem& problem, const std::vector<int32_t>& hint, double hint_value,
                           double bound, SolveOptions options, const LoadModelCallbacks& callbacks) {
  const LatencyModel model(problem, hint, hint_value, bound);
  return solve_split_model(
      model.model(), model.scale(), [&](auto values) { return model.pieces(values); }, std::move(options),
      callbacks);
}

}  // namespace heddle
