// The letters are the paper's (table II). Where Heddle's problem differs from the paper's:
// - A tensor goes to a device once for all its readers there, so that flows of one tensor may share the
//   ports: (8) holds between flows of different tensors.
// - (5) counts an op's own parameters; live tensors are the evaluator's business.
// - (8) holds at devices whose copy engines transfers wait for.
// Each of these leaves constraints out, so the program's bound holds for Heddle's problem with the cluster's
// own routes.
#include "moirai_milp.h"

#include <algorithm>
#include <cmath>

#include "heddle/graph/analysis.h"
#include "lists/list_schedule.h"

namespace heddle {
namespace {

struct FlowEnds {
  uint32_t tensor, from, to;
};

std::vector<FlowEnds> flows_of(const FlatProblem& flat) {
  std::vector<FlowEnds> flows;
  for (uint32_t t = 0; t < flat.num_tensors(); ++t) {
    if (flat.producer(t) >= flat.num_ops()) continue;
    for (const uint32_t r : flat.readers(t)) flows.push_back({t, flat.producer(t), r});
  }
  return flows;
}

// Which ops and flows the graph puts in order already.
class GraphOrder {
 public:
  explicit GraphOrder(const FlatProblem& flat) : reach_(*flat.problem().graph) {}
  bool orders(uint32_t a, uint32_t b) const { return reaches(a, b) || reaches(b, a); }
  // Also true of flows of one tensor, which may share the ports.
  bool orders(const FlowEnds& a, const FlowEnds& b) const {
    return a.tensor == b.tensor || before(a, b) || before(b, a);
  }

 private:
  bool reaches(uint32_t a, uint32_t b) const { return reach_.reaches(OpId(size_t{a}), OpId(size_t{b})); }
  bool before(const FlowEnds& a, const FlowEnds& b) const { return a.to == b.from || reaches(a.to, b.from); }

  const Reachability reach_;
};

// Do transfers from or to device k wait for each other?
bool has_ports(const FlatProblem& flat, size_t k) {
  const Problem& problem = flat.problem();
  return problem.execution.engine_contention && problem.cluster->device(flat.device(k)).copy_engines > 0;
}

class MoiraiMilp {
 public:
  MoiraiMilp(const FlatProblem& flat, const MoiraiStart& start);

  const Milp& model() const { return model_; }
  double us_per_unit() const { return scale_; }
  FlatPlan decisions(const std::vector<double>& values) const;

 private:
  struct FlowVars {
    FlowEnds ends;
    double sent_us;  // of the start
    Var start, end, crosses;
    std::vector<Var> channel;  // [k' * devices + k''], invalid on the diagonal
  };
  Var x(uint32_t op, size_t k) const { return x_[op * k_ + k]; }
  void add_ops();
  void add_memory();
  void add_flow(const FlowEnds& ends);
  void add_flow_rows(const FlowVars& q);
  void add_non_overlap(const GraphOrder& graph);
  void add_congestion(const GraphOrder& graph);
  std::vector<Var> routed(const FlowVars& q) const;

  const FlatProblem& flat_;
  const MoiraiStart& begin_;
  const size_t k_;
  const double scale_;  // us in one unit of the program
  const double big_;    // M, in those units
  Milp model_;
  Var makespan_;
  std::vector<Var> x_, start_, end_;
  std::vector<FlowVars> flows_;
};

MoiraiMilp::MoiraiMilp(const FlatProblem& flat, const MoiraiStart& start)
    : flat_(flat),
      begin_(start),
      k_(flat.num_devices()),
      // Makespans near a thousand keep the solver's absolute tolerances far below any op.
      scale_(std::max(start.makespan_us, 1e-6) / 1000),
      big_(1000 * (1 + 1e-9)) {
  makespan_ = model_.add_continuous(0, big_, "makespan");
  model_.add_cost(makespan_, 1);
  model_.set_start(makespan_, start.makespan_us / scale_);
  add_ops();
  add_memory();
  for (const FlowEnds& ends : flows_of(flat_)) add_flow(ends);
  const GraphOrder graph(flat_);
  add_non_overlap(graph);
  add_congestion(graph);
}

// (4), (4b), (4c).
void MoiraiMilp::add_ops() {
  for (uint32_t v = 0; v < flat_.num_ops(); ++v) {
    start_.push_back(model_.add_continuous(0, big_));
    end_.push_back(model_.add_continuous(0, big_));
    model_.set_start(start_[v], begin_.op_start_us[v] / scale_);
    std::vector<Term> one, time{{start_[v], 1}, {end_[v], -1}};
    for (size_t k = 0; k < k_; ++k) {
      x_.push_back(model_.add_binary());
      model_.set_start(x_.back(), begin_.plan.device[v] == k ? 1 : 0);
      one.push_back({x_.back(), 1});
      const double us = flat_.us(v, k);
      if (us / scale_ <= big_)
        time.push_back({x_.back(), us / scale_});
      else
        model_.set_bounds(x_.back(), 0, 0);
    }
    const double us = flat_.us(v, begin_.plan.device[v]);
    model_.set_start(end_[v], (begin_.op_start_us[v] + us) / scale_);
    model_.equal(std::move(one), 1);
    model_.equal(std::move(time), 0);
    model_.at_most({{end_[v], 1}, {makespan_, -1}}, 0);
  }
}

// (5).
void MoiraiMilp::add_memory() {
  std::vector<uint32_t> users(flat_.num_params(), 0);
  for (uint32_t v = 0; v < flat_.num_ops(); ++v) {
    for (const uint32_t p : flat_.params(v)) ++users[p];
  }
  for (size_t pool = 0; pool < flat_.num_pools(); ++pool) {
    const auto limit = static_cast<double>(flat_.pool_limit(pool));
    if (limit <= 0) continue;
    std::vector<Term> used;
    for (uint32_t v = 0; v < flat_.num_ops(); ++v) {
      double own = 0;
      for (const uint32_t p : flat_.params(v)) {
        if (users[p] == 1) own += static_cast<double>(flat_.param_bytes(p));
      }
      for (size_t k = 0; k < k_ && own > 0; ++k) {
        if (flat_.pool(k) == pool) used.push_back({x(v, k), own / limit});
      }
    }
    if (!used.empty()) model_.at_most(std::move(used), 1 + 1e-9);
  }
}

// (4a) and (7).
void MoiraiMilp::add_flow(const FlowEnds& ends) {
  const uint32_t from = begin_.plan.device[ends.from], to = begin_.plan.device[ends.to];
  const double made = begin_.op_start_us[ends.from] + flat_.us(ends.from, from);
  const double sent = from == to ? made : std::max(made, begin_.sent_us[ends.tensor][to]);
  const double us = flat_.transfer_us(from, to, flat_.bytes(ends.tensor));
  FlowVars q{ends, sent, {}, {}, {}, std::vector<Var>(k_ * k_)};
  q.start = model_.add_continuous(0, big_);
  q.end = model_.add_continuous(0, big_);
  q.crosses = model_.add_binary();
  model_.set_start(q.start, sent / scale_);
  model_.set_start(q.end, (sent + us) / scale_);
  model_.set_start(q.crosses, from == to ? 0 : 1);
  for (uint32_t a = 0; a < k_; ++a) {
    for (uint32_t b = 0; b < k_; ++b) {
      if (a == b) continue;
      q.channel[a * k_ + b] = model_.add_binary();
      model_.set_start(q.channel[a * k_ + b], a == from && b == to ? 1 : 0);
    }
  }
  add_flow_rows(q);
  flows_.push_back(std::move(q));
}

void MoiraiMilp::add_flow_rows(const FlowVars& q) {
  const auto [tensor, from, to] = q.ends;
  model_.at_most({{end_[from], 1}, {q.start, -1}}, 0);
  model_.at_most({{q.end, 1}, {start_[to], -1}}, 0);
  std::vector<Term> chosen{{q.crosses, -1}}, time{{q.start, 1}, {q.end, -1}};
  for (size_t a = 0; a < k_; ++a) {
    model_.at_most({{x(from, a), 1}, {x(to, a), -1}, {q.crosses, -1}}, 0);
    model_.at_most({{x(to, a), 1}, {x(from, a), -1}, {q.crosses, -1}}, 0);
    model_.at_most({{q.crosses, 1}, {x(from, a), 1}, {x(to, a), 1}}, 2);
    for (size_t b = 0; b < k_; ++b) {
      if (a == b) continue;
      const Var u = q.channel[a * k_ + b];
      model_.at_most({{x(from, a), 1}, {x(to, b), 1}, {u, -1}}, 1);
      chosen.push_back({u, 1});
      const double us = flat_.transfer_us(a, b, flat_.bytes(tensor));
      if (us / scale_ <= big_)
        time.push_back({u, us / scale_});
      else
        model_.set_bounds(u, 0, 0);
    }
  }
  model_.equal(std::move(chosen), 0);
  model_.equal(std::move(time), 0);
}

// (6).
void MoiraiMilp::add_non_overlap(const GraphOrder& graph) {
  for (uint32_t i = 0; i < flat_.num_ops(); ++i) {
    for (uint32_t j = i + 1; j < flat_.num_ops(); ++j) {
      if (graph.orders(i, j)) continue;
      const Var second = model_.add_binary();  // delta: 1 when j comes after i
      const double si = begin_.op_start_us[i], sj = begin_.op_start_us[j];
      const double ei = si + flat_.us(i, begin_.plan.device[i]);
      model_.set_start(second, si < sj || (si == sj && ei <= sj) ? 1 : 0);
      for (size_t k = 0; k < k_; ++k) {
        model_.at_least({{start_[i], 1}, {end_[j], -1}, {second, big_}, {x(i, k), -big_}, {x(j, k), -big_}},
                        -2 * big_);
        model_.at_least({{start_[j], 1}, {end_[i], -1}, {second, -big_}, {x(i, k), -big_}, {x(j, k), -big_}},
                        -3 * big_);
      }
    }
  }
}

// Their sum is 1 if the flow takes a route, and with it engines: devices that share their memory need none.
std::vector<Var> MoiraiMilp::routed(const FlowVars& q) const {
  std::vector<Var> channels;
  bool all = true;
  for (size_t a = 0; a < k_; ++a)
    for (size_t b = 0; b < k_; ++b) {
      if (a == b) continue;
      const bool has_route = flat_.way(a, b).passage != Passage::kFree;
      all = all && has_route;
      if (has_route) channels.push_back(q.channel[a * k_ + b]);
    }
  return all ? std::vector<Var>{q.crosses} : channels;
}

// (8).
void MoiraiMilp::add_congestion(const GraphOrder& graph) {
  std::vector<size_t> ports;
  for (size_t k = 0; k < k_; ++k) {
    if (has_ports(flat_, k)) ports.push_back(k);
  }
  for (size_t a = 0; a < flows_.size() && !ports.empty(); ++a) {
    for (size_t b = a + 1; b < flows_.size(); ++b) {
      const FlowVars &q = flows_[a], &r = flows_[b];
      if (graph.orders(q.ends, r.ends)) continue;
      const Var second = model_.add_binary();  // delta: 1 when r comes after q
      model_.set_start(second, q.sent_us <= r.sent_us ? 1 : 0);
      auto taken = routed(q);
      for (const Var channel : routed(r)) taken.push_back(channel);
      for (const size_t k : ports) {
        for (const bool egress : {true, false}) {
          const double near = egress ? big_ : -big_;  // of x at the flows' sources
          std::vector<Term> where{{x(q.ends.from, k), -near},
                                  {x(r.ends.from, k), -near},
                                  {x(q.ends.to, k), near},
                                  {x(r.ends.to, k), near}};
          for (const Var channel : taken) where.push_back({channel, -big_});
          // S_q >= C_r - M delta - M (2 - z_q - z_r) + M (x_ak + x_ck - x_bk - x_dk - 2), with routed() for z
          auto first = where, then = where;
          first.insert(first.end(), {{q.start, 1}, {r.end, -1}, {second, big_}});
          then.insert(then.end(), {{r.start, 1}, {q.end, -1}, {second, -big_}});
          model_.at_least(std::move(first), -4 * big_);
          model_.at_least(std::move(then), -5 * big_);
        }
      }
    }
  }
}

// Devices by x, order by S (equation 4b).
FlatPlan MoiraiMilp::decisions(const std::vector<double>& values) const {
  const auto at = [&](Var v) { return values[static_cast<size_t>(v.index)]; };
  FlatPlan plan;
  std::vector<double> priority;
  for (uint32_t v = 0; v < flat_.num_ops(); ++v) {
    uint32_t best = 0;
    for (uint32_t k = 1; k < k_; ++k) {
      if (at(x(v, k)) > at(x(v, best))) best = k;
    }
    plan.device.push_back(best);
    priority.push_back(-at(start_[v]));
  }
  // Starts that are equal within the solver's tolerance may contradict the graph.
  plan.order = order_by_priority(flat_, priority);
  return plan;
}

}  // namespace

size_t count_moirai_rows(const FlatProblem& flat, size_t most) {
  const size_t n = flat.num_ops(), k = flat.num_devices();
  // Without the pairs the program has a few rows per op and flow; the graph's order is quadratic in bits.
  const auto flows = flows_of(flat);
  size_t rows = 3 * n + flows.size() * (3 * k + k * k + 4);
  if (rows > most) return rows;
  const GraphOrder graph(flat);
  for (uint32_t i = 0; i < n && rows <= most; ++i) {
    for (uint32_t j = i + 1; j < n; ++j) rows += graph.orders(i, j) ? 0 : 2 * k;
  }
  for (size_t q = 0; q < flows.size() && rows <= most; ++q) {
    for (size_t r = q + 1; r < flows.size(); ++r) rows += graph.orders(flows[q], flows[r]) ? 0 : 4 * k;
  }
  return rows;
}

Result<MoiraiAnswer> solve_moirai(const FlatProblem& flat, const MoiraiStart& start, SolveOptions options) {
  const MoiraiMilp milp(flat, start);
  const double us = milp.us_per_unit();
  if (options.on_progress) {
    options.on_progress = [us, report = std::move(options.on_progress)](SolveProgress p) {
      p.incumbent *= us;
      p.bound *= us;
      report(p);
    };
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto solution, solve(milp.model(), options));
  MoiraiAnswer answer;
  answer.status = solution.status;
  answer.rows = milp.model().rows().size();
  answer.columns = milp.model().variables().size();
  answer.nodes = solution.nodes;
  // A bound within the solver's tolerances of the truth, so a little less is proven.
  if (std::isfinite(solution.bound)) answer.bound_us = std::max(0.0, solution.bound * us * (1 - 2e-6));
  if (!solution.has_values()) return answer;
  answer.plan = milp.decisions(solution.values);
  answer.program_us = solution.objective * us;
  return answer;
}

}  // namespace heddle
