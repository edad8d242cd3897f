// heddle fleet: the list of its parts, and what they share.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "fleet_verbs.h"
#include "heddle/base/spelling.h"
#include "heddle/report/fleet_plan_text.h"
#include "model/model_flags.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

constexpr Verb kFleetParts[] = {
    {"plan", "plan pools of pipelines for every model of a fleet", setup_fleet_plan},
    {"compare", "compare several planners on one fleet", setup_fleet_compare},
    {"explain", "explain a plan, and what one more device of each class would bring", setup_fleet_explain},
    {"whatif", "predict the effect of other counts and weights", setup_fleet_whatif},
    {"replan", "plan again from a running plan, so that few devices change their work", setup_fleet_replan},
    {"verify", "check a fleet's plan file independently of its planner", setup_fleet_verify},
    {"split", "divide a fleet among several servers: a fleet file and a plan for each", setup_fleet_split},
    {"new", "make a fleet file for hardware that is not here, from the catalogue", setup_fleet_new},
    {"profile", "measure blocks of models on this machine, as a fleet file", setup_fleet_profile},
    {"simulate", "simulate a plan under load: attainment, latency, use, lost devices, a change of plan",
     setup_fleet_simulate},
    {"follow", "follow a load over time with few device-hours, against one plan for its peak",
     setup_fleet_follow},
    {"import", "make a fleet file from a folder of PPipe's tables", setup_fleet_import},
    {"planners", "list the planners for fleets, with their papers", setup_fleet_planners},
};

std::string stem_of_model(const std::string& path) { return std::filesystem::path(path).stem().string(); }

// "NAME=DIMS" is for all models, "MODEL:NAME=DIMS" for the one of that file name without its suffix.
std::vector<std::string> shapes_for(const std::vector<std::string>& all,
                                    const std::vector<std::string>& paths, const std::string& path) {
  std::vector<std::string> stems, shapes;
  for (const auto& p : paths) stems.push_back(stem_of_model(p));
  for (const auto& shape : all) {
    const auto colon = shape.find(':');
    const auto model = shape.substr(0, colon);
    const bool for_one = colon != std::string::npos && colon < shape.find('=') &&
                         std::find(stems.begin(), stems.end(), model) != stems.end();
    if (!for_one) shapes.push_back(shape);
    if (for_one && model == stem_of_model(path)) shapes.push_back(shape.substr(colon + 1));
  }
  return shapes;
}

template <class T>
Result<T*> named(const std::string& flag, std::vector<T>& list, const std::string& name, const char* kind) {
  std::vector<std::string> names;
  for (auto& item : list) {
    if (item.name == name) return &item;
    names.push_back(item.name);
  }
  return invalid_input(flag + ": the fleet has no " + kind + " " + quote_text(name) +
                       did_you_mean(name, names) + "; it has " + join_names(names));
}

}  // namespace

void FleetGoalFlags::declare(Command& command) {
  command.option(
      "--objective", objective,
      "max-min (default: the least rate over weight, greatest), cost or power (least, at --load), or "
      "goodput (most of --load)");
  command.rate("--load", load_per_s, "requests of all models together, split by their weights", 0, 1e15);
  command.seconds("--time-limit", time_limit_s,
                  "time for planning, then the best so far (default: none; 60s for ppipe-milp and --prove; "
                  "--traffic ends by "
                  "itself, within 2s for 100 devices)",
                  0, 1e7);
  command.flag("--prove", prove, "spend the time on a better bound, by a MILP over all columns");
}

Result<FleetPlanOptions> FleetGoalFlags::options(const Invocation& invocation) const {
  FleetPlanOptions o;
  const auto found = fleet_objective_named(objective);
  if (!found) {
    const std::vector<std::string> names = {"max-min", "cost", "power", "goodput"};
    return invalid_input("--objective " + objective + ": expected " + join_names(names) +
                         did_you_mean(objective, names));
  }
  o.objective = *found;
  if (o.objective == FleetObjective::kMaxMin && load_per_s > 0)
    return invalid_input("--load has no meaning for the objective max-min; give cost, power or goodput");
  o.load_per_s = load_per_s;
  o.deadline = time_limit_s > 0 ? Deadline::after_seconds(time_limit_s, invocation.cancel)
                                : Deadline::never(invocation.cancel);
  o.prove = prove;
  o.progress = invocation.progress;
  return o;
}

void FleetCutFlags::declare(Command& command) {
  command.option("--blocks", blocks, "blocks of each model (default 10)", 1, kMaxBlocks);
  command.option(
      "--blocks-by", method,
      "balanced (default: least bytes between blocks of about equal time on all classes) or greedy");
  command.list(
      "--shape", shapes,
      "set an input's shape: NAME=1,3,224,224, or MODEL:NAME=1,3,224,224 for one model (repeatable)");
  command.flag("--fp16-cuts", fp16_cuts,
               "feature maps of float32 are to cross cuts as float16, which halves their bytes");
  command.option("-o,--output", output, "the fleet file (.json or .yaml)");
}

Result<std::vector<ModelSpec>> FleetCutFlags::sources(const std::vector<std::string>& paths) const {
  std::vector<ModelSpec> models;
  for (const auto& path : paths) {
    models.push_back({.path = path, .import = {}});
    HEDDLE_ASSIGN_OR_RETURN(models.back().import.shapes, parse_shapes(shapes_for(shapes, paths, path)));
  }
  return models;
}

Result<BlockSettings> FleetCutFlags::settings() const {
  const auto named = prepartition_method_named(method);
  if (!named) {
    const std::vector<std::string> names = {"greedy", "balanced"};
    return invalid_input("--blocks-by " + method + ": expected greedy or balanced" +
                         did_you_mean(method, names));
  }
  return BlockSettings{
      .blocks = static_cast<int>(blocks), .method = *named, .fp16_cuts = fp16_cuts, .output = output};
}

void FleetChangeFlags::declare(Command& command) {
  command.list("--count", counts, "CLASS=N: so many devices of the class (repeatable)");
  command.list("--weight", weights, "MODEL=W: another weight of the model (repeatable)");
}

Result<Fleet> FleetChangeFlags::apply(Fleet fleet) const {
  for (const auto& text : counts) {
    HEDDLE_ASSIGN_OR_RETURN(const auto change, assignment("--count", text));
    HEDDLE_ASSIGN_OR_RETURN(auto* c, named("--count", fleet.classes, change.first, "class"));
    if (change.second < 0 || change.second > static_cast<double>(kMaxFleetDevices) ||
        change.second != std::floor(change.second))
      return invalid_input("--count " + text + ": expected a whole number from 0 to " +
                           std::to_string(kMaxFleetDevices));
    c->count = static_cast<int64_t>(change.second);
  }
  for (const auto& text : weights) {
    HEDDLE_ASSIGN_OR_RETURN(const auto change, assignment("--weight", text));
    HEDDLE_ASSIGN_OR_RETURN(auto* m, named("--weight", fleet.models, change.first, "model"));
    m->weight = change.second;
  }
  HEDDLE_RETURN_IF_ERROR(check_fleet(fleet));
  return fleet;
}

RunFn setup_fleet_planners(Command&) {
  return [](const Invocation& invocation) -> Result<int> {
    show_result(invocation, fleet_planners_shown());
    return kExitDone;
  };
}

RunFn setup_fleet(Command& command) { return command.subverbs(kFleetParts); }

}  // namespace heddle::cli
