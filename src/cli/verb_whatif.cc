// heddle whatif: the predicted effect of other hardware, planned anew for each change.
#include <cstdio>
#include <cstdlib>

#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/cluster/edit.h"
#include "heddle/report/text_table.h"
#include "verbs.h"
#include "workbench.h"

namespace heddle::cli {
namespace {

struct WhatifOptions {
  ModelFlags model;
  ProblemFlags problem;
  SearchFlags search;
  std::string planner = "auto";
  std::vector<std::string> add, remove, scale;
};

struct Change {
  std::string text;
  std::shared_ptr<const Cluster> cluster;
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

Status check_name(const std::string& name, const Cluster& cluster, const char* flag, bool links) {
  const auto names = names_of(cluster, links);
  for (const auto& n : names) {
    if (n == name) return {};
  }
  return Error(Code::kInvalidInput, std::string(flag) + " " + name + ": no such device" +
                                        (links ? " or link" : "") + did_you_mean(name, names) +
                                        "; there are " + join_names(names));
}

Result<std::vector<Change>> changes(const WhatifOptions& o, const Cluster& cluster) {
  std::vector<Change> list;
  for (const auto& name : o.add) {
    HEDDLE_RETURN_IF_ERROR(check_name(name, cluster, "--add", false));
    HEDDLE_ASSIGN_OR_RETURN(auto c, edit_cluster(cluster, {.add = name}));
    list.push_back({"one more " + name, c});
  }
  for (const auto& name : o.remove) {
    HEDDLE_RETURN_IF_ERROR(check_name(name, cluster, "--remove", false));
    if (cluster.num_devices() == 1)
      return Error(Code::kInvalidInput, "--remove " + name + ": it is the only device");
    HEDDLE_ASSIGN_OR_RETURN(auto c, edit_cluster(cluster, {.remove = name}));
    list.push_back({"without " + name, c});
  }
  for (const auto& text : o.scale) {
    const auto eq = text.rfind('=');
    char* end = nullptr;
    const double factor = eq == std::string::npos ? 0 : std::strtod(text.c_str() + eq + 1, &end);
    if (!(factor > 0 && factor <= 1e6) || *end != '\0') {
      return Error(Code::kInvalidInput,
                   "--scale " + text + ": expected NAME=FACTOR with a factor above 0, for example gpu0=2");
    }
    const auto name = text.substr(0, eq);
    HEDDLE_RETURN_IF_ERROR(check_name(name, cluster, "--scale", true));
    HEDDLE_ASSIGN_OR_RETURN(auto c, edit_cluster(cluster, {.scale = name, .factor = factor}));
    list.push_back({name + " x " + text.substr(eq + 1), c});
  }
  return list;
}

Result<int> run_whatif(WhatifOptions o, const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto* entry, planner_named(o.planner));
  HEDDLE_ASSIGN_OR_RETURN(auto bench, make_workbench(o.model, o.problem, invocation));
  HEDDLE_ASSIGN_OR_RETURN(const auto list, changes(o, *bench.cluster));
  if (list.empty()) {
    return Error(Code::kInvalidInput,
                 "whatif needs a change: --add DEVICE, --remove DEVICE or --scale NAME=FACTOR");
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto base, run_planner(*entry, bench.problem, o.search.options(invocation)));
  Json rows = Json::array();
  TextTable table({{"change"},
                   {objective_name(bench.problem.objective), TextTable::Align::kRight},
                   {"bound", TextTable::Align::kRight},
                   {"faster by", TextTable::Align::kRight}});
  const auto add_row = [&](const std::string& text, const Problem& problem, const PlanResult& r) {
    const double gain = base.value_us / r.value_us;
    Json row = {{"change", text}, {"speedup", gain}, {"gap", r.gap}};
    put_value(row, problem, r.value_us, r.bound.us);
    rows.push_back(row);
    char speed[32];
    std::snprintf(speed, sizeof speed, "%.3fx", gain);
    table.add_row({text, value_text(problem, r.value_us), value_text(problem, r.bound.us), speed});
  };
  add_row("as it is", bench.problem, base);
  for (const auto& change : list) {
    HEDDLE_ASSIGN_OR_RETURN(const auto problem, with_cluster(bench, change.cluster, o.problem));
    HEDDLE_ASSIGN_OR_RETURN(const auto result, run_planner(*entry, problem, o.search.options(invocation)));
    add_row(change.text, problem, result);
  }
  if (invocation.progress) invocation.progress->finish();
  std::printf("%s", invocation.json ? (rows.dump(1) + "\n").c_str() : table.to_string().c_str());
  return kExitDone;
}

}  // namespace

RunFn setup_whatif(Command& command) {
  auto o = std::make_shared<WhatifOptions>();
  o->model.declare(command);
  o->problem.declare(command);
  o->search.declare(command);
  command.option("--planner", o->planner, "one of `heddle planners` (default auto)");
  command.list("--add", o->add, "one more device like DEVICE, with the same links (repeatable)");
  command.list("--remove", o->remove, "without DEVICE (repeatable)");
  command.list("--scale", o->scale, "NAME=FACTOR: a device or link FACTOR times as fast (repeatable)");
  return [o](const Invocation& invocation) { return run_whatif(*o, invocation); };
}

}  // namespace heddle::cli
