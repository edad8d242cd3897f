#include "verbs.h"

namespace heddle::cli {
namespace {

constexpr Verb kVerbs[] = {
    {"inspect", "show a model's structure, sizes, FLOPs and cut points", setup_inspect},
    {"devices", "describe this machine (or a preset) as a cluster file", setup_devices},
    {"profile", "measure a model's units on this machine's devices", setup_profile},
    {"plan", "plan a model on a cluster", setup_plan},
    {"compare", "compare several planners on one problem", setup_compare},
    {"verify", "check a plan file independently of its planner", setup_verify},
    {"explain", "explain a plan, and what would make it faster", setup_explain},
    {"grade", "compare a placement that you have with what Heddle would do", setup_grade},
    {"export", "write a plan's placement for another tool", setup_export},
    {"whatif", "predict the effect of other hardware", setup_whatif},
    {"run", "execute a plan or model, verify it, compare with the prediction", setup_run},
    {"report", "draw a plan or run: .html, .svg or .json (Chrome/Perfetto trace)", setup_report},
    {"generate", "write random graphs and models of the zoo", setup_generate},
    {"fleet", "plan fleets of many devices for several models with deadlines", setup_fleet},
    {"serve", "serve models on this machine, or a fleet, by the Open Inference Protocol", setup_serve},
    {"worker", "run a process whose devices a served fleet uses", setup_worker},
    {"deploy", "write a fleet or plan as Kubernetes, Slurm, Ray or systemd files", setup_deploy},
    {"loadtest", "load a server with open-loop requests, and count the outcome of each", setup_loadtest},
    {"server", "show or change a server's fleet: its devices and its plan", setup_server},
    {"bench", "reproduce a table of figures", setup_bench},
    {"planners", "list the planners, what each supports, and its paper", setup_planners},
    {"doctor", "check this machine (solvers, engines, GPUs, files, ports), or a running fleet", setup_doctor},
    {"completion", "print a script that completes verbs and flags in bash, zsh or fish", setup_completion},
    {"man", "print the manual page, in roff", setup_man},
    {"help", "print the help of a verb", setup_help},
    {"version", "print the version, the commit and the build's options", setup_version},
};

}  // namespace

std::span<const Verb> verbs() { return kVerbs; }

}  // namespace heddle::cli
