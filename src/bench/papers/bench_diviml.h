// What the parts of the diviml suite share.
#pragma once

#include <utility>

#include "heddle/graph/generators.h"
#include "heddle/planners/planner.h"
#include "heddle/planners/shared_bound.h"
#include "rows.h"

namespace heddle::bench {

struct WiredCase {
  RandomWiredOptions::Family family = RandomWiredOptions::Family::kErdosRenyi;
  RandomWiredOptions::Dependency dependency = RandomWiredOptions::Dependency::kSeries;
  int nodes = 10, modules = 10, channels = 1;
  std::string name() const;  // "ER(0.2) N=10, 10 modules, sdep 2-chan"
};

// The network on DiviML's three devices with the relative speeds of its Table II and free links (the paper's
// model).
Result<Problem> wired_problem(const WiredCase& which, uint64_t seed);

// The same network for a batch of `images` pictures in four parts (section V-C: B/4, B/2, 3B/4 and B).
Result<Problem> wired_batch_problem(const WiredCase& which, int images, uint64_t seed);

// A row of the paper's Tables I and IV, and which planner each column is of.
struct PaperRow {
  RandomWiredOptions::Dependency dependency;
  int channels;
  double best, met, greedy, heft, ea, sa, milp, split, bound;
};
inline constexpr std::pair<const char*, double PaperRow::*> kPaperColumns[] = {
    {"single", &PaperRow::best},
    {"met", &PaperRow::met},
    {"greedy", &PaperRow::greedy},
    {"heft", &PaperRow::heft},
    {"ea", &PaperRow::ea},
    {"sa", &PaperRow::sa},
    {"diviml-milp", &PaperRow::milp},
    {"milp-split", &PaperRow::split},
    {"cp-split", &PaperRow::split},
    {"auto", &PaperRow::split},
};
// What a table compares beside each planner: the best plans of the constructive heuristics, of these and the
// metaheuristics, of the two splittings, and of the paper's MILP and MILP-SPLIT.
struct BestOf {
  double constructive = 0, heuristic = 0, split = 0, paper = 0;  // us; 0: none yet
  void add(const std::string& planner, double value_us);
};

// A planner's plan within the limit. Progress says which instance it is of.
Result<PlanResult> plan_within(const char* planner, const Problem& problem, const std::string& instance,
                               double seconds, const BenchOptions& options, const Control& control);

BenchRow diviml_row(const std::string& instance, const std::string& planner, const std::string& metric,
                    const std::string& unit, double value);

Status bench_diviml_latency(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows);
Status bench_diviml_throughput(const BenchOptions& options, const Control& control,
                               std::vector<BenchRow>& rows);
Status bench_diviml_gpt3(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows);
Status bench_diviml_speed(const BenchOptions& options, const Control& control, std::vector<BenchRow>& rows);

}  // namespace heddle::bench
