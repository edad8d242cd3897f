// Workbench, part two: units, cost models and measurements.
#include <algorithm>
#include <charconv>
#include <set>

#include "heddle/base/spelling.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/cluster/discover.h"
#include "heddle/cost/measurer.h"
#include "heddle/graph/coarsen.h"
#include "heddle/graph/gcof.h"
#include "heddle/plan/hios_workload.h"
#include "heddle/runtime/capability.h"
#include "heddle/runtime/openvino_measurer.h"
#include "workbench.h"
#include "workbench_cold.h"
#include "workbench_given.h"
#include "workbench_stages.h"

namespace heddle::cli {

SignatureFn signature_of(const LoadedModel& loaded) {
  auto model = loaded.base ? loaded.base : loaded.model;
  return [model](std::span<const OpId> ops) { return model->signature(ops); };
}

namespace {

// Measuring takes some 0.1 s for each unit and kind of device; so many units are measured within seconds and
// still leave enough places to cut.
constexpr size_t kMeasuredUnits = 24;
constexpr size_t kEstimatedUnits = 2000;

// Measurements are scaled to absent devices of the same kind only: a CPU's inefficiencies say nothing about a
// GPU's.
class SameKind final : public CostModel {
 public:
  SameKind(std::shared_ptr<const CostModel> inner, DeviceKind kind) : inner_(std::move(inner)), kind_(kind) {}
  std::optional<Cost> segment(const Graph& graph, std::span<const OpId> ops, const Device& device,
                              const CostContext& context) const override {
    if (device.kind != kind_) return std::nullopt;
    return inner_->segment(graph, ops, device, context);
  }

 private:
  std::shared_ptr<const CostModel> inner_;
  DeviceKind kind_;
};

std::shared_ptr<const CostModel> cost_models(const Workbench& bench, const Cluster& cluster) {
  std::vector<std::shared_ptr<const CostModel>> models;
  std::shared_ptr<const CostModel> measured;
  if (bench.store && bench.loaded.model) {
    measured = measured_cost_model(bench.store, signature_of(bench.loaded));
    models.push_back(measured);
  }
  models.push_back(given_cost_model());
  if (measured) {
    // The largest device here is the reference for absent ones of its kind.
    const Device* from = nullptr;
    for (const auto& d : bench.cluster->devices()) {
      if (!d.target.empty() && (from == nullptr || d.peak_flops > from->peak_flops)) from = &d;
    }
    const bool absent = std::any_of(cluster.devices().begin(), cluster.devices().end(),
                                    [](const Device& d) { return d.target.empty(); });
    if (from != nullptr && absent) {
      models.push_back(std::make_shared<SameKind>(scaled_cost_model(measured, *from), from->kind));
    }
  }
  models.push_back(roofline_cost_model());
  return first_of(std::move(models));
}

Result<std::vector<DeviceId>> parse_devices(const std::string& text, const Cluster& cluster) {
  std::vector<DeviceId> ids;
  std::vector<std::string> names;
  for (const auto& d : cluster.devices()) names.push_back(d.name);
  for (const auto& name : split_list(text)) {
    const auto id = cluster.find_device(name);
    if (!id.valid()) {
      return Error(Code::kInvalidInput, "--devices " + name + ": cluster '" + cluster.name() +
                                            "' has no such device" + did_you_mean(name, names) +
                                            "; there are " + join_names(names));
    }
    ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

// Which ops become one unit, as --coarsen says.
Result<std::vector<int>> unit_groups(const Graph& graph, const std::string& coarsening) {
  if (coarsening.empty() || coarsening == "light") return group_light_ops(graph);
  if (coarsening == "gcof") return fuse_ops(graph, default_fusion_rules()).group;
  if (coarsening.starts_with("gcof:")) {
    HEDDLE_ASSIGN_OR_RETURN(const auto rules, read_fusion_rules(coarsening.substr(5)));
    return fuse_ops(graph, rules).group;
  }
  const std::vector<std::string> names = {"light", "none", "gcof"};
  return Error(Code::kInvalidInput, "--coarsen " + coarsening +
                                        ": expected light, none, gcof or gcof:FILE with fusion rules" +
                                        did_you_mean(coarsening, names));
}

// Groups the model's ops into the units that are placed. Graph files are planned as they are, unless
// --coarsen or --units says otherwise.
Result<std::shared_ptr<const Graph>> make_units(const LoadedModel& loaded, size_t limit, bool whole_ops,
                                                const std::string& coarsening) {
  auto graph = loaded.graph;
  if (coarsening != "none" && !(whole_ops && coarsening.empty())) {
    HEDDLE_ASSIGN_OR_RETURN(const auto group, unit_groups(*graph, coarsening));
    HEDDLE_ASSIGN_OR_RETURN(graph, coarsen(*graph, group));
  }
  if (graph->num_ops() > limit) {
    HEDDLE_ASSIGN_OR_RETURN(graph, coarsen(*graph, group_to_size(*graph, limit)));
  }
  return graph;
}

std::vector<OpId> all_units(const Problem& problem) {
  std::vector<OpId> units;
  for (size_t u = 0; u < problem.graph->num_ops(); ++u) units.emplace_back(u);
  return units;
}

int batch_of(const LoadedModel& loaded) {
  return loaded.model ? static_cast<int>(loaded.model->options().batch.value_or(1)) : 1;
}

Result<Objective> objective_named(const std::string& name) {
  if (const auto objective = objective_from_name(name)) return *objective;
  const std::vector<std::string> names = {"latency", "cold-latency", "throughput"};
  return Error(Code::kInvalidInput, "--objective " + name + ": expected latency, cold-latency or throughput" +
                                        did_you_mean(name, names));
}

Result<Problem> make_problem(const Workbench& bench, const std::shared_ptr<const Graph>& units,
                             const std::shared_ptr<const Cluster>& cluster, const ProblemFlags& flags) {
  Problem problem;
  problem.graph = units;
  problem.cluster = cluster;
  HEDDLE_ASSIGN_OR_RETURN(problem.objective, objective_named(flags.objective));
  problem.execution.link_contention = problem.execution.engine_contention = !flags.no_contention;
  problem.batch = batch_of(bench.loaded);
  HEDDLE_ASSIGN_OR_RETURN(problem.devices, parse_devices(flags.devices, *cluster));
  if (bench.loaded.model) {
    const auto& m = *bench.loaded.model;
    problem.model = ModelReference{m.path(), m.file_hash(), m.options().shapes, m.options().batch,
                                   m.options().split_bytes};
  }
  CostContext context;
  context.batch = problem.batch;
  HEDDLE_ASSIGN_OR_RETURN(auto costs,
                          build_cost_table(*units, *cluster, *cost_models(bench, *cluster), context));
  if (bench.loaded.model)
    HEDDLE_RETURN_IF_ERROR(
        forbid_refused(*bench.loaded.model, *units, *cluster, problem.usable_devices(), costs));
  if (flags.host_access) put_host_access(bench, problem, costs);
  problem.costs = std::make_shared<const CostTable>(std::move(costs));
  if (!flags.transfer.empty())
    return Error(Code::kInvalidInput, "--transfer " + flags.transfer + ": only simulation instances have it");
  HEDDLE_RETURN_IF_ERROR(validate(problem));
  return problem;
}

// How many devices --devices asks for.
Result<int> device_count(const std::string& text) {
  constexpr int kUsual = 4;
  if (text.empty()) return kUsual;
  int count = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (code == std::errc() && end == text.data() + text.size() && count >= 1 && count <= kMaxHiosDevices)
    return count;
  return Error(Code::kInvalidInput, "--devices " + text + ": expected their number, 1 to " +
                                        std::to_string(kMaxHiosDevices) +
                                        "; a simulation instance brings equal devices");
}

// A simulation instance brings all but the number of devices.
Result<Workbench> simulation_workbench(LoadedModel loaded, const std::string& path,
                                       const ProblemFlags& flags) {
  if (flags.cluster != "preset:local")
    return Error(Code::kInvalidInput, path +
                                          ": a simulation instance brings its own devices; leave --cluster "
                                          "out and give their number with --devices");
  if (!flags.coarsen.empty() || flags.units > 0)
    return Error(Code::kInvalidInput,
                 path + ": a simulation instance is planned as it is; leave --coarsen and --units out");
  HiosWorkloadOptions options;
  HEDDLE_ASSIGN_OR_RETURN(options.devices, device_count(flags.devices));
  options.transfer_by_reader = flags.transfer == "reader";
  if (!options.transfer_by_reader && !flags.transfer.empty() && flags.transfer != "source")
    return Error(Code::kInvalidInput, "--transfer " + flags.transfer + ": expected source or reader");
  Workbench bench;
  bench.loaded = std::move(loaded);
  HEDDLE_ASSIGN_OR_RETURN(bench.problem, read_hios_workload(path, options));
  HEDDLE_ASSIGN_OR_RETURN(bench.problem.objective, objective_named(flags.objective));
  if (!flags.stage_model.empty())
    return Error(Code::kInvalidInput,
                 path + ": a simulation instance brings its stage model; leave --stage-model out");
  if (flags.stages > 1) bench.problem.execution.stage_width = static_cast<int>(flags.stages);
  bench.loaded.graph = bench.problem.graph;
  bench.cluster = bench.problem.cluster;
  HEDDLE_RETURN_IF_ERROR(allow_cold_start(bench.problem, flags));
  return bench;
}

}  // namespace

Result<Problem> with_cluster(const Workbench& bench, std::shared_ptr<const Cluster> cluster,
                             const ProblemFlags& flags) {
  if (!bench.loaded.simulation) {
    HEDDLE_ASSIGN_OR_RETURN(auto problem, make_problem(bench, bench.problem.graph, cluster, flags));
    keep_stages(bench.problem, problem);
    HEDDLE_RETURN_IF_ERROR(allow_cold_start(problem, flags));
    return problem;
  }
  Problem problem = bench.problem;
  problem.cluster = cluster;
  HEDDLE_ASSIGN_OR_RETURN(auto costs, build_cost_table(*problem.graph, *cluster, *given_cost_model(), {}));
  problem.costs = std::make_shared<const CostTable>(std::move(costs));
  const int width = problem.execution.stage_width;
  set_hios_stages(problem);
  problem.execution.stage_width = width;
  problem.resident.clear();
  HEDDLE_RETURN_IF_ERROR(allow_cold_start(problem, flags));
  return problem;
}

Result<ProfileSummary> learn(Workbench& bench, const std::vector<ProfileRequest>& wanted, double min_s,
                             const std::string& what, const Invocation& invocation) {
  ProfileSummary summary;
  if (!bench.may_measure) return summary;
  MeasureOptions options;
  options.min_s = min_s;
  options.max_s = 3 * min_s;
  const auto measurer = make_openvino_measurer(bench.loaded.model, options);
  const auto signature = signature_of(bench.loaded);
  const auto& graph = *bench.problem.graph;
  ProfileOptions profile_options;
  profile_options.deadline = Deadline::never(invocation.cancel);
  profile_options.progress = invocation.progress;
  profile_options.batch = bench.problem.batch;
  profile_options.what = what;
  HEDDLE_ASSIGN_OR_RETURN(
      summary, profile(graph, *bench.cluster, wanted, signature, *measurer, *bench.store, profile_options));
  auto costs = std::make_shared<CostTable>(*bench.problem.costs);
  for (const auto& w : wanted) {
    const auto& device = bench.cluster->device(w.device);
    if (device.target.empty()) continue;
    const ProfileKey key{signature(finest_ops(graph, w.ops)), device.target, bench.problem.batch, 1};
    HEDDLE_ASSIGN_OR_RETURN(const auto found, bench.store->find(key));
    if (!found) continue;
    const Cost cost{found->median_us, Origin::kMeasured, found->rel_spread};
    costs->set_ops(w.ops, w.device, cost);
  }
  bench.problem.costs = costs;
  return summary;
}

Result<Workbench> make_workbench(const ModelFlags& model, const ProblemFlags& flags,
                                 const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(auto given, given_workbench(model, flags));
  if (given) return std::move(*given);
  Workbench bench;
  HEDDLE_ASSIGN_OR_RETURN(bench.loaded, load_model(model));
  if (bench.loaded.simulation) return simulation_workbench(std::move(bench.loaded), model.model, flags);
  HEDDLE_ASSIGN_OR_RETURN(bench.cluster, open_cluster(flags.cluster));
  if (bench.loaded.model) {
    const auto measurer = make_openvino_measurer(bench.loaded.model);
    for (const auto& d : bench.cluster->devices()) {
      bench.may_measure |= !flags.no_profile && !d.target.empty() && measurer->supports(d);
    }
    const auto path = flags.store.empty() ? ProfileStore::default_path() : flags.store;
    HEDDLE_ASSIGN_OR_RETURN(bench.store, ProfileStore::open(path, machine_fingerprint()));
    if (batch_of(bench.loaded) > 1) {
      auto base = model;
      base.batch = 1;
      HEDDLE_ASSIGN_OR_RETURN(const auto loaded, load_model(base));
      if (loaded.graph->num_ops() == bench.loaded.graph->num_ops()) bench.loaded.base = loaded.model;
    }
  }
  // A schedule's ops are those of the file.
  const bool graph_file =
      !bench.loaded.model && (bench.loaded.ios || bench.loaded.graph->op(OpId(0)).given_times.size() > 0);
  size_t limit = bench.may_measure ? kMeasuredUnits : kEstimatedUnits;
  // What was asked for by name is not merged further, except where each unit would have to be measured.
  if (graph_file || (!flags.coarsen.empty() && !bench.may_measure)) limit = bench.loaded.graph->num_ops();
  if (flags.units > 0) limit = static_cast<size_t>(flags.units);
  HEDDLE_ASSIGN_OR_RETURN(const auto units, make_units(bench.loaded, limit, graph_file, flags.coarsen));
  HEDDLE_ASSIGN_OR_RETURN(bench.problem, make_problem(bench, units, bench.cluster, flags));
  if (bench.may_measure) {
    std::vector<ProfileRequest> wanted;
    for (const auto device : bench.problem.usable_devices()) {
      for (size_t u = 0; u < units->num_ops(); ++u) wanted.push_back({{OpId(u)}, device});
    }
    HEDDLE_ASSIGN_OR_RETURN(bench.profiled,
                            learn(bench, wanted, kUnitSeconds, "measuring units", invocation));
    std::vector<ProfileRequest> whole;
    for (const auto device : bench.problem.usable_devices())
      whole.push_back({all_units(bench.problem), device});
    HEDDLE_ASSIGN_OR_RETURN(const auto more,
                            learn(bench, whole, kSegmentSeconds, "measuring the whole model", invocation));
    bench.profiled.requested += more.requested;
    bench.profiled.present += more.present;
    bench.profiled.measured += more.measured;
    bench.profiled.failed += more.failed;
    bench.profiled.complete = bench.profiled.complete && more.complete;
    if (bench.profiled.first_failure.empty()) bench.profiled.first_failure = more.first_failure;
  }
  HEDDLE_RETURN_IF_ERROR(learn_host_access(bench, flags, invocation));
  HEDDLE_RETURN_IF_ERROR(allow_stages(bench, flags, invocation));
  HEDDLE_RETURN_IF_ERROR(allow_cold_start(bench.problem, flags));
  return bench;
}

}  // namespace heddle::cli
