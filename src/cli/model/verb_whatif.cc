// heddle whatif: the predicted effect of other hardware, planned anew for each change.
#include <cstdio>

#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/cluster/edit.h"
#include "heddle/report/text_table.h"
#include "heddle/session/replan.h"
#include "model_flags.h"
#include "verbs.h"
#include "whatif_workload.h"

namespace heddle::cli {
namespace {

struct WhatifOptions {
  ModelFlags model;
  ProblemFlags problem;
  SearchFlags search;
  WorkloadFlags workload;
  std::string planner = "auto";
  std::vector<std::string> add, remove, scale;
};

// Names that can be changed: devices, and links for --scale.
std::vector<std::string> names_of(const Cluster& cluster, bool links) {
  std::vector<std::string> names;
  for (const auto& d : cluster.devices()) names.push_back(d.name);
  if (links) {
    for (const auto& l : cluster.links()) names.push_back(l.name);
  }
  return names;
}

Status check_device_name(const std::string& name, const Cluster& cluster, const char* flag, bool links) {
  const auto names = names_of(cluster, links);
  for (const auto& n : names) {
    if (n == name) return {};
  }
  return Error(Code::kInvalidInput, std::string(flag) + " " + name + ": no such device" +
                                        (links ? " or link" : "") + did_you_mean(name, names) +
                                        "; there are " + join_names(names));
}

Result<std::vector<ClusterChange>> changes(const WhatifOptions& o, const Cluster& cluster) {
  std::vector<ClusterChange> list;
  for (const auto& name : o.add) {
    HEDDLE_RETURN_IF_ERROR(check_device_name(name, cluster, "--add", false));
    HEDDLE_ASSIGN_OR_RETURN(auto c, edit_cluster(cluster, {.add = name}));
    list.push_back({"one more " + name, c});
  }
  for (const auto& name : o.remove) {
    HEDDLE_RETURN_IF_ERROR(check_device_name(name, cluster, "--remove", false));
    if (cluster.num_devices() == 1)
      return Error(Code::kInvalidInput, "--remove " + name + ": it is the only device");
    HEDDLE_ASSIGN_OR_RETURN(auto c, edit_cluster(cluster, {.remove = name}));
    list.push_back({"without " + name, c});
  }
  for (const auto& text : o.scale) {
    HEDDLE_ASSIGN_OR_RETURN(const auto parsed, parse_scale(text));
    const auto& [name, factor] = parsed;
    HEDDLE_RETURN_IF_ERROR(check_device_name(name, cluster, "--scale", true));
    HEDDLE_ASSIGN_OR_RETURN(auto c, edit_cluster(cluster, {.scale = name, .factor = factor}));
    list.push_back({name + " x " + text.substr(name.size() + 1), c});
  }
  return list;
}

std::string times_text(double factor) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3fx", factor);
  return text;
}

std::string percent_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

Result<int> run_whatif(WhatifOptions o, const Invocation& invocation) {
  HEDDLE_RETURN_IF_ERROR(check_planner(o.planner));
  HEDDLE_ASSIGN_OR_RETURN(const auto workload,
                          whatif_workload(o.model.model, o.workload, {o.add, o.remove, o.scale}, o.problem,
                                          o.search, invocation));
  if (workload) return *workload;
  HEDDLE_ASSIGN_OR_RETURN(const auto source, o.model.source());
  HEDDLE_ASSIGN_OR_RETURN(const auto settings, o.problem.settings());
  HEDDLE_ASSIGN_OR_RETURN(const auto session, open_session(source, settings, invocation));
  HEDDLE_ASSIGN_OR_RETURN(const auto list, changes(o, *session.cluster));
  if (list.empty()) {
    return Error(Code::kInvalidInput,
                 "whatif needs a change: --add DEVICE, --remove DEVICE or --scale NAME=FACTOR");
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto rows,
                          replan(session, list, settings, o.planner, o.search.settings(), invocation));
  if (invocation.progress) invocation.progress->finish();
  Json json = Json::array();
  TextTable table({{"change"},
                   {objective_name(session.problem.objective), TextTable::Align::kRight},
                   {"bound", TextTable::Align::kRight},
                   {"gap", TextTable::Align::kRight},
                   {"faster by", TextTable::Align::kRight},
                   {"at most", TextTable::Align::kRight}});
  const double now = rows[0].result.value_us;
  for (const Replanned& row : rows) {
    const PlanResult& r = row.result;
    const double most = r.bound.us > 0 ? now / r.bound.us : 0;
    Json j = {{"change", row.what}, {"speedup", now / r.value_us}, {"gap", r.gap}, {"planner", r.planner}};
    if (most > 0) j["speedup_at_most"] = most;
    put_value(j, row.problem, r.value_us, r.bound.us);
    json.push_back(std::move(j));
    table.add_row({row.what, value_text(row.problem, r.value_us), value_text(row.problem, r.bound.us),
                   percent_text(r.gap), times_text(now / r.value_us), most > 0 ? times_text(most) : ""});
  }
  std::printf("%s", invocation.json ? (json.dump(1) + "\n").c_str() : table.to_string().c_str());
  return kExitDone;
}

}  // namespace

RunFn setup_whatif(Command& command) {
  auto o = std::make_shared<WhatifOptions>();
  o->model.declare(command);
  o->problem.declare(command);
  o->search.declare(command);
  o->workload.declare(command);
  command.option("--planner", o->planner, "one of `heddle planners` (default auto)");
  command.list("--add", o->add,
               "one more device like DEVICE, with the same links (repeatable); placement workloads: "
               "accelerator or cpu");
  command.list("--remove", o->remove, "without DEVICE (repeatable)");
  command.list("--scale", o->scale,
               "NAME=FACTOR: a device or link FACTOR times as fast (repeatable); placement workloads: "
               "accelerator, cpu, link, or memory, which becomes larger");
  return [o](const Invocation& invocation) { return run_whatif(*o, invocation); };
}

}  // namespace heddle::cli
