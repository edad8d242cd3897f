#include "verbs.h"

namespace heddle::cli {
namespace {

constexpr Verb kVerbs[] = {
    {"inspect", "a model's structure, sizes, FLOPs and cut points", setup_inspect},
    {"devices", "this machine (or a preset) as a cluster file", setup_devices},
    {"profile", "measure a model's units on this machine's devices", setup_profile},
    {"plan", "plan a model on a cluster", setup_plan},
    {"compare", "several planners on one problem, one table", setup_compare},
    {"verify", "check a plan file independently", setup_verify},
    {"explain", "why a plan looks as it does, and what would help", setup_explain},
    {"whatif", "the predicted effect of other hardware", setup_whatif},
    {"run", "execute a plan or model, verify it, compare with the prediction", setup_run},
    {"report", "draw a plan or run: .html, .svg or .json (Chrome/Perfetto trace)", setup_report},
    {"generate", "random graphs and zoo models", setup_generate},
    {"fleet", "plan fleets of many devices for several models with deadlines", setup_fleet},
    {"serve", "serve models on this machine, or a fleet, by the Open Inference Protocol", setup_serve},
    {"worker", "a process with devices that a served fleet uses", setup_worker},
    {"load", "an open-loop load on a server: what became of every request", setup_load},
    {"bench", "reproduce a table of figures", setup_bench},
    {"planners", "what each planner supports, with its paper", setup_planners},
    {"selftest", "check that the solvers work on this machine", setup_selftest},
};

}  // namespace

std::span<const Verb> verbs() { return kVerbs; }

}  // namespace heddle::cli
