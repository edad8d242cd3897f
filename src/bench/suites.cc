#include "suites.h"

namespace heddle::bench {
namespace {

constexpr BenchSuite kSuites[] = {
    {"core", "planning, evaluator and executor speed", bench_core},
    {"models",
     "real models in the engines' own types, in f32 and under a budget, beside engines as they come, also "
     "while "
     "0, 1 and 2 other threads each keep a core busy: times, errors, predictions",
     bench_models},
    {"dnn-partitioning", "placement workloads of EfficientMIP (--input) beside peers' figures (--reference)",
     bench_dnn_partitioning},
    {"diviml", "DiviML's tables on random wired networks and GPT-3: splitting, MILP, heuristics, bounds",
     bench_diviml},
    {"moirai", "Moirai's public workloads against other solvers; its networks on its clusters", bench_moirai},
    {"hios", "HIOS's simulation on generated instances or those of --input; real networks on two A40",
     bench_hios},
    {"cold", "time from files to the first output against OpenVINO's, without caches and with them",
     bench_cold},
    {"sortinghat", "SortingHat's models, shapes and machines from host memory: its planner, baselines, ours",
     bench_sortinghat},
    {"transport",
     "what a message between two ranks costs beside MPI alone (mpirun -n 2 heddle bench transport)",
     bench_transport},
    {"ppipe", "PPipe's fleets (--input) beside its published plans; more classes, more devices", bench_ppipe},
    {"solvers",
     "random models (--instances) by both solvers, with presolve and without, and by trying all solutions",
     bench_solvers},
    {"serve", "latency that serving adds to a direct call, its rate beside a plain gRPC echo's", bench_serve},
    {"scale", "what one server carries beside fleets of 100 to 10,000 devices; the first bottleneck",
     bench_scale},
};

}  // namespace

std::span<const BenchSuite> bench_suites() { return kSuites; }

}  // namespace heddle::bench
