// heddle whatif: the predicted effect of other hardware, planned again for each change.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/plan/problem_edit.h"
#include "heddle/session/replan.h"
#include "model_flags.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

constexpr const char* kMemory = "memory";        // --scale: every device's memory
constexpr const char* kTransfers = "transfers";  // --scale: transfers with given times

struct WhatifOptions : PlanningFlags {
  std::string planner = "auto";
  std::vector<std::string> add, remove, scale;
};

// Names that can be changed: devices and their classes; for --scale also links, memory and transfers.
std::vector<std::string> names_of(const Problem& problem, bool scale) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const auto& d : problem.cluster->devices()) add(d.name);
  for (const auto& d : problem.cluster->devices()) add(d.device_class);
  if (!scale) return names;
  for (const auto& l : problem.cluster->links()) add(l.name);
  add(kMemory);
  if (problem.transfers) add(kTransfers);
  return names;
}

Status check_name(const std::string& name, const Problem& problem, const char* flag, bool scale) {
  const auto names = names_of(problem, scale);
  if (std::find(names.begin(), names.end(), name) != names.end()) return {};
  return invalid_input(std::string(flag) + " " + name + ": no such device" + (scale ? " or link" : "") +
                       did_you_mean(name, names) + "; there are " + join_names(names));
}

// The device of that name, or all devices of that class.
std::vector<std::string> devices_of(const std::string& name, const Cluster& cluster) {
  if (cluster.find_device(name).valid()) return {name};
  std::vector<std::string> names;
  for (const auto& d : cluster.devices()) {
    if (d.device_class == name) names.push_back(d.name);
  }
  return names;
}

// "gpu0=2": name and factor, above 0 and at most a million.
Result<std::pair<std::string, double>> parse_scale(const std::string& text) {
  const auto eq = text.rfind('=');
  char* end = nullptr;
  const double factor = eq == std::string::npos ? 0 : std::strtod(text.c_str() + eq + 1, &end);
  if (!(factor > 0 && factor <= 1e6) || *end != '\0') {
    return invalid_input("--scale " + text +
                         ": expected NAME=FACTOR with a factor above 0, for example gpu0=2");
  }
  return std::pair(text.substr(0, eq), factor);
}

std::vector<ProblemEdit> scale_edits(const std::string& name, double factor, const Cluster& cluster) {
  const auto devices = devices_of(name, cluster);
  std::vector<ProblemEdit> edits;
  for (const auto& device : devices) edits.push_back({.cluster = {.scale = device, .factor = factor}});
  if (!devices.empty()) return edits;
  for (const auto& link : cluster.links()) {
    if (link.name == name) return {{.cluster = {.scale = name, .factor = factor}}};
  }
  if (name == kMemory) return {{.cluster = {.memory = factor}}};
  return {{.transfers = factor}};
}

Result<std::vector<HardwareChange>> changes(const WhatifOptions& o, const Problem& problem) {
  const Cluster& cluster = *problem.cluster;
  std::vector<HardwareChange> list;
  for (const auto& name : o.add) {
    HEDDLE_RETURN_IF_ERROR(check_name(name, problem, "--add", false));
    list.push_back({"one more " + name, {{.cluster = {.add = devices_of(name, cluster).front()}}}, nullptr});
  }
  for (const auto& name : o.remove) {
    HEDDLE_RETURN_IF_ERROR(check_name(name, problem, "--remove", false));
    if (cluster.num_devices() == 1) return invalid_input("--remove " + name + ": it is the only device");
    const std::string text = cluster.find_device(name).valid() ? "without " : "one less ";
    list.push_back({text + name, {{.cluster = {.remove = devices_of(name, cluster).back()}}}, nullptr});
  }
  for (const auto& text : o.scale) {
    HEDDLE_ASSIGN_OR_RETURN(const auto parsed, parse_scale(text));
    const auto& [name, factor] = parsed;
    HEDDLE_RETURN_IF_ERROR(check_name(name, problem, "--scale", true));
    list.push_back(
        {name + " x " + text.substr(name.size() + 1), scale_edits(name, factor, cluster), nullptr});
  }
  return list;
}

std::string times_text(double factor) { return fmt::format("{:.3f}x", factor); }

Result<int> run_whatif(WhatifOptions o, const Invocation& invocation) {
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
  Json json = Json::array();
  TextTable table({{"change"},
                   {objective_name(session.problem.objective), kRight},
                   {"bound", kRight},
                   {"gap", kRight},
                   {"faster by", kRight},
                   {"at most", kRight}});
  const double now = rows[0].result.value_us;
  for (const Replanned& row : rows) {
    const PlanResult& r = row.result;
    const double most = r.bound.us > 0 ? now / r.bound.us : 0;
    Json j = {{"change", row.what}, {"speedup", now / r.value_us}, {"gap", r.gap}, {"planner", r.planner}};
    if (most > 0) j["speedup_at_most"] = most;
    put_value(j, row.problem, r.value_us, r.bound.us);
    json.push_back(std::move(j));
    table.add_row({row.what, value_text(row.problem, r.value_us), value_text(row.problem, r.bound.us),
                   percent(r.gap), times_text(now / r.value_us), most > 0 ? times_text(most) : ""});
  }
  show_result(invocation, json, table.to_string());
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
