#include "plan_workload.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/plan/dnn_split.h"
#include "heddle/plan/flow_workload.h"
#include "heddle/plan/gap.h"
#include "heddle/planners/dnn_planner.h"
#include "heddle/planners/flow_planner.h"
#include "heddle/planners/milestones.h"
#include "heddle/report/text_table.h"

namespace heddle::cli {
namespace {

std::string significant(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", v);
  return text;
}

Status finish(const Json& answer, const std::string& output, const Invocation& invocation) {
  if (invocation.progress) invocation.progress->finish();
  if (!output.empty()) HEDDLE_RETURN_IF_ERROR(write_file_atomic(output, answer.dump(1) + "\n"));
  if (invocation.json)
    std::printf("%s\n", answer.dump(1, ' ', false, Json::error_handler_t::replace).c_str());
  return {};
}

Json workload_milestones(std::span<const Incumbent> trajectory, double seconds) {
  Json after = Json::array();
  for (const auto& i : milestones(trajectory, seconds))
    after.push_back({i.seconds, std::isfinite(i.value_us) ? Json(i.value_us) : Json(), i.bound_us});
  return after;
}

void print_head(const std::string& name, const char* objective, double value, double bound, double seconds,
                const std::string& how, std::span<const Incumbent> trajectory) {
  std::printf("%s: %s %s\n  bound %s, gap %.1f %%; %.2f s; checked\n  %s\n", name.c_str(), objective,
              significant(value).c_str(), significant(bound).c_str(), 100 * relative_gap(value, bound),
              seconds, how.c_str());
  for (const Incumbent& then : milestones(trajectory, seconds)) {
    std::printf("  after %.0f s: %s, bound %s\n", then.seconds,
                std::isfinite(then.value_us) ? significant(then.value_us).c_str() : "no plan yet",
                then.bound_us > 0 ? significant(then.bound_us).c_str() : "none yet");
  }
  std::printf("\n");
}

// The authors' result form, with bound and gap beside it.
Json split_json(const DnnWorkload& workload, const DnnPlan& plan, const DnnValue& value, bool latency) {
  Json fpgas = Json::array(), cpus = Json::array();
  const int devices = workload.accelerators + (latency ? 1 : workload.cpus);
  for (int d = 0; d < devices; ++d) {
    Json nodes = Json::array();
    for (size_t v = 0; v < workload.nodes.size(); ++v) {
      if (plan.split.device[v] == d) nodes.push_back(workload.nodes[v].id);
    }
    Json device = {{"nodes", std::move(nodes)}};
    if (!latency) device["load"] = value.loads[static_cast<size_t>(d)];
    (d < workload.accelerators ? fpgas : cpus).push_back(std::move(device));
  }
  Json json = {{"fpgas", std::move(fpgas)}, {"cpus", std::move(cpus)}};
  json[latency ? "totalLatency" : "maxLoad"] = plan.value;
  json["bound"] = plan.bound;
  json["gap"] = relative_gap(plan.value, plan.bound);
  json["planner"] = plan.planner;
  json["planning_s"] = plan.seconds;
  json["after"] = workload_milestones(plan.trajectory, plan.seconds);
  return json;
}

Status check_no_cluster(const std::string& path, const ProblemFlags& problem) {
  if (problem.cluster == "preset:local" && problem.devices.empty()) return {};
  return Error(Code::kInvalidInput,
               path + ": this file brings its own devices; leave --cluster and --devices out");
}

Result<int> plan_placement(const std::string& path, const WorkloadFlags& flags, const ProblemFlags& problem,
                           const SearchFlags& search, const std::string& output,
                           const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const DnnRules rules, placement_rules(path, flags, problem));
  const bool latency = rules.objective == DnnObjective::kLatency;
  HEDDLE_ASSIGN_OR_RETURN(const auto workload, read_dnn_workload(path));
  DnnPlanOptions options;
  options.deadline = Deadline::after_seconds(search.time_limit_s, invocation.cancel);
  options.threads = static_cast<int>(search.threads);
  options.seed = static_cast<uint64_t>(search.seed);
  options.progress = invocation.progress;
  HEDDLE_ASSIGN_OR_RETURN(const auto plan, plan_dnn(workload, rules, options));
  HEDDLE_ASSIGN_OR_RETURN(const auto value, evaluate_dnn_split(workload, plan.split, rules.objective));
  HEDDLE_RETURN_IF_ERROR(finish(split_json(workload, plan, value, latency), output, invocation));
  if (invocation.json) return kExitDone;
  print_head(workload.name, latency ? "latency" : "largest load", plan.value, plan.bound, plan.seconds,
             plan.planner + (plan.bound_by.empty() ? "" : "; bound by " + plan.bound_by), plan.trajectory);
  TextTable table({{"device"}, {"nodes", TextTable::Align::kRight}, {"load", TextTable::Align::kRight}});
  const int devices = workload.accelerators + (latency ? 1 : workload.cpus);
  for (int d = 0; d < devices; ++d) {
    const auto nodes = std::count(plan.split.device.begin(), plan.split.device.end(), d);
    const bool accelerator = d < workload.accelerators;
    const auto name = accelerator ? "accelerator " + std::to_string(d)
                      : latency   ? std::string("CPUs")
                                  : "CPU " + std::to_string(d - workload.accelerators);
    table.add_row(
        {name, std::to_string(nodes), latency ? "" : significant(value.loads[static_cast<size_t>(d)])});
  }
  std::printf("%s", table.to_string().c_str());
  return kExitDone;
}

Result<int> plan_flow_workload(const std::string& path, const WorkloadFlags& flags,
                               const ProblemFlags& problem, const SearchFlags& search,
                               const std::string& output, const Invocation& invocation) {
  if (problem.objective != "latency" || flags.contiguous || flags.pieces != 1)
    return Error(Code::kInvalidInput,
                 "flow workloads have the objective latency, and no --contiguous or --pieces");
  HEDDLE_ASSIGN_OR_RETURN(const auto workload, read_flow_workload(path));
  HEDDLE_ASSIGN_OR_RETURN(const auto plan, plan_flows(workload, search.options(invocation)));
  const double value = workload.in_units(plan.schedule.makespan), bound = workload.in_units(plan.bound);
  Json ops = Json::array();
  std::vector<int64_t> count(workload.num_devices(), 0), busy(workload.num_devices(), 0);
  for (size_t v = 0; v < workload.num_ops(); ++v) {
    const auto d = plan.schedule.device[v];
    ops.push_back({{"op", workload.ops[v].name},
                   {"device", d},
                   {"start", workload.in_units(plan.schedule.op_start[v])}});
    ++count[d];
    busy[d] += workload.ops[v].ticks[d];
  }
  Json answer = {{"makespan", value},
                 {"bound", bound},
                 {"gap", plan.gap},
                 {"bound_reason", plan.bound_reason},
                 {"unit", workload.time_unit},
                 {"planning_s", plan.seconds},
                 {"after", workload_milestones(plan.trajectory, plan.seconds)},
                 {"ops", std::move(ops)}};
  HEDDLE_RETURN_IF_ERROR(finish(answer, output, invocation));
  if (invocation.json) return kExitDone;
  print_head(workload.name, "makespan", value, bound, plan.seconds, plan.detail, plan.trajectory);
  TextTable table({{"device"}, {"ops", TextTable::Align::kRight}, {"busy", TextTable::Align::kRight}});
  for (size_t d = 0; d < count.size(); ++d)
    table.add_row({std::to_string(d), std::to_string(count[d]), significant(workload.in_units(busy[d]))});
  std::printf("%s", table.to_string().c_str());
  return kExitDone;
}

}  // namespace

void WorkloadFlags::declare(Command& command) {
  command.flag("--contiguous", contiguous, "placement workloads, throughput: devices follow one another");
  command.option("--pieces", pieces, "placement workloads, latency: pieces on an accelerator (default 1)", 1,
                 1000);
}

Result<WorkloadKind> workload_kind(const std::string& path) {
  const auto json = path.ends_with(".json") ? read_json_file(path) : Result<Json>(Json());
  if (!json.ok()) return WorkloadKind::kNone;
  if (is_dnn_workload(*json)) return WorkloadKind::kPlacement;
  const bool flow =
      json->is_object() && json->contains("devices") && json->contains("edges") && json->contains("ops");
  return flow ? WorkloadKind::kFlow : WorkloadKind::kNone;
}

Result<DnnRules> placement_rules(const std::string& path, const WorkloadFlags& flags,
                                 const ProblemFlags& problem) {
  const bool latency = problem.objective == "latency";
  if (!latency && problem.objective != "throughput") {
    return Error(Code::kInvalidInput,
                 "--objective " + problem.objective + ": placement workloads have latency and throughput");
  }
  if (latency && flags.contiguous)
    return Error(Code::kInvalidInput,
                 "--contiguous is for --objective throughput; --pieces 1 is its like here");
  if (!latency && flags.pieces != 1) return Error(Code::kInvalidInput, "--pieces is for --objective latency");
  HEDDLE_RETURN_IF_ERROR(check_no_cluster(path, problem));
  DnnRules rules;
  rules.objective = latency ? DnnObjective::kLatency : DnnObjective::kMaxLoad;
  rules.contiguous = flags.contiguous;
  rules.pieces = static_cast<int>(flags.pieces);
  return rules;
}

Result<std::optional<int>> plan_workload(const std::string& path, const WorkloadFlags& flags,
                                         const ProblemFlags& problem, const SearchFlags& search,
                                         const std::string& output, const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto kind, workload_kind(path));
  if (kind == WorkloadKind::kNone) {
    if (flags.contiguous || flags.pieces != 1)
      return Error(Code::kInvalidInput, path + ": --contiguous and --pieces are for placement workloads");
    return std::optional<int>();
  }
  if (problem.host_access || problem.drop_parameters || problem.fixed_sharing || !problem.resident.empty()) {
    return Error(Code::kInvalidInput,
                 path +
                     ": --host-access, --resident, --drop-parameters and --fixed-sharing "
                     "are for models on a cluster, not for workloads");
  }
  const bool placement = kind == WorkloadKind::kPlacement;
  HEDDLE_RETURN_IF_ERROR(check_no_cluster(path, problem));
  auto status = placement ? plan_placement(path, flags, problem, search, output, invocation)
                          : plan_flow_workload(path, flags, problem, search, output, invocation);
  if (!status.ok()) return std::move(status).error();
  if (!output.empty() && !invocation.json) std::printf("\nwritten to %s\n", output.c_str());
  return std::optional<int>(*status);
}

}  // namespace heddle::cli
