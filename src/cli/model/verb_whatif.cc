// heddle whatif: the predicted effect of other hardware, planned again for each change.
#include <cstdio>

#include "heddle/base/errors.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/terminal.h"
#include "heddle/report/plan_text.h"
#include "heddle/session/hardware_changes.h"
#include "model_flags.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

struct WhatifOptions : PlanningFlags {
  std::string planner = "auto";
  std::vector<std::string> add, remove, scale;
};

// "gpu0=2": name and factor.
Result<std::pair<std::string, double>> parse_scale(const std::string& text) {
  auto scale = assignment("--scale", text);
  if (!scale.ok() || !(scale->second > 0 && scale->second <= 1e6)) {
    return invalid_input("--scale " + text +
                         ": expected NAME=FACTOR with a factor above 0, for example gpu0=2");
  }
  return scale;
}

// The change, with its flag in the error.
Status add_change(Result<HardwareChange> change, const std::string& flag, std::vector<HardwareChange>& list) {
  HEDDLE_ASSIGN_OR_RETURN(auto made, with_context(std::move(change), flag));
  list.push_back(std::move(made));
  return {};
}

Result<std::vector<HardwareChange>> changes(const WhatifOptions& o, const Problem& problem) {
  std::vector<HardwareChange> list;
  for (const auto& name : o.add)
    HEDDLE_RETURN_IF_ERROR(add_change(more_devices(problem, name), "--add " + name, list));
  for (const auto& name : o.remove)
    HEDDLE_RETURN_IF_ERROR(add_change(fewer_devices(problem, name), "--remove " + name, list));
  for (const auto& text : o.scale) {
    HEDDLE_ASSIGN_OR_RETURN(const auto parsed, parse_scale(text));
    const auto& [name, factor] = parsed;
    HEDDLE_RETURN_IF_ERROR(add_change(scaled_hardware(problem, name, factor), "--scale " + name, list));
  }
  return list;
}

Result<int> run_whatif(const WhatifOptions& o, const Invocation& invocation) {
  HEDDLE_RETURN_IF_ERROR(check_planner(o.planner));
  HEDDLE_ASSIGN_OR_RETURN(const auto source, o.model.source());
  HEDDLE_ASSIGN_OR_RETURN(const auto settings, o.problem.settings());
  HEDDLE_ASSIGN_OR_RETURN(const auto session, open_session(source, settings, invocation));
  show_notes(session.loaded, invocation);
  HEDDLE_ASSIGN_OR_RETURN(const auto list, changes(o, session.problem));
  if (list.empty()) {
    return invalid_input("whatif needs a change: --add DEVICE, --remove DEVICE or --scale NAME=FACTOR");
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto rows, replan(session, list, settings, o.planner, o.search, invocation));
  if (const size_t missing = list.size() + 1 - rows.size(); missing > 0)
    print(stderr, "heddle: note: interrupted; {} not planned\n", counted(missing, "change"));
  show_result(invocation, replanned_json(rows), replanned_text(rows));
  return kExitDone;
}

}  // namespace

RunFn setup_whatif(Command& command) {
  auto o = std::make_shared<WhatifOptions>();
  o->declare(command);
  command.option("--planner", o->planner, "one of `heddle planners` (default auto)");
  command.list("--add", o->add,
               "one more device like DEVICE, a device or a class of them, with the same links (repeatable)");
  command.list("--remove", o->remove, "without DEVICE, or without one of that class (repeatable)");
  command.list("--scale", o->scale,
               "NAME=FACTOR: a device, class of devices or link FACTOR times as fast, \"transfers\" whose "
               "times are given as fast, or all devices' \"memory\" as large (repeatable)");
  return [o](const Invocation& invocation) { return run_whatif(*o, invocation); };
}

}  // namespace heddle::cli
