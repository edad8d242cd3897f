// Tarnawski et al. 2020, section 5.2, the integer programme for max-load without contiguity, over units and
// nets:
//   min L
//   sum_d x[u,d] = 1                              each unit on one device
//   sum_u bytes[u] x[u,d] <= M                    accelerators
//   p[e,d] >= x[u,d] - x[v,d]                     net e is on d and elsewhere: d pays (pins in a ring)
//   sum_u time[u] x[u,d] + sum_e cost[e] p[e,d] <= L     accelerators; CPUs without the second sum
// Their formulation has two communication variables (in and out) for each node and device; over nets one is
// enough. Devices of a kind are alike: the first unit that needs one breaks the symmetry by CP-SAT itself.
//
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
#include "placement_models.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "heddle/base/units.h"
#include "search/schedule_model.h"

namespace heddle {
namespace {

// Larger models are not built: they take gigabytes, and a solver would not begin before its time is over.
constexpr double kMostLiterals = 4e6, kMostMemoryTerms = 1e9;

// `items`: what is decided for each of `places`, or has a constraint there.
bool is_small_enough(const PlacementUnits& units, double places, double items) {
  items += static_cast<double>(units.size());
  for (const auto& net : units.nets) items += static_cast<double>(net.pins.size());
  return items * places <= kMostLiterals &&
         static_cast<double>(units.size()) * places * places <= kMostMemoryTerms;
}

// What both models have: a device for each unit, and who pays for the nets. Times are rounded down to steps.
class SplitModel {
 public:
  const CpModel& model() const { return m_.cp; }
  double scale() const { return scale_; }

  std::vector<int32_t> devices(std::span<const double> values) const {
    std::vector<int32_t> device(units_.size(), 0);
    for (size_t u = 0; u < units_.size(); ++u) device[u] = static_cast<int32_t>(m_.device(u, values));
    return device;
  }

 protected:
  SplitModel(const PlacementUnits& units, std::vector<int32_t> hint, double hint_value)
      : units_(units),
        hint_(std::move(hint)),
        // Some 2^30 steps up to the hint's value: rounding down loses less than a part in 10^6, and sums stay
        // far from overflow.
        scale_(std::exp2(std::floor(30 - std::log2(std::max(hint_value, 1e-300))))),
        horizon_(static_cast<int64_t>(std::ceil(hint_value * scale_))),
        m_(units.size(), at(units.devices()), INT64_MAX / 4) {}

  CpLit x(size_t unit, int32_t device) const { return m_.on(unit, at(device)); }
  int64_t steps(double time) const { return static_cast<int64_t>(std::floor(time * scale_)); }

  void add_units() {
    for (size_t u = 0; u < units_.size(); ++u) {
      for (int32_t d = 0; d < units_.devices(); ++d) {
        if (units_.allowed(static_cast<int32_t>(u), d)) m_.may_run(u, at(d), hint_[u] == d);
      }
      m_.choose_device(u);
    }
  }

  // True where the net is on the device and elsewhere, too: pins in a ring.
  CpLit add_payment(const PlacementUnits::Net& net, int32_t device) {
    const auto pays = m_.cp.add_literal();
    bool on = false, off = false;
    for (size_t i = 0; i < net.pins.size(); ++i) {
      const auto here = net.pins[i], next = net.pins[(i + 1) % net.pins.size()];
      const CpLit clause[] = {!x(here, device), x(next, device), pays};
      m_.cp.any_of(clause);
      (hint_[at(here)] == device ? on : off) = true;
    }
    m_.hint(pays, on && off);
    return pays;
  }

  const PlacementUnits& units_;
  const std::vector<int32_t> hint_;
  const double scale_;
  const int64_t horizon_;
  ScheduleModel m_;
};

// Splits and bounds as the solver finds them.
Status solve_split_model(const SplitModel& model, SolveOptions options, const SplitCallbacks& callbacks) {
  options.on_progress = [&](const SolveProgress& progress) {
    if (!progress.values.empty()) callbacks.split(model.devices(progress.values));
    if (std::isfinite(progress.bound)) callbacks.bound(progress.bound / model.scale());
  };
  HEDDLE_ASSIGN_OR_RETURN(const auto solution, solve(model.model(), options));
  if (solution.status == SolveStatus::kInfeasible)
    return internal_error("CP-SAT finds no split as good as the one it was given");
  if (solution.has_values()) callbacks.split(model.devices(solution.values));
  if (std::isfinite(solution.bound)) callbacks.bound(solution.bound / model.scale());
  return {};
}

class MaxLoadModel : public SplitModel {
 public:
  MaxLoadModel(const PlacementUnits& units, const std::vector<int32_t>& hint, double hint_value)
      : SplitModel(units, hint, hint_value) {
    const auto largest = m_.cp.add_integer(0, horizon_, "L");
    add_units();
    for (int32_t d = 0; d < units_.devices(); ++d) add_device(d, largest);
    m_.cp.hint(largest, horizon_);
    m_.cp.minimise(CpExpr(largest));
  }

 private:
  void add_device(int32_t d, CpVar largest) {
    CpExpr load;
    for (size_t u = 0; u < units_.size(); ++u) {
      const auto time = steps(units_.time(static_cast<int32_t>(u), d));
      if (time > 0) load.add(x(u, d), time);
    }
    if (!units_.is_cpu(d)) {
      for (const auto& net : units_.nets) {
        if (const auto cost = steps(net.cost); cost > 0) load.add(add_payment(net, d), cost);
      }
      const auto bytes = [&](size_t unit, size_t device) {
        return device == at(d) ? static_cast<int64_t>(std::floor(units_.bytes[unit])) : 0;
      };
      m_.limit_memory(bytes, units_.memory_limit());
    }
    m_.after(largest, load, 0);
  }
};

class LatencyModel : public SplitModel {
 public:
  LatencyModel(const LatencyProblem& problem, const std::vector<int32_t>& hint, double hint_value,
               double bound)
      : SplitModel(problem.units, in_order_of_start(problem, hint), hint_value),
        problem_(problem),
        cpu_(problem.cpu()) {
    latency_ = m_.cp.add_integer(std::min(steps(bound), horizon_), horizon_, "latency");
    add_places();
    add_pieces();
    add_nodes();
    m_.cp.hint(latency_, horizon_);
    m_.cp.minimise(CpExpr(latency_));
  }

 private:
  CpLit pays(size_t net, int32_t piece) const { return pays_[net * at(cpu_) + at(piece)]; }

  // With one piece each the accelerators are alike: they are numbered by start.
  static std::vector<int32_t> in_order_of_start(const LatencyProblem& problem, std::vector<int32_t> hint) {
    if (problem.pieces > 1) return hint;
    PlacementLatency state(problem, hint);
    if (!std::isfinite(state.time(kInfinity))) return hint;
    std::vector<double> start(at(problem.cpu()), kInfinity);
    for (const int32_t piece : hint) {
      if (piece < problem.cpu()) start[at(piece)] = state.start(piece);
    }
    std::vector<int32_t> order(start.size()), rank(start.size() + 1);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return start[at(a)] < start[at(b)]; });
    for (size_t i = 0; i < order.size(); ++i) rank[at(order[i])] = static_cast<int32_t>(i);
    rank.back() = problem.cpu();
    for (auto& piece : hint) piece = rank[at(piece)];
    return hint;
  }

  void add_places() {
    add_units();
    for (const auto& net : units_.nets) {
      for (int32_t p = 0; p < cpu_; ++p) pays_.push_back(add_payment(net, p));
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
        int64_t work = 0;
        for (const auto v : units_.members[u]) work += steps(problem_.workload.nodes[at(v)].accelerator);
        if (work > 0) slack.add(x(u, p), -work);
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
  const int32_t cpu_;
  CpVar latency_;
  std::vector<CpLit> pays_;
  std::vector<CpVar> start_, finish_;  // of pieces
  std::vector<CpVar> end_, there_;     // e and l of nodes
};

}  // namespace

Status solve_load_model(const PlacementUnits& units, const std::vector<int32_t>& hint, double hint_value,
                        const SolveOptions& options, const SplitCallbacks& callbacks) {
  if (!is_small_enough(units, units.devices(), 0)) return {};
  return solve_split_model(MaxLoadModel(units, hint, hint_value), options, callbacks);
}

Status solve_latency_model(const LatencyProblem& problem, const std::vector<int32_t>& hint, double hint_value,
                           double bound, const SolveOptions& options, const SplitCallbacks& callbacks) {
  const auto& workload = problem.workload;
  if (!is_small_enough(problem.units, problem.cpu() + 1.0,
                       static_cast<double>(workload.nodes.size() + workload.edges.size())))
    return {};
  return solve_split_model(LatencyModel(problem, hint, hint_value, bound), options, callbacks);
}

}  // namespace heddle
