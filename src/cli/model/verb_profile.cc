// heddle profile: measures a model's units and the whole model on this machine's devices into the profile
// store.
#include <optional>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/report/copies_table.h"
#include "heddle/report/units_text.h"
#include "heddle/session/clusters.h"
#include "model_flags.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

struct ProfileVerbOptions {
  ModelFlags model;
  ProblemFlags problem;
  std::string output;  // a cluster file
};

Result<int> run_profile(ProfileVerbOptions o, const Invocation& invocation) {
  // The session must measure, because the summary counts its measurements.
  o.problem.plain.measure = true;
  if (o.problem.plain.host_access) o.problem.objective = objective_name(Objective::kColdLatency);
  HEDDLE_RETURN_IF_ERROR(check_output(o.output));
  std::shared_ptr<const Cluster> before;
  std::optional<MeasuredCluster> measured;
  if (!o.output.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(before, open_cluster(o.problem.cluster));
    HEDDLE_ASSIGN_OR_RETURN(measured, measure_cluster(before, invocation));
    if (invocation.progress) invocation.progress->finish();
    HEDDLE_RETURN_IF_ERROR(write_file_atomic(o.output, cluster_to_yaml(*measured->cluster)));
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto session, open_session(o.model, o.problem, invocation));
  if (!session.may_measure) {
    return invalid_input(o.model.spec.path + " on " + o.problem.cluster +
                         ": nothing can be measured; profile needs a real model and a device of this machine "
                         "(--cluster preset:local)");
  }
  const auto& sum = session.profiled;
  if (invocation.progress) invocation.progress->finish();
  if (invocation.json) {
    Json j = {{"model", session.loaded.name}, {"store", session.store->path()}, {"requested", sum.requested},
              {"measured", sum.measured},     {"present", sum.present},         {"failed", sum.failed},
              {"complete", sum.complete},     {"units", units_json(session)}};
    if (measured) {
      j["output"] = o.output;
      j.update(copies_json(*before, measured->copies));
    }
    show_json(invocation, j);
    return kExitDone;
  }
  print("{}\n{} measured now, {} already stored, {} failed; in {}\n", units_text(session), sum.measured,
        sum.present, sum.failed, session.store->path());
  if (!sum.first_failure.empty()) print("first failure: {}\n", sum.first_failure);
  if (o.problem.plain.host_access) print("{}", host_access_text(session));
  if (!sum.complete || (o.problem.plain.host_access && !session.host_access.complete))
    print("stopped early; what was measured is kept; run the same command again to continue\n");
  if (measured) print("\n{}written to {}\n", copies_text(*before, measured->copies), o.output);
  return kExitDone;
}

}  // namespace

RunFn setup_profile(Command& command) {
  auto o = std::make_shared<ProfileVerbOptions>();
  o->model.declare(command);
  o->problem.declare(command);
  command.option("-o,--output", o->output,
                 "also measure the accelerators' copies, and write the cluster file with the measured "
                 "links here");
  command.footer(
      "--host-access measures units with their parameters read in place, too, and needs no --objective "
      "here.");
  return [o](const Invocation& invocation) { return run_profile(*o, invocation); };
}

}  // namespace heddle::cli
