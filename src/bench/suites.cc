#include "suites.h"

#include <fmt/format.h>

namespace heddle::bench {
namespace {

std::vector<std::string> no_parts() { return {}; }
std::vector<std::string> core_parts() { return {"planning", "executor"}; }
std::vector<std::string> model_parts() { return {"auto", "f32", "budget", "busy"}; }
std::vector<std::string> cold_parts() { return {"plain", "cached", "transformer"}; }
std::vector<std::string> diviml_parts() {
  return {"table1", "figure4", "table3", "table4", "gpt3", "table1-n32"};
}
std::vector<std::string> solver_parts() { return {"shapes", "schedules", "placements"}; }

constexpr BenchSuite kSuites[] = {
    {"core", "planning, evaluator and executor speed", kOnlyFlag | kRepeatFlag | kSeedFlag, core_parts,
     nullptr, bench_core},
    {"models",
     "real models in the engines' own types, in f32 and under a budget, beside engines as they come, also "
     "while "
     "0, 1 and 2 other threads each keep a core busy: times, errors, predictions",
     kOnlyFlag | kModelsFlag | kStoreFlag | kSeedFlag, model_parts, nullptr, bench_models},
    {"dnn-partitioning", "placement workloads of EfficientMIP (--input) beside peers' figures (--reference)",
     kOnlyFlag | kInputFlag | kReferenceFlag | kSeedFlag | kTimeLimitFlag | kThreadsFlag, no_parts,
     "parts of the instances' names", bench_dnn_partitioning},
    {"diviml", "DiviML's tables on random wired networks and GPT-3: splitting, MILP, heuristics, bounds",
     kOnlyFlag | kSeedFlag | kTimeLimitFlag | kThreadsFlag, diviml_parts, nullptr, bench_diviml},
    {"moirai", "Moirai's public workloads against other solvers; its networks on its clusters",
     kOnlyFlag | kInputFlag | kReferenceFlag | kSeedFlag | kTimeLimitFlag | kThreadsFlag, moirai_parts,
     "a workload's name", bench_moirai},
    {"hios", "HIOS's simulation on generated instances or those of --input; real networks on two A40",
     kOnlyFlag | kModelsFlag | kStoreFlag | kInputFlag | kReferenceFlag | kSeedFlag | kTimeLimitFlag |
         kThreadsFlag | kInstancesFlag | kEachInstanceFlag,
     hios_parts, "with --input parts of instances' names", bench_hios},
    {"cold", "time from files to the first output against OpenVINO's, without caches and with them",
     kOnlyFlag | kModelsFlag | kRepeatFlag | kSeedFlag, cold_parts, nullptr, bench_cold},
    {"sortinghat", "SortingHat's models, shapes and machines from host memory: its planner, baselines, ours",
     kOnlyFlag | kSeedFlag | kTimeLimitFlag | kThreadsFlag, sortinghat_parts, nullptr, bench_sortinghat},
    {"transport",
     "what a message between two ranks costs beside MPI alone (mpirun -n 2 heddle bench transport)",
     kRepeatFlag, no_parts, nullptr, bench_transport},
    {"ppipe", "PPipe's fleets (--input) beside its published plans; more classes, more devices",
     kOnlyFlag | kInputFlag | kReferenceFlag | kRepeatFlag | kSeedFlag | kTimeLimitFlag | kPictureFlag,
     ppipe_parts, "clusters or instances such as HC1-L or HC1-L/G1", bench_ppipe},
    {"solvers",
     "random models (--instances) by both solvers, with presolve and without, and by trying all solutions",
     kOnlyFlag | kSeedFlag | kInstancesFlag, solver_parts, nullptr, bench_solvers},
    {"serve", "latency that serving adds to a direct call, its rate beside a plain gRPC echo's",
     kModelsFlag | kSeedFlag | kTimeLimitFlag, no_parts, nullptr, bench_serve},
    {"scale", "what one server carries beside fleets of 100 to 10,000 devices; the first bottleneck",
     kSeedFlag | kTimeLimitFlag, no_parts, nullptr, bench_scale},
};

}  // namespace

std::span<const BenchSuite> bench_suites() { return kSuites; }

BenchRun run_suite(const BenchSuite& suite, const BenchOptions& options, const Control& control) {
  BenchRun run;
  if (suite.further_parts == nullptr) run.status = check_parts(options, suite.parts());
  if (run.status.ok()) run.status = suite.run(options, control, run.rows);
  if (control.cancel.cancelled() && !run.status.ok() && run.status.error().code() == Code::kCancelled)
    run.status = {};
  for (auto& row : run.rows) {
    if (!beyond_bound(row)) continue;
    row.fails = true;
    if (run.status.ok())
      run.status =
          internal_error(fmt::format("{}: {} {} is {:.9g} {}, beyond the bound of {:.9g}; one of the two is "
                                     "wrong; please report it with the command",
                                     row.instance, row.planner, row.metric, row.value, row.unit, *row.bound));
  }
  return run;
}

}  // namespace heddle::bench
