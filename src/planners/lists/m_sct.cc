// m-SCT: Baechi's memory-constrained small-communication-times scheduling. B. Jeon et al., "Baechi: fast
// device placement of machine learning graphs", SoCC 2020, sections 3.2 and 4; C. Hanen, A. Munier, "An
// approximation algorithm for scheduling dependent tasks on m processors with small communication delays",
// 1995. Moirai's baseline "m-SCT".
//
// Every op has at most one favourite child, which its device waits for, and is the favourite of at most one
// parent. They come from the relaxation of SCT's integer program (infinitely many devices):
//   minimise C,  s_i + p_i + c_ij x_ij <= s_j,  s_i + p_i <= C,
//   sum over children of x_ij >= children - 1,  sum over parents of x_ij >= parents - 1,  0 <= x_ij <= 1;
// x_ij below 0.1 makes j the favourite of i. Then earliest time first, a device that has run i being kept for
// its favourite child until that could start elsewhere, unless an urgent op (its data is everywhere) is
// there. If the program has too many edges to be solved in time, the child with the longest path to the end
// is the favourite, and the plan's detail mentions it.
//
// Minimises the makespan of one request. O(E k + V k log V) beside the program. Exploits transfers and memory
// limits; ignores contention and, in choosing the earliest start, how unequal devices are.
#include <algorithm>
#include <numeric>

#include "etf.h"
#include "heddle/solve/milp.h"

namespace heddle {
namespace {

constexpr double kRounding = 0.1;    // Baechi, section 4
constexpr size_t kMostEdges = 6000;  // some seconds of simplex
constexpr double kLpShare = 0.5;     // of the time left
constexpr double kLpSeconds = 20;

struct FlatEdge {
  uint32_t from, to;
  double us;  // mean transfer
};

std::vector<FlatEdge> edges_of(const FlatProblem& flat) {
  const size_t k = flat.num_devices();
  std::vector<FlatEdge> edges;
  for (uint32_t v = 0; v < flat.num_ops(); ++v) {
    for (const uint32_t t : flat.inputs(v)) {
      double sum = 0;
      int count = 0;
      for (size_t i = 0; i < k; ++i) {
        for (size_t j = 0; j < k; ++j) {
          const double us = i == j ? kImpossible : flat.transfer_us(i, j, flat.bytes(t));
          if (us < kImpossible) sum += us, ++count;
        }
      }
      const double us = count > 0 ? sum / count : 0;
      // Several tensors from one op are one edge: they are sent together or not at all.
      if (!edges.empty() && edges.back().to == v && edges.back().from == flat.producer(t))
        edges.back().us += us;
      else
        edges.push_back({flat.producer(t), v, us});
    }
  }
  return edges;
}

// The value of x per edge, or nothing when the solver did not finish.
std::optional<std::vector<double>> relaxed(const FlatProblem& flat, const std::vector<FlatEdge>& edges,
                                           const PlannerOptions& options) {
  const double left = options.deadline.seconds_left();
  SolveOptions solve_options;
  solve_options.deadline = options.deadline.sooner(std::min(kLpSeconds, kLpShare * left));
  solve_options.seed = options.seed;
  Milp lp;
  std::vector<Var> start, x;
  const Var makespan = lp.add_continuous(0, kNoBound, "C");
  lp.add_cost(makespan, 1);
  std::vector<std::vector<Term>> children(flat.num_ops()), parents(flat.num_ops());
  // In units of the mean op, so that the program's numbers are near one.
  double scale = 0;
  for (uint32_t v = 0; v < flat.num_ops(); ++v) scale += mean_us(flat, v);
  scale = std::max(scale / static_cast<double>(flat.num_ops()), 1e-9);
  for (uint32_t v = 0; v < flat.num_ops(); ++v) {
    start.push_back(lp.add_continuous(0, kNoBound));
    lp.at_most({{start[v], 1}, {makespan, -1}}, -mean_us(flat, v) / scale);
  }
  for (const FlatEdge& e : edges) {
    const Var var = lp.add_continuous(0, 1);
    x.push_back(var);
    lp.at_most({{start[e.from], 1}, {var, e.us / scale}, {start[e.to], -1}}, -mean_us(flat, e.from) / scale);
    children[e.from].push_back({var, 1});
    parents[e.to].push_back({var, 1});
  }
  for (const auto* sides : {&children, &parents}) {
    for (const auto& terms : *sides) {
      if (terms.size() > 1) lp.at_least(terms, static_cast<double>(terms.size()) - 1);
    }
  }
  const auto solution = solve_relaxation(lp, solve_options);
  if (!solution.ok() || solution->status != SolveStatus::kOptimal) return std::nullopt;
  std::vector<double> values;
  for (const Var var : x) values.push_back(solution->values[static_cast<size_t>(var.index)]);
  return values;
}

// Edges by rising x below the rounding threshold; each op gives and gets one favourite.
std::vector<uint32_t> match(const FlatProblem& flat, const std::vector<FlatEdge>& edges,
                            const std::vector<double>& x, double threshold) {
  std::vector<uint32_t> order(edges.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return x[a] < x[b]; });
  std::vector<uint32_t> favourite(flat.num_ops(), kNoOp);
  std::vector<uint8_t> is_favourite(flat.num_ops(), 0);
  for (const uint32_t e : order) {
    if (x[e] >= threshold) break;
    if (favourite[edges[e].from] != kNoOp || is_favourite[edges[e].to]) continue;
    favourite[edges[e].from] = edges[e].to;
    is_favourite[edges[e].to] = 1;
  }
  return favourite;
}

Result<PlannerOutput> plan_m_sct(const Problem& problem, const PlannerOptions& options) {
  bool solved = true;
  double favourites = 0;
  const auto make_rules = [&](const FlatProblem& flat) {
    EtfRules rules{.priority = upward_ranks(flat), .favourite = {}, .tier = {}};
    const auto edges = edges_of(flat);
    std::optional<std::vector<double>> x;
    if (edges.size() <= kMostEdges) x = relaxed(flat, edges, options);
    if (x) {
      rules.favourite = match(flat, edges, *x, kRounding);
    } else {
      solved = false;
      std::vector<double> behind;
      for (const FlatEdge& e : edges) behind.push_back(-e.us - rules.priority[e.to]);
      rules.favourite = match(flat, edges, behind, kImpossible);
    }
    const auto without = std::count(rules.favourite.begin(), rules.favourite.end(), kNoOp);
    favourites = static_cast<double>(flat.num_ops()) - static_cast<double>(without);
    return rules;
  };
  auto out = plan_earliest_time_first(problem, options, "m-sct", make_rules);
  if (!out.ok()) return out;
  out->detail = solved ? "favourite children by SCT's relaxed program"
                       : "favourite children by longest paths: the program is too large for the time";
  out->counters["favourite_children"] = favourites;
  out->counters["relaxation_solved"] = solved;
  return out;
}

}  // namespace

PlannerEntry m_sct_planner() {
  return {{.name = "m-sct",
           .description = "earliest time first, devices waiting for favourite children",
           .source = "Baechi (Jeon et al., SoCC 2020), sections 3.2 and 4; Moirai's baseline",
           .objectives = {Objective::kLatency, Objective::kColdLatency},
           .exploits = "transfers, memory limits",
           .ignores = "contention; how much slower a device is that is free first"},
          plan_m_sct};
}

}  // namespace heddle
