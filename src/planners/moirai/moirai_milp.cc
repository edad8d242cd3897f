// The letters are the paper's (table II). Where Heddle's problem differs from the paper's:
// - A tensor goes to a device once for all its readers there, so that flows of one tensor may share the
// ports:
//   (8) holds between flows of different tensors.
// - (5) counts an op's own parameters; live tensors are the evaluator's business.
// - (8) holds at devices whose copy engines transfers wait for.
// Each of these leaves constraints out, so the program's bound holds for Heddle's problem with the cluster's
// own routes.
#include "moirai_milp.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heddle/graph/analysis.h"

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

bool before(const Reachability& reach, const FlowEnds& a, const FlowEnds& b) {
  return a.to == b.from || reach.reaches(OpId(size_t{a.to}), OpId(size_t{b.from}));
}

// Do transfers from or to device k wait for each other?
bool has_ports(const FlatProblem& flat, size_t k) {
  const Problem& problem = flat.problem();
  return problem.execution.engine_contention && problem.cluster->device(flat.device(k)).copy_engines > 0;
}

}  // namespace

size_t MoiraiMilp::count_rows(const FlatProblem& flat, size_t most) {
  const size_t n = flat.num_ops(), k = flat.num_devices();
  // Without the pairs the program has a few rows per op and flow; Reachability is quadratic in bits.
  const auto flows = flows_of(flat);
  size_t rows = 3 * n + flows.size() * (3 * k + k * k + 4);
  if (rows > most) return rows;
  const Reachability reach(*flat.problem().graph);
  for (uint32_t i = 0; i < n && rows <= most; ++i) {
    for (uint32_t j = i + 1; j < n; ++j) {
      const OpId a(size_t{i}), b(size_t{j});
      if (!reach.reaches(a, b) && !reach.reaches(b, a)) rows += 2 * k;
    }
  }
  for (size_t q = 0; q < flows.size() && rows <= most; ++q) {
    for (size_t r = q + 1; r < flows.size(); ++r) {
      if (flows[q].tensor != flows[r].tensor && !before(reach, flows[q], flows[r]) &&
          !before(reach, flows[r], flows[q]))
        rows += 4 * k;
    }
  }
  return rows;
}

MoiraiMilp::MoiraiMilp(const FlatProblem& flat, const MoiraiStart& start)
    : flat_(flat),
      k_(flat.num_devices()),
      // Makespans near a thousand keep the solver's absolute tolerances far below any op.
      scale_(std::max(start.makespan_us, 1e-6) / 1000),
      big_(1000 * (1 + 1e-9)) {
  makespan_ = model_.add_continuous(0, big_, "makespan");
  model_.add_cost(makespan_, 1);
  model_.set_start(makespan_, start.makespan_us / scale_);
  add_ops(start);
  add_memory();
  add_flows(start);
  add_non_overlap(start);
  add_congestion(start);
}

// (4), (4b), (4c).
void MoiraiMilp::add_ops(const MoiraiStart& start) {
  for (uint32_t v = 0; v < flat_.num_ops(); ++v) {
    start_.push_back(model_.add_continuous(0, big_));
    end_.push_back(model_.add_continuous(0, big_));
    model_.set_start(start_[v], start.op_start_us[v] / scale_);
    std::vector<Term> one, time{{start_[v], 1}, {end_[v], -1}};
    for (size_t k = 0; k < k_; ++k) {
      x_.push_back(model_.add_binary());
      model_.set_start(x_.back(), start.plan.device[v] == k ? 1 : 0);
      one.push_back({x_.back(), 1});
      const double us = flat_.us(v, k);
      if (us / scale_ <= big_)
        time.push_back({x_.back(), us / scale_});
      else
        model_.set_bounds(x_.back(), 0, 0);
    }
    const double us = flat_.us(v, start.plan.device[v]);
    model_.set_start(end_[v], (start.op_start_us[v] + us) / scale_);
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
void MoiraiMilp::add_flows(const MoiraiStart& start) {
  for (const FlowEnds& f : flows_of(flat_)) {
    FlowVars q{f.tensor, f.from, f.to, {}, {}, {}, {}};
    q.start = model_.add_continuous(0, big_);
    q.end = model_.add_continuous(0, big_);
    q.crosses = model_.add_binary();
    const uint32_t from = start.plan.device[f.from], to = start.plan.device[f.to];
    const double made = start.op_start_us[f.from] + flat_.us(f.from, from);
    const double sent = from == to ? made : std::max(made, start.sent_us[f.tensor][to]);
    const double us = flat_.transfer_us(from, to, flat_.bytes(f.tensor));
    model_.set_start(q.start, sent / scale_);
    model_.set_start(q.end, (sent + us) / scale_);
    model_.set_start(q.crosses, from == to ? 0 : 1);
    q.channel.resize(k_ * k_);
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
}

void MoiraiMilp::add_flow_rows(const FlowVars& q) {
  model_.at_most({{end_[q.from], 1}, {q.start, -1}}, 0);
  model_.at_most({{q.end, 1}, {start_[q.to], -1}}, 0);
  std::vector<Term> chosen{{q.crosses, -1}}, time{{q.start, 1}, {q.end, -1}};
  for (size_t a = 0; a < k_; ++a) {
    model_.at_most({{x(q.from, a), 1}, {x(q.to, a), -1}, {q.crosses, -1}}, 0);
    model_.at_most({{x(q.to, a), 1}, {x(q.from, a), -1}, {q.crosses, -1}}, 0);
    model_.at_most({{q.crosses, 1}, {x(q.from, a), 1}, {x(q.to, a), 1}}, 2);
    for (size_t b = 0; b < k_; ++b) {
      if (a == b) continue;
      const Var u = q.channel[a * k_ + b];
      model_.at_most({{x(q.from, a), 1}, {x(q.to, b), 1}, {u, -1}}, 1);
      chosen.push_back({u, 1});
      const double us = flat_.transfer_us(a, b, flat_.bytes(q.tensor));
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
void MoiraiMilp::add_non_overlap(const MoiraiStart& start) {
  const Reachability reach(*flat_.problem().graph);
  for (uint32_t i = 0; i < flat_.num_ops(); ++i) {
    for (uint32_t j = i + 1; j < flat_.num_ops(); ++j) {
      const OpId a(size_t{i}), b(size_t{j});
      if (reach.reaches(a, b) || reach.reaches(b, a)) continue;
      const Var second = model_.add_binary();  // delta: 1 when j comes after i
      const double si = start.op_start_us[i], sj = start.op_start_us[j];
      const double ei = si + flat_.us(i, start.plan.device[i]);
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

// (8).
void MoiraiMilp::add_congestion(const MoiraiStart& start) {
  const Reachability reach(*flat_.problem().graph);
  std::vector<size_t> ports;
  for (size_t k = 0; k < k_; ++k) {
    if (has_ports(flat_, k)) ports.push_back(k);
  }
  const auto sent = [&](const FlowVars& q) {
    const uint32_t from = start.plan.device[q.from], to = start.plan.device[q.to];
    const double made = start.op_start_us[q.from] + flat_.us(q.from, from);
    return from == to ? made : std::max(made, start.sent_us[q.tensor][to]);
  };
  for (size_t a = 0; a < flows_.size() && !ports.empty(); ++a) {
    for (size_t b = a + 1; b < flows_.size(); ++b) {
      const FlowVars &q = flows_[a], &r = flows_[b];
      const FlowEnds qe{q.tensor, q.from, q.to}, re{r.tensor, r.from, r.to};
      if (q.tensor == r.tensor || before(reach, qe, re) || before(reach, re, qe)) continue;
      const Var second = model_.add_binary();  // delta: 1 when r comes after q
      model_.set_start(second, sent(q) <= sent(r) ? 1 : 0);
      for (const size_t k : ports) {
        for (const bool egress : {true, false}) {
          const double near = egress ? big_ : -big_;  // of x at the flows' sources
          const std::vector<Term> where{{q.crosses, -big_},    {r.crosses, -big_}, {x(q.from, k), -near},
                                        {x(r.from, k), -near}, {x(q.to, k), near}, {x(r.to, k), near}};
          // S_q >= C_r - M delta - M (2 - z_q - z_r) + M (x_ak + x_ck - x_bk - x_dk - 2)
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

FlatPlan MoiraiMilp::decisions(const std::vector<double>& values) const {
  const auto at = [&](Var v) { return values[static_cast<size_t>(v.index)]; };
  FlatPlan plan;
  for (uint32_t v = 0; v < flat_.num_ops(); ++v) {
    uint32_t best = 0;
    for (uint32_t k = 1; k < k_; ++k) {
      if (at(x(v, k)) > at(x(v, best))) best = k;
    }
    plan.device.push_back(best);
  }
  plan.order.assign(flat_.topological().begin(), flat_.topological().end());
  std::stable_sort(plan.order.begin(), plan.order.end(),
                   [&](uint32_t a, uint32_t b) { return at(start_[a]) < at(start_[b]); });
  // Starts that are equal within the solver's tolerance may contradict the graph; ready ops go by start.
  std::vector<uint32_t> place(plan.order.size()), missing(plan.order.size(), 0), order, ready;
  for (uint32_t i = 0; i < plan.order.size(); ++i) place[plan.order[i]] = i;
  const auto later = [&](uint32_t a, uint32_t b) { return place[a] > place[b]; };
  for (uint32_t v = 0; v < missing.size(); ++v) {
    missing[v] = static_cast<uint32_t>(flat_.inputs(v).size());
    if (missing[v] == 0) ready.push_back(v);
  }
  std::make_heap(ready.begin(), ready.end(), later);
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), later);
    const uint32_t v = ready.back();
    ready.pop_back();
    order.push_back(v);
    for (const uint32_t t : flat_.outputs(v)) {
      for (const uint32_t r : flat_.readers(t)) {
        if (--missing[r] > 0) continue;
        ready.push_back(r);
        std::push_heap(ready.begin(), ready.end(), later);
      }
    }
  }
  plan.order = std::move(order);
  return plan;
}

}  // namespace heddle
