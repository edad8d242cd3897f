// SortingHat (S. Namkoong et al., "SortingHat: system topology-aware scheduling of deep neural network models
// on multi-GPU systems", ICS'25). Submodels between dominators (section 3.1; submodel_loop.cc), for each the
// program of equations 1 to 23 (section 3.3; slot_model.cc) with the constants of section 3.4
// (slot_problem.cc), begun from a heuristic's choice (slot_search.cc): `sortinghat` solves it by HiGHS,
// `sortinghat-cp` by CP-SAT.
//
// Minimises the makespan of one request. Devices that share cores: the most promising set without sharing.
// A submodel takes at most 30 s (section 4.2), all together the deadline. Exploits loads in turns on shared
// buses, direct host access, parallel transmission, transfers, parameter memory; ignores that links are held
// while they are used, in whose place times are longer by fixed factors.
#include "submodel_loop.h"

namespace heddle {
namespace {

// Of the sweep over ways to cut: larger submodels are not tried.
constexpr size_t kMostOps = 96;

struct Cut {
  Submodels submodels;
  std::string name;
};

std::vector<Cut> cuts_of(const Graph& graph, int dominators) {
  const auto prologue = light_prologue(graph);
  const auto named = [&](int n) {
    return Cut{dominator_submodels(graph, prologue, n), std::to_string(n) + " dominators"};
  };
  if (dominators > 0) return {named(dominators)};
  std::vector<Cut> cuts;
  const int most = dominators_for_size(graph, kMostOps);
  for (int n = 1; n <= most && n <= 16; n *= 2) cuts.push_back(named(n));
  cuts.push_back({articulation_submodels(graph, 1), "articulation points"});
  cuts.push_back({fused_submodels(graph, 1), "fused groups"});
  return cuts;
}

class SortingHat {
 public:
  explicit SortingHat(const PlannerOptions& options)
      : name_(options.is_set("solver", "cp-sat") ? "sortinghat-cp" : "sortinghat"),
        solver_(options.is_set("solver", "cp-sat") ? SlotSolver::kCpSat : SlotSolver::kHighs) {}

  Result<PlannerOutput> plan(const Problem& problem, const PlannerOptions& options) {
    const auto devices = configurations(problem).front();
    HEDDLE_RETURN_IF_ERROR(check_slots(devices.size(), options.subgraph_slots, name_));
    if (options.subgraph_slots % 2 != 0) {
      return invalid_input("q is " + std::to_string(options.subgraph_slots) +
                           ", expected an even number of at least 2: half of a device's "
                           "subgraphs read parameters in place");
    }
    const ColdTables tables(problem, devices);
    PlanStore candidates(problem);
    LoopOptions loop;
    loop.slots.q = static_cast<size_t>(options.subgraph_slots);
    HEDDLE_ASSIGN_OR_RETURN(const Cut cut, choose_cut(tables, loop, options, candidates));
    loop.solver = solver_;
    HEDDLE_ASSIGN_OR_RETURN(const auto result,
                            run_submodels(tables, cut.submodels, loop, options, name_, candidates));
    HEDDLE_ASSIGN_OR_RETURN(auto out, submodels_output(problem, options, result, candidates));
    out.counters["program_us"] = result.program_us;
    out.detail += "; submodels by " + cut.name;
    return out;
  }

 private:
  // One way to cut, or the best of several by the heuristic alone, in at most half of the time.
  Result<Cut> choose_cut(const ColdTables& tables, const LoopOptions& loop, const PlannerOptions& options,
                         PlanStore& candidates) const {
    auto cuts = cuts_of(*tables.flat().problem().graph, options.dominators);
    size_t best = 0;
    PlannerOptions part = options;
    part.progress = nullptr;
    part.deadline = options.deadline.sooner(options.deadline.seconds_left() / 2);
    for (size_t c = 0; c < cuts.size() && cuts.size() > 1 && !part.deadline.should_stop(); ++c) {
      const double before = candidates.empty() ? kImpossible : candidates.value_us();
      HEDDLE_RETURN_IF_ERROR(run_submodels(tables, cuts[c].submodels, loop, part,
                                           std::string(name_) + "'s heuristic, " + cuts[c].name, candidates));
      if (!candidates.empty() && candidates.value_us() < before) best = c;
    }
    return std::move(cuts[best]);
  }

  const char* const name_;
  const SlotSolver solver_;
};

}  // namespace

PlannerEntry sortinghat_planner() {
  return {
      {.name = "sortinghat",
       .description = "submodels between dominators, each a MILP of subgraphs and parameter copies, by HiGHS",
       .source = "SortingHat, ICS 2025, section 3, equations 1 to 23",
       .objectives = {Objective::kColdLatency},
       .exploits = "loads in turns on shared buses, direct host access, parallel transmission, transfers",
       .ignores = "waiting for links (fixed factors instead), later submodels",
       .settings = {{"solver", {"highs", "cp-sat"}, "what solves the submodels' programs"}},
       .aliases = {{.name = "sortinghat-cp",
                    .settings = {{"solver", "cp-sat"}},
                    .description = "the same programs by CP-SAT"}}},
      [](const Problem& problem, const PlannerOptions& options) {
        return SortingHat(options).plan(problem, options);
      }};
}

}  // namespace heddle
