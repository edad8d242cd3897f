// heddle profile: measures a model's units and the whole model on this machine's devices into the profile
// store.
#include <fmt/format.h>

#include <optional>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/units.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/report/copies_table.h"
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

// Measured times of units with their parameters in place, without estimates.
CostTable host_access_known(const Session& session) {
  CostTable known(session.problem.costs->num_ops(), session.problem.costs->num_devices());
  put_host_access(session, session.problem, known);
  return known;
}

std::vector<DeviceId> devices_with_host_access(const Problem& p) {
  std::vector<DeviceId> devices;
  for (const auto device : p.usable_devices()) {
    if (p.costs->has_host_access() && needs_load(*p.cluster, device)) devices.push_back(device);
  }
  return devices;
}

Json units_json(const Session& session) {
  const auto& p = session.problem;
  const CostTable known = host_access_known(session);
  const auto in_place = devices_with_host_access(p);
  Json units = Json::array();
  for (size_t u = 0; u < p.graph->num_ops(); ++u) {
    Json row = {{"unit", p.graph->op(OpId(u)).name}};
    for (const auto device : p.usable_devices()) {
      const auto cost = p.costs->at(OpId(u), device);
      row[p.cluster->device(device).name] = {
          {"us", cost.us}, {"origin", origin_name(cost.origin)}, {"spread", cost.rel_spread}};
    }
    for (const auto device : in_place) {
      const double us = p.costs->host_access_us(OpId(u), device);
      if (!(us < kImpossible)) continue;
      const bool measured = known.host_access_us(OpId(u), device) < kImpossible;
      Json& cell = row[p.cluster->device(device).name];
      cell["host_access_us"] = us;
      cell["host_access_origin"] = origin_name(measured ? Origin::kMeasured : Origin::kEstimated);
    }
    units.push_back(std::move(row));
  }
  return units;
}

std::string units_text(const Problem& p) {
  std::vector<OpId> all;
  for (size_t u = 0; u < p.graph->num_ops(); ++u) all.emplace_back(u);
  std::vector<TextTable::Column> columns = {{"unit"}};
  for (const auto device : p.usable_devices()) columns.push_back({p.cluster->device(device).name, kRight});
  TextTable table(columns);
  for (size_t u = 0; u < p.graph->num_ops(); ++u) {
    std::vector<std::string> row = {p.graph->op(OpId(u)).name};
    for (const auto device : p.usable_devices()) {
      const auto cost = p.costs->at(OpId(u), device);
      row.push_back(format_us(cost.us) +
                    (cost.origin == Origin::kMeasured ? "" : std::string(" ") + origin_name(cost.origin)));
    }
    table.add_row(row);
  }
  table.add_rule();
  std::vector<std::string> row = {"whole model as one segment"};
  for (const auto device : p.usable_devices()) row.push_back(format_us(p.costs->segment(all, device).us));
  table.add_row(row);
  return table.to_string();
}

// Times with parameters in place, and their ratio to those with parameters on the device.
std::string host_access_text(const Session& session) {
  const auto& p = session.problem;
  const auto devices = devices_with_host_access(p);
  if (devices.empty()) return "\nno device here reads parameters in host memory\n";
  const CostTable known = host_access_known(session);
  std::vector<TextTable::Column> columns = {{"parameters in place"}};
  for (const auto device : devices) columns.push_back({p.cluster->device(device).name, kRight});
  TextTable table(columns);
  for (size_t u = 0; u < p.graph->num_ops(); ++u) {
    std::vector<std::string> row = {p.graph->op(OpId(u)).name};
    bool any = false;
    for (const auto device : devices) {
      const double us = p.costs->host_access_us(OpId(u), device), usual = p.costs->us(OpId(u), device);
      const bool measured = known.host_access_us(OpId(u), device) < kImpossible;
      any = any || us < kImpossible;
      row.push_back(us < kImpossible ? format_us(us) + (measured ? "" : " estimated") +
                                           (usual > 0 ? fmt::format(", x {:.2f}", us / usual) : "")
                                     : "-");
    }
    if (any) table.add_row(row);
  }
  const auto& sum = session.host_access;
  return "\n" + table.to_string() +
         fmt::format("\n{} measured now, {} already stored, {} failed\n", sum.measured, sum.present,
                     sum.failed) +
         (sum.first_failure.empty() ? "" : "first failure: " + sum.first_failure + "\n");
}

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
  print("{}\n{} measured now, {} already stored, {} failed; in {}\n", units_text(session.problem),
        sum.measured, sum.present, sum.failed, session.store->path());
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
