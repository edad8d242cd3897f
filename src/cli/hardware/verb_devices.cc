// heddle devices and heddle planners: what there is to choose from.
#include <cstdio>
#include <sstream>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/units.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/planners/planner.h"
#include "heddle/report/copies_table.h"
#include "heddle/report/text_table.h"
#include "heddle/runtime/backend.h"
#include "heddle/session/loaded_model.h"
#include "heddle/session/measured_cluster.h"
#include "rank_verbs.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

struct DevicesOptions {
  std::string cluster = "preset:local", output;
  bool presets = false, backends = false, copies = false;
};

Result<int> list_backends(const Invocation& invocation) {
  Json rows = Json::array();
  TextTable table({{"backend"}, {"what"}});
  for (const auto& backend : backend_registry()) {
    rows.push_back({{"name", backend->name()}, {"description", backend->description()}});
    table.add_row({backend->name(), backend->description()});
  }
  std::printf("%s", invocation.json ? (rows.dump(1) + "\n").c_str() : table.to_string().c_str());
  return kExitDone;
}

Result<int> list_presets(const Invocation& invocation) {
  Json rows = Json::array();
  TextTable table({{"preset"}, {"what"}, {"source"}});
  for (const auto& p : cluster_presets()) {
    rows.push_back({{"name", p.name}, {"description", p.description}, {"source", p.source}});
    table.add_row({p.name, p.description, p.source});
  }
  std::printf("%s", invocation.json ? (rows.dump(1) + "\n").c_str() : table.to_string().c_str());
  return kExitDone;
}

std::string as_comment(const std::string& text) {
  std::string comment;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) comment += line.empty() ? "#\n" : "# " + line + "\n";
  return comment;
}

Result<int> run_devices(const DevicesOptions& o, const Invocation& invocation) {
  if (o.presets) return list_presets(invocation);
  if (rank_environment().size > 1 && o.cluster == "preset:local") {
    if (o.copies)
      return Error(
          Code::kInvalidInput,
          "--copies: measures one machine; run it there without mpirun, on that machine's cluster file");
    HEDDLE_RETURN_IF_ERROR(check_output(o.output));
    return run_devices_on_ranks(o.output, invocation);
  }
  if (o.backends) return list_backends(invocation);
  if (o.copies) HEDDLE_RETURN_IF_ERROR(check_output(o.output));
  HEDDLE_ASSIGN_OR_RETURN(auto cluster, open_cluster(o.cluster));
  std::string measured;
  Json measured_json = Json::object();
  if (o.copies) {
    HEDDLE_ASSIGN_OR_RETURN(auto with_copies, measure_cluster(cluster, invocation));
    if (invocation.progress) invocation.progress->finish();
    measured = copies_text(*cluster, with_copies.copies);
    measured_json = copies_json(*cluster, with_copies.copies);
    cluster = std::move(with_copies.cluster);
  }
  const auto yaml = cluster_to_yaml(*cluster);
  if (!invocation.json && !o.output.empty()) std::printf("%s", measured.c_str());
  if (!o.output.empty()) {
    HEDDLE_RETURN_IF_ERROR(write_file_atomic(o.output, yaml));
    if (!invocation.json) std::printf("written to %s\n", o.output.c_str());
  }
  if (invocation.json) {
    Json json = cluster_to_json(*cluster);
    json.update(measured_json);
    std::printf("%s\n", json.dump(1, ' ', false, Json::error_handler_t::replace).c_str());
  } else if (o.output.empty()) {
    // The file itself, so that `heddle devices > cluster.yaml` is a cluster file; what was measured besides
    // goes before it as comments.
    std::printf("%s%s", as_comment(measured).c_str(), yaml.c_str());
  }
  return kExitDone;
}

struct PlannersOptions {
  bool markdown = false;
};

Result<int> run_planners(const PlannersOptions& o, const Invocation& invocation) {
  if (o.markdown) {
    std::printf("%s", planners_markdown().c_str());
    return kExitDone;
  }
  Json rows = Json::array();
  TextTable table({{"planner"}, {"objectives"}, {"what"}, {"source"}});
  for (const auto& entry : planner_registry()) {
    std::string objectives;
    Json list = Json::array();
    for (const auto objective : entry.info.objectives) {
      objectives += (objectives.empty() ? "" : ", ") + std::string(objective_name(objective));
      list.push_back(objective_name(objective));
    }
    rows.push_back({{"name", entry.info.name},
                    {"description", entry.info.description},
                    {"source", entry.info.source},
                    {"objectives", list},
                    {"exploits", entry.info.exploits},
                    {"ignores", entry.info.ignores},
                    {"ready", entry.info.ready}});
    if (!entry.alias_of.empty()) {
      rows.back()["alias_of"] = entry.alias_of;
      rows.back()["settings"] = entry.chosen;
    }
    table.add_row({entry.info.name, objectives, entry.info.description, entry.info.source});
  }
  std::printf("%s", invocation.json ? (rows.dump(1) + "\n").c_str() : table.to_string().c_str());
  return kExitDone;
}

}  // namespace

RunFn setup_devices(Command& command) {
  auto o = std::make_shared<DevicesOptions>();
  command.option("--cluster", o->cluster, "show this file or preset instead of this machine");
  command.flag("--presets", o->presets, "list the machines of the papers that are known by name");
  command.flag("--backends", o->backends, "list what this program runs segments with");
  command.flag(
      "--copies", o->copies,
      "measure copies between the accelerators and the host, and give links and buses what they show");
  command.option("-o,--output", o->output, "write the cluster file here");
  command.footer(
      "Under mpirun: the machines of all ranks as one cluster, with the links between them measured.");
  return [o](const Invocation& invocation) { return run_devices(*o, invocation); };
}

RunFn setup_planners(Command& command) {
  auto o = std::make_shared<PlannersOptions>();
  command.flag("--markdown", o->markdown, "the table of docs/planners.md");
  return [o](const Invocation& invocation) { return run_planners(*o, invocation); };
}

}  // namespace heddle::cli
