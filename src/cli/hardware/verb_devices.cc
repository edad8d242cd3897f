// heddle devices and heddle planners: the available hardware and methods.
#include <sstream>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/command/rank_verb.h"
#include "heddle/planners/planner.h"
#include "heddle/report/copies_table.h"
#include "heddle/report/hardware_text.h"
#include "heddle/runtime/rank_network.h"
#include "heddle/session/clusters.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

struct DevicesOptions {
  std::string cluster = "preset:local", output;
  bool presets = false, catalogue = false, backends = false, engines = false, copies = false;
};

int show(const Invocation& invocation, const Shown& list) {
  show_result(invocation, list);
  return kExitDone;
}

std::string as_comment(const std::string& text) {
  std::string comment;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) comment += line.empty() ? "#\n" : "# " + line + "\n";
  return comment;
}

// This machine of every rank, one after the other, and the links between them.
Result<int> run_devices_on_ranks(const std::string& output, RankGroup& group, const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto measured, measure_rank_cluster(group));
  if (group.rank() != 0) return kExitDone;
  const auto& cluster = measured.cluster;
  const auto yaml = cluster_to_yaml(*cluster);
  if (!output.empty()) HEDDLE_RETURN_IF_ERROR(write_file_atomic(output, yaml));
  show_result(invocation, cluster_to_json(*cluster),
              output.empty()
                  ? yaml
                  : rank_links_text(measured.links, measured.labels) + "written to " + output + "\n");
  return kExitDone;
}

Result<int> run_devices(const DevicesOptions& o, const Invocation& invocation) {
  if (o.presets) return show(invocation, presets_shown());
  if (o.catalogue) return show(invocation, catalogue_shown());
  if (rank_environment().size > 1 && o.cluster == "preset:local") {
    const Status checked = o.copies ? invalid_input(
                                          "--copies: measures one machine; run it there without mpirun, on "
                                          "that machine's cluster file")
                                    : check_output(o.output);
    return run_verb_on_ranks(invocation, checked, [&](RankGroup& group) {
      return run_devices_on_ranks(o.output, group, invocation);
    });
  }
  if (o.backends) return show(invocation, backends_shown());
  if (o.copies) HEDDLE_RETURN_IF_ERROR(check_output(o.output));
  HEDDLE_ASSIGN_OR_RETURN(auto cluster, open_cluster(o.cluster));
  std::string measured;
  Json measured_json = Json::object();
  if (o.copies) {
    HEDDLE_ASSIGN_OR_RETURN(auto with_copies, measure_cluster(cluster, invocation));
    measured = copies_text(*cluster, with_copies.copies);
    measured_json = copies_json(*cluster, with_copies.copies);
    cluster = std::move(with_copies.cluster);
  }
  if (o.engines) {
    HEDDLE_ASSIGN_OR_RETURN(const auto engines, engines_of(*cluster));
    measured += engines_text(*cluster, engines);
    measured_json["engines_here"] = engines_json(*cluster, engines);
  }
  const auto yaml = cluster_to_yaml(*cluster);
  Json json = cluster_to_json(*cluster);
  json.update(measured_json);
  if (!o.output.empty()) {
    HEDDLE_RETURN_IF_ERROR(write_file_atomic(o.output, yaml));
    show_result(invocation, json, measured + "written to " + o.output + "\n");
  } else {
    // The file itself, so that `heddle devices > cluster.yaml` is a cluster file; copies' times go before it
    // as comments.
    show_result(invocation, json, as_comment(measured) + yaml);
  }
  return kExitDone;
}

struct PlannersOptions {
  bool markdown = false;
};

Result<int> run_planners(const PlannersOptions& o, const Invocation& invocation) {
  if (o.markdown) {
    print("{}", planners_markdown());
    return kExitDone;
  }
  return show(invocation, planners_shown());
}

}  // namespace

RunFn setup_devices(Command& command) {
  auto o = std::make_shared<DevicesOptions>();
  command.option("--cluster", o->cluster, "show this file or preset instead of this machine");
  command.flag("--presets", o->presets, "list the machines of the papers that are known by name");
  command.flag("--catalogue", o->catalogue, "list the devices that a cluster file can name by class alone");
  command.flag("--backends", o->backends, "list the engines that run segments");
  command.flag("--engines", o->engines, "list each device's engines and the precisions that they have there");
  command.flag("--copies", o->copies,
               "measure copies between the accelerators and the host, and set links and buses to what "
               "was measured");
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
