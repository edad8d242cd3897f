// GETF: generalised earliest time first on related machines. Y. Su, X. Ren, S. Vardi, A. Wierman,
// "Communication-aware scheduling of precedence-constrained tasks on related machines", arXiv:2004.14639,
// 2020, section 3; the assignment to groups is F. Chudak's and D. Shmoys's (J. Algorithms 30, 1999). Moirai's
// baseline "GETF".
//
// Devices are grouped by speed, group k holding those between gamma^(k-1) and gamma^k times the slowest,
// gamma = log m / log log m. A linear program without transfers shares each op out over the devices:
//   minimise T,  sum_i x_ij = 1,  sum_j p_ij x_ij <= T,  C_j >= sum_i p_ij x_ij,
//   C_j >= C_h + sum_i p_ij x_ij for each edge (h, j),  C_j <= T.
// An op may use the groups from the fastest down to where half of it lies; of these it gets the one with the
// most speed in total. Then earliest time first, each op within its group; an op that does not fit there goes
// to the other groups, nearest first (the paper has no memory limits).
//
// Minimises the makespan of one request. O(E k + V k log V) beside the program, which larger graphs solve
// on units (group_to_size), each op taking its unit's group. Exploits unequal devices, transfers and memory
// limits; ignores contention.
#include <algorithm>
#include <cmath>

#include "etf.h"
#include "heddle/graph/coarsen.h"
#include "heddle/solve/milp.h"

namespace heddle {
namespace {

constexpr size_t kMostUnits = 250;     // of the program
constexpr double kGroupLpShare = 0.5;  // of the time left
constexpr double kGroupLpSeconds = 20;
constexpr double kLeastGamma = 2;  // log m / log log m means nothing for fewer than e^e devices

// Work per device of one unit; kImpossible where a member cannot run.
struct Units {
  std::vector<int> of_op;
  std::vector<std::vector<double>> us;
  std::vector<std::pair<int, int>> edges;
};

Units make_units(const FlatProblem& flat) {
  const Graph& graph = *flat.problem().graph;
  const size_t n = flat.num_ops(), k = flat.num_devices();
  Units units;
  if (n <= kMostUnits) {
    for (size_t v = 0; v < n; ++v) units.of_op.push_back(static_cast<int>(v));
  } else {
    units.of_op = group_to_size(graph, kMostUnits);
  }
  const int count = 1 + *std::max_element(units.of_op.begin(), units.of_op.end());
  units.us.assign(static_cast<size_t>(count), std::vector<double>(k, 0));
  for (size_t v = 0; v < n; ++v) {
    for (size_t i = 0; i < k; ++i) units.us[static_cast<size_t>(units.of_op[v])][i] += flat.us(v, i);
  }
  for (const Edge& e : graph.edges()) {
    const int a = units.of_op[e.src.index()], b = units.of_op[e.dst.index()];
    if (a != b) units.edges.emplace_back(a, b);
  }
  std::sort(units.edges.begin(), units.edges.end());
  units.edges.erase(std::unique(units.edges.begin(), units.edges.end()), units.edges.end());
  return units;
}

// Speed of each device relative to the slowest, over the ops that all can run.
std::vector<double> speeds(const FlatProblem& flat) {
  const size_t k = flat.num_devices();
  std::vector<double> us(k, 0);
  for (size_t v = 0; v < flat.num_ops(); ++v) {
    const auto row = flat.row(v);
    if (std::any_of(row.begin(), row.end(), [](double t) { return !(t < kImpossible); })) continue;
    for (size_t i = 0; i < k; ++i) us[i] += row[i];
  }
  const double slowest = *std::max_element(us.begin(), us.end());
  std::vector<double> speed;
  for (const double t : us) speed.push_back(t > 0 && slowest > 0 ? slowest / t : 1);
  return speed;
}

// The fastest groups that hold half of the op end here.
size_t median_group(const std::vector<double>& share, const std::vector<size_t>& group, size_t last) {
  double sum = 0;
  for (size_t g = last + 1; g-- > 0;) {
    for (size_t i = 0; i < group.size(); ++i) {
      if (group[i] == g) sum += share[i];
    }
    if (sum >= 0.5 - 1e-9) return g;
  }
  return 0;
}
size_t best_group(const std::vector<double>& group_speed, size_t from) {
  size_t best = from;
  for (size_t g = from; g < group_speed.size(); ++g) {
    if (group_speed[g] > group_speed[best]) best = g;
  }
  return best;
}

// [unit][device], empty when not solved.
std::vector<std::vector<double>> solve_shares(const Units& units, size_t k, const PlannerOptions& options) {
  Milp lp;
  const Var total = lp.add_continuous(0, kNoBound, "T");
  lp.add_cost(total, 1);
  double scale = 0;
  for (const auto& row : units.us) scale += *std::min_element(row.begin(), row.end());
  scale = std::max(scale / static_cast<double>(units.us.size()), 1e-9);
  std::vector<std::vector<Var>> x(units.us.size());
  std::vector<std::vector<Term>> time(units.us.size()), load(k);
  std::vector<Var> end;
  for (size_t j = 0; j < units.us.size(); ++j) {
    std::vector<Term> all;
    for (size_t i = 0; i < k; ++i) {
      const double us = units.us[j][i];
      x[j].push_back(lp.add_continuous(0, us < kImpossible ? 1 : 0));
      if (!(us < kImpossible)) continue;
      all.push_back({x[j][i], 1});
      time[j].push_back({x[j][i], us / scale});
      load[i].push_back({x[j][i], us / scale});
    }
    lp.equal(all, 1);
    end.push_back(lp.add_continuous(0, kNoBound));
    lp.at_most({{end[j], 1}, {total, -1}}, 0);
    auto terms = time[j];
    terms.push_back({end[j], -1});
    lp.at_most(std::move(terms), 0);
  }
  for (size_t i = 0; i < k; ++i) {
    load[i].push_back({total, -1});
    lp.at_most(load[i], 0);
  }
  for (const auto& [a, b] : units.edges) {
    auto terms = time[static_cast<size_t>(b)];
    terms.push_back({end[static_cast<size_t>(a)], 1});
    terms.push_back({end[static_cast<size_t>(b)], -1});
    lp.at_most(std::move(terms), 0);
  }
  SolveOptions solve_options;
  solve_options.deadline =
      options.deadline.sooner(std::min(kGroupLpSeconds, kGroupLpShare * options.deadline.seconds_left()));
  solve_options.seed = options.seed;
  const auto solution = solve_relaxation(lp, solve_options);
  if (!solution.ok() || solution->status != SolveStatus::kOptimal) return {};
  std::vector<std::vector<double>> share(units.us.size(), std::vector<double>(k, 0));
  for (size_t j = 0; j < share.size(); ++j) {
    for (size_t i = 0; i < k; ++i) share[j][i] = solution->values[static_cast<size_t>(x[j][i].index)];
  }
  return share;
}

EtfRules make_rules(const FlatProblem& flat, const PlannerOptions& options, std::string& detail,
                    double& num_groups) {
  const size_t k = flat.num_devices();
  EtfRules rules;
  rules.priority = upward_ranks(flat);
  const auto speed = speeds(flat);
  const double m = static_cast<double>(k);
  const double loglog = std::log(std::log(std::max(m, 3.0)));
  const double gamma = std::max(kLeastGamma, loglog > 0 ? std::log(m) / loglog : kLeastGamma);
  std::vector<size_t> group(k);
  size_t last = 0;
  for (size_t i = 0; i < k; ++i) {
    group[i] = static_cast<size_t>(std::floor(std::log(speed[i]) / std::log(gamma) + 1e-9));
    last = std::max(last, group[i]);
  }
  std::vector<double> group_speed(last + 1, 0);
  for (size_t i = 0; i < k; ++i) group_speed[group[i]] += speed[i];
  num_groups = static_cast<double>(
      std::count_if(group_speed.begin(), group_speed.end(), [](double s) { return s > 0; }));
  rules.tier.assign(flat.num_ops(), std::vector<uint8_t>(k, 0));
  if (num_groups < 2) {
    detail = "one group of devices: earliest time first";
    return rules;
  }
  const Units units = make_units(flat);
  const auto share = solve_shares(units, k, options);
  detail = share.empty() ? "groups without the program: it was not solved in time"
           : units.us.size() < flat.num_ops()
               ? "groups by the linear program over " + std::to_string(units.us.size()) + " units"
               : "groups by the linear program";
  for (size_t v = 0; v < flat.num_ops(); ++v) {
    const auto unit = static_cast<size_t>(units.of_op[v]);
    const size_t chosen = share.empty() ? best_group(group_speed, 0)
                                        : best_group(group_speed, median_group(share[unit], group, last));
    for (size_t i = 0; i < k; ++i)
      rules.tier[v][i] = static_cast<uint8_t>(
          std::min<size_t>(255, group[i] > chosen ? group[i] - chosen : chosen - group[i]));
  }
  return rules;
}

Result<PlannerOutput> plan_getf(const Problem& problem, const PlannerOptions& options) {
  std::string detail;
  double groups = 0;
  auto out = plan_earliest_time_first(problem, options, "getf", [&](const FlatProblem& flat) {
    return make_rules(flat, options, detail, groups);
  });
  if (!out.ok()) return out;
  out->detail = detail;
  out->counters["groups"] = groups;
  return out;
}

}  // namespace

PlannerEntry getf_planner() {
  return {{.name = "getf",
           .description = "earliest time first within groups of devices of similar speed",
           .source = "Su et al., arXiv:2004.14639, section 3; Moirai's baseline",
           .objectives = {Objective::kLatency, Objective::kColdLatency},
           .exploits = "unequal devices, transfers, memory limits",
           .ignores = "contention"},
          plan_getf};
}

}  // namespace heddle
