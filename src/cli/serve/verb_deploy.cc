// heddle deploy: a fleet's or a model's plan as the files of an engine that keeps processes running.
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/deploy/render.h"
#include "heddle/report/deploy_text.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

struct DeployFlags {
  std::string what, plan, settings, on, output, old_folder;
};

std::string differences_text(const std::vector<FileDifference>& differences) {
  std::string text;
  for (const auto& d : differences) text += d.text;
  return text.empty() ? "nothing changes\n" : text;
}

Result<int> run_deploy(const DeployFlags& o, const Invocation& invocation) {
  const auto targets = deploy_targets();
  if (o.on.empty()) return invalid_input("deploy needs --on ENGINE, for example --on kubernetes");
  if (std::ranges::find(targets, o.on) == targets.end()) return unknown_name("--on", o.on, targets);
  if (o.output.empty() && o.old_folder.empty())
    return invalid_input("deploy needs -o DIR for its files, or --diff OLD to show what would change");
  DeploySettings settings;
  if (!o.settings.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(settings, read_deploy_settings(o.settings));
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto workloads, read_workloads(o.what, o.plan, settings));
  HEDDLE_ASSIGN_OR_RETURN(const auto files, with_context(render_deployment(workloads, o.on), o.what));
  std::vector<FileDifference> differences;
  if (!o.old_folder.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(const auto old_files, read_deployment(o.old_folder));
    differences = deployment_differences(old_files, files);
  }
  if (!o.output.empty()) HEDDLE_RETURN_IF_ERROR(write_deployment(o.output, files));
  if (invocation.json) {
    Json json = workloads_json(workloads);
    json["on"] = o.on;
    Json names = Json::array(), changes = Json::array();
    for (const auto& [path, text] : files) names.push_back(path);
    json["files"] = std::move(names);
    if (!o.output.empty()) json["output"] = o.output;
    for (const auto& d : differences)
      changes.push_back({{"path", d.path}, {"kind", d.kind}, {"text", d.text}});
    if (!o.old_folder.empty()) json["changes"] = std::move(changes);
    show_json(invocation, json);
  } else {
    if (!o.old_folder.empty()) print("{}", differences_text(differences));
    if (!o.output.empty())
      print("{}written to {}: {}\n", workloads_text(workloads), o.output, counted(files.size(), "file"));
  }
  return kExitDone;
}

}  // namespace

RunFn setup_deploy(Command& command) {
  auto o = std::make_shared<DeployFlags>();
  command.positional("WHAT", o->what, "a fleet file (.json, .yaml), or a plan file of one model (.json)");
  command.option("--on", o->on, "the engine: kubernetes, slurm, ray or systemd");
  command.option("-o,--output", o->output, "write the files into this folder");
  command.option("--plan", o->plan, "fleet: a plan file (default: planned by auto)");
  command.option("--settings", o->settings,
                 "what the plan does not know: images, node labels, partitions, hosts (docs/deploy.md)");
  command.option("--diff", o->old_folder, "show what changes against the deployment in this folder");
  return [o](const Invocation& invocation) { return run_deploy(*o, invocation); };
}

}  // namespace heddle::cli
