// Units, cost models and measurements.
#include "heddle/session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "heddle/base/log.h"
#include "heddle/base/spelling.h"
#include "heddle/cluster/variants.h"
#include "heddle/graph/coarsen.h"
#include "heddle/graph/gcof.h"
#include "heddle/graph/narrow.h"
#include "heddle/graph/onnx_cut.h"
#include "heddle/graph/quantised.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/segment_measurer.h"
#include "session_parts.h"

namespace heddle {
namespace {

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

std::shared_ptr<const CostModel> cost_models(const Session& session, const Cluster& cluster) {
  std::vector<std::shared_ptr<const CostModel>> models;
  std::shared_ptr<const CostModel> measured;
  if (session.store && session.loaded.model) {
    measured = measured_cost_model(session.store, signature_of(session.loaded));
    models.push_back(measured);
  }
  models.push_back(given_cost_model());
  if (measured) {
    // The largest device here is the reference for absent ones of its kind.
    const Device* from = nullptr;
    for (const auto& d : session.cluster->devices()) {
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

Result<std::vector<DeviceId>> devices_named(const std::vector<std::string>& wanted, const Cluster& cluster) {
  std::vector<DeviceId> ids;
  for (const auto& name : wanted) {
    auto id = cluster.find_device(name);
    // Hardware is named with all of its variants, a variant alone.
    const bool names_hardware = !id.valid() || (!cluster.is_variant(id) && hardware_name(name) == name);
    for (size_t d = 0; d < cluster.num_devices() && !id.valid(); ++d) {
      if (hardware_name(cluster.device(DeviceId(d)).name) == name) id = DeviceId(d);
    }
    if (!id.valid()) return device_named(cluster, name).error();
    const auto same = cluster.variants(id);
    if (names_hardware)
      ids.insert(ids.end(), same.begin(), same.end());
    else
      ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

Result<std::vector<int>> unit_groups(const Graph& graph, const ProblemSettings& settings) {
  if (settings.coarsening != Coarsening::kGcof) return group_light_ops(graph);
  if (settings.fusion_rules.empty()) return fuse_ops(graph, default_fusion_rules());
  HEDDLE_ASSIGN_OR_RETURN(const auto rules, read_fusion_rules(settings.fusion_rules));
  return fuse_ops(graph, rules);
}

// Splits groups of ops where the number of settings.keep_apart changes along the topological order. The quotient
// stays acyclic: a group is convex, so what is between two of its parts is in neither direction outside of it.
std::vector<int> split_groups(const Graph& graph, const std::vector<int>& group,
                              const std::vector<int>& number) {
  std::vector<int> split(group.size());
  std::map<int, std::pair<int, int>> open;  // by group: the number of its last op, and the new group
  int groups = 0;
  for (const OpId op : graph.topological_order()) {
    const int of = number[finest_ops(graph, {&op, 1})[0].index()];
    auto [at, is_new] = open.try_emplace(group[op.index()], of, 0);
    if (is_new || at->second.first != of) at->second = {of, groups++};
    split[op.index()] = at->second.second;
  }
  return split;
}

Result<std::shared_ptr<const Graph>> make_coarser(const Graph& graph, std::vector<int> group,
                                                  const ProblemSettings& settings) {
  if (!settings.keep_apart.empty()) group = split_groups(graph, group, settings.keep_apart);
  return coarsen(graph, group);
}

// The parts of the model's file if a device runs segments by ONNX Runtime, which takes whole nodes only; else null.
Result<const OnnxParts*> parts_for_engine(const Session& session, const ProblemSettings& settings) {
  if (session.loaded.model == nullptr) return nullptr;
  HEDDLE_ASSIGN_OR_RETURN(const auto named, devices_named(settings.devices, *session.cluster));
  for (size_t d = 0; d < session.cluster->num_devices(); ++d) {
    const DeviceId id(d);
    if (session.cluster->device(id).backend != "onnxruntime") continue;
    if (!named.empty() && std::ranges::find(named, id) == named.end()) continue;
    // Without parts that engine runs nothing of the model, which forbid_refused() finds out.
    const auto parts = session.loaded.model->onnx_parts();
    return parts.ok() ? *parts : nullptr;
  }
  return nullptr;
}

std::vector<OpId> all_units(const Problem& problem) {
  std::vector<OpId> units;
  for (size_t u = 0; u < problem.graph->num_ops(); ++u) units.emplace_back(u);
  return units;
}

// The slowdown of devices whose whole model was also measured with one of their cores taken. Other work on the machine
// hides it: it had taken a core already. O(devices x log store).
void put_core_taken(const Session& session, const Problem& problem, CostTable& costs) {
  if (!session.store || !session.loaded.model) return;
  const uint64_t whole = signature_of(session.loaded)(finest_ops(*problem.graph, all_units(problem)));
  for (const DeviceId id : problem.usable_devices()) {
    const Device& device = problem.cluster->device(id);
    if (device.target.empty() || device.cores.empty()) continue;
    ProfileKey key = profile_key(whole, device, problem.batch);
    const auto alone = session.store->find(key);
    key.target = core_taken_target(device.target);
    const auto taken = session.store->find(key);
    if (!alone.ok() || !taken.ok() || !*alone || !*taken || !((*alone)->median_us > 0)) continue;
    if ((*taken)->rel_spread > kDisturbedSpread) continue;
    costs.set_core_taken(id, std::max(1.0, (*taken)->median_us / (*alone)->median_us));
  }
}

int batch_of(const LoadedModel& loaded) {
  return loaded.model ? static_cast<int>(loaded.model->options().batch.value_or(1)) : 1;
}

bool has_given_times(const Graph& graph) {
  return graph.num_ops() > 0 && !graph.op(OpId(0)).given_times.empty();
}

// The graph in the type of two bytes that all devices of the problem take and return, if there is one. Parameters are
// as narrow on hardware that is not here, and with engines that say so. Other engines keep the model's own beside their
// copies. What an engine holds in float32 all the same has the names of the finest graph.
Result<std::shared_ptr<const Graph>> as_devices_hold_it(const Problem& problem, const Graph& finest,
                                                        const std::shared_ptr<const Graph>& units) {
  std::optional<DType> common;
  bool keeps_wide = false;
  std::set<std::string> wide, asked;
  for (const DeviceId id : problem.usable_devices()) {
    const Device& device = problem.cluster->device(id);
    const Backend* backend = find_backend(device.backend);
    const DType type = backend == nullptr ? DType::kF32 : backend->border_type(device);
    if (type == DType::kF32 || type != common.value_or(type)) return units;
    common = type;
    keeps_wide = keeps_wide || (backend->computes() && !backend->narrows_parameters());
    if (!asked.insert(backend->name()).second) continue;
    const WideValues values = backend->wide_values(finest);
    for (size_t t = 0; t < values.tensors.size(); ++t)
      if (values.tensors[t]) wide.insert(finest.tensors()[t].name);
    for (size_t p = 0; p < values.params.size(); ++p)
      if (values.params[p]) wide.insert(finest.params()[p].name);
  }
  if (!common || has_given_times(*units)) return units;
  return narrowed(*units, *common, keeps_wide ? Narrowed::kTensors : Narrowed::kAll, wide);
}

Result<Problem> make_problem(const Session& session, const std::shared_ptr<const Graph>& units,
                             const std::shared_ptr<const Cluster>& cluster, const ProblemSettings& settings) {
  Problem problem;
  problem.graph = units;
  problem.cluster = cluster;
  problem.objective = settings.objective;
  problem.execution.link_contention = problem.execution.engine_contention = settings.contention;
  problem.batch = batch_of(session.loaded);
  HEDDLE_ASSIGN_OR_RETURN(problem.devices, devices_named(settings.devices, *cluster));
  HEDDLE_ASSIGN_OR_RETURN(problem.graph, as_devices_hold_it(problem, *session.loaded.graph, units));
  if (session.loaded.model) {
    const auto& m = *session.loaded.model;
    problem.model = ModelReference{m.path(),          m.file_hash(),           m.options().shapes,
                                   m.options().batch, m.options().split_bytes, m.options().values};
  }
  CostContext context;
  context.batch = problem.batch;
  HEDDLE_ASSIGN_OR_RETURN(
      auto costs, build_cost_table(*problem.graph, *cluster, *cost_models(session, *cluster), context));
  if (session.loaded.model)
    HEDDLE_RETURN_IF_ERROR(
        forbid_refused(*session.loaded.model, *problem.graph, *cluster, problem.usable_devices(), costs));
  if (settings.host_access) put_host_access(session, problem, costs);
  put_core_taken(session, problem, costs);
  problem.costs = std::make_shared<const CostTable>(std::move(costs));
  if (settings.simulation)
    return invalid_input(
        "a number of devices and a choice of transfer times are for simulation instances only; " +
        session.loaded.name + " is none");
  HEDDLE_RETURN_IF_ERROR(validate(problem));
  return problem;
}

// A simulation instance decides everything except the number of devices.
Result<Session> open_simulation(LoadedModel loaded, const std::string& path,
                                const ProblemSettings& settings) {
  const std::string instance = path + ": a simulation instance ";
  if (settings.cluster != nullptr)
    return invalid_input(instance + "brings its own devices; give their number, and no cluster");
  if (!settings.devices.empty())
    return invalid_input(instance + "brings equal devices; give their number, 1 to " +
                         std::to_string(kMaxHiosDevices) + ", and no names");
  if (settings.coarsening != Coarsening::kUsual || settings.units > 0)
    return invalid_input(instance + "is planned as it is, without coarsening or units");
  if (settings.stage_times != StageTimes::kUsual) return invalid_input(instance + "brings its stage model");
  if (settings.variants.any())
    return invalid_input(instance + "brings its times; give no engine or precision");
  Session session;
  session.loaded = std::move(loaded);
  HEDDLE_ASSIGN_OR_RETURN(session.problem,
                          read_hios_workload(path, settings.simulation.value_or(HiosWorkloadOptions{})));
  session.problem.objective = settings.objective;
  if (settings.stage_width > 1) session.problem.execution.stage_width = settings.stage_width;
  session.loaded.graph = session.problem.graph;
  session.cluster = session.problem.cluster;
  HEDDLE_RETURN_IF_ERROR(allow_cold_start(session.problem, settings));
  return session;
}

// Opens the profile store and finds out whether anything can be measured here.
Status open_store(Session& session, const ModelSpec& source, const ProblemSettings& settings) {
  const auto measurer = make_segment_measurer(session.loaded.model);
  for (const auto& d : session.cluster->devices()) {
    session.may_measure |= settings.measure && !d.target.empty() && measurer->supports(d);
  }
  const auto path = settings.store.empty() ? ProfileStore::default_path() : settings.store;
  HEDDLE_ASSIGN_OR_RETURN(session.store, ProfileStore::open(path, measuring_fingerprint()));
  log_debug([&] { return "profile store: " + path; });
  if (batch_of(session.loaded) == 1) return {};
  auto base = source;
  base.import.batch = 1;
  HEDDLE_ASSIGN_OR_RETURN(const auto loaded, load_model(base));
  if (loaded.graph->num_ops() == session.loaded.graph->num_ops()) session.loaded.base = loaded.model;
  return {};
}

Status measure_units(Session& session, const Control& control) {
  std::vector<ProfileRequest> wanted, whole;
  for (const auto device : session.problem.usable_devices()) {
    for (const OpId unit : all_units(session.problem)) wanted.push_back({{unit}, device});
    whole.push_back({all_units(session.problem), device});
  }
  auto& sum = session.profiled;
  HEDDLE_ASSIGN_OR_RETURN(sum, measure_segments(session, wanted, kUnitSeconds, "measuring units", control));
  HEDDLE_ASSIGN_OR_RETURN(
      const auto more, measure_segments(session, whole, kSegmentSeconds, "measuring the whole model", control,
                                        {.core_taken = true}));
  sum.requested += more.requested;
  sum.present += more.present;
  sum.measured += more.measured;
  sum.failed += more.failed;
  sum.complete = sum.complete && more.complete;
  if (sum.first_failure.empty()) sum.first_failure = more.first_failure;
  return {};
}

size_t most_units(const Session& session, bool whole_ops, const ProblemSettings& settings) {
  if (settings.units > 0) return settings.units;
  // A coarsening that the caller named is not merged further, unless each unit would have to be measured.
  const bool by_name = settings.coarsening != Coarsening::kUsual && !session.may_measure;
  if (whole_ops || by_name) return session.loaded.graph->num_ops();
  return session.may_measure ? kMeasuredUnits : kEstimatedUnits;
}

// Segments whose times are known in `from` have them on the other cluster, too, in proportion to their ops' times.
void keep_segments(const Problem& from, const Cluster& cluster, CostTable& costs) {
  for (size_t d = 0; d < cluster.num_devices(); ++d) {
    const DeviceId to(d), before = device_like(cluster.device(to), *from.cluster);
    if (!before.valid()) continue;
    for (const SegmentCost& segment : from.costs->segments()) {
      if (segment.device != before) continue;
      double old_us = 0, new_us = 0;
      for (const OpId op : segment.ops) {
        old_us += from.costs->us(op, before);
        new_us += costs.us(op, to);
      }
      if (!(old_us < kImpossible && new_us < kImpossible && old_us > 0)) continue;
      SegmentCost kept{segment.ops, to, segment.cost};
      if (new_us != old_us) {
        kept.cost.us *= new_us / old_us;
        kept.cost.origin = std::max(kept.cost.origin, Origin::kScaled);
      }
      costs.set_segment(std::move(kept));
    }
  }
}

}  // namespace

DeviceId device_like(const Device& device, const Cluster& cluster) {
  if (const DeviceId id = cluster.find_device(device.name); id.valid()) return id;
  for (size_t d = 0; d < cluster.num_devices(); ++d)
    if (cluster.device(DeviceId(d)).device_class == device.device_class) return DeviceId(d);
  return {};
}

Result<std::shared_ptr<const Graph>> make_units(const Session& session, size_t limit, bool whole_ops,
                                                const ProblemSettings& settings) {
  auto graph = session.loaded.graph;
  const bool as_it_is =
      settings.coarsening == Coarsening::kNone || (whole_ops && settings.coarsening == Coarsening::kUsual);
  HEDDLE_ASSIGN_OR_RETURN(const OnnxParts* parts, parts_for_engine(session, settings));
  if (!as_it_is || parts != nullptr) {
    std::vector<int> group(graph->num_ops());
    std::iota(group.begin(), group.end(), 0);
    if (!as_it_is) {
      HEDDLE_ASSIGN_OR_RETURN(group, unit_groups(*graph, settings));
    }
    if (parts != nullptr) group = parts->keep_nodes_whole(*graph, group);
    HEDDLE_ASSIGN_OR_RETURN(graph, make_coarser(*graph, group, settings));
  }
  if (graph->num_ops() > limit) {
    HEDDLE_ASSIGN_OR_RETURN(graph, make_coarser(*graph, group_to_size(*graph, limit), settings));
  }
  return with_int8_types(graph, *session.loaded.graph);
}

Result<Problem> with_cluster(const Session& session, const std::shared_ptr<const Cluster>& cluster,
                             const ProblemSettings& settings) {
  if (session.loaded.given)
    return invalid_input(session.loaded.name +
                         ": a file that holds a whole problem has times for its own "
                         "devices only; edit those");
  if (!session.loaded.simulation) {
    HEDDLE_ASSIGN_OR_RETURN(auto problem, make_problem(session, session.units, cluster, settings));
    problem.precision = session.problem.precision;
    forbid_types(problem);
    auto costs = std::make_shared<CostTable>(*problem.costs);
    keep_segments(session.problem, *cluster, *costs);
    problem.costs = std::move(costs);
    keep_stages(session.problem, problem);
    HEDDLE_RETURN_IF_ERROR(allow_cold_start(problem, settings));
    return problem;
  }
  Problem problem = session.problem;
  problem.cluster = cluster;
  HEDDLE_ASSIGN_OR_RETURN(auto costs, build_cost_table(*problem.graph, *cluster, *given_cost_model(), {}));
  problem.costs = std::make_shared<const CostTable>(std::move(costs));
  const int width = problem.execution.stage_width;
  set_hios_stages(problem);
  problem.execution.stage_width = width;
  problem.resident.clear();
  HEDDLE_RETURN_IF_ERROR(allow_cold_start(problem, settings));
  return problem;
}

Result<Problem> with_edits(const Session& session, const std::vector<ProblemEdit>& edits,
                           const ProblemSettings& settings) {
  Problem problem = session.problem;
  if (settings.host_access && !session.loaded.given) {
    // Estimates of reading in place depend on links. Without them here, they are made of the changed ones below.
    auto costs = std::make_shared<CostTable>(*problem.costs);
    costs->clear_host_access();
    put_host_access(session, problem, *costs);
    problem.costs = std::move(costs);
  }
  for (const ProblemEdit& edit : edits) {
    HEDDLE_ASSIGN_OR_RETURN(problem, edit_problem(problem, edit));
  }
  if (session.loaded.given) return problem;
  if (session.units != nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(problem.graph, as_devices_hold_it(problem, *session.loaded.graph, session.units));
  }
  HEDDLE_RETURN_IF_ERROR(allow_cold_start(problem, settings));
  return problem;
}

Result<ProfileSummary> profile_segments(const Session& session, const LoadedModel& loaded, const Graph& graph,
                                        const std::vector<ProfileRequest>& wanted,
                                        const MeasuringOptions& options, const Control& control) {
  MeasureOptions measuring;
  measuring.min_s = options.min_s;
  measuring.max_s = 3 * options.min_s;
  const auto measurer = make_segment_measurer(loaded.model, measuring, options.conditions);
  ProfileOptions profiling;
  profiling.deadline = control.deadline();
  profiling.progress = control.progress;
  profiling.batch = options.batch;
  profiling.what = options.what;
  return profile(graph, *session.cluster, wanted, signature_of(session.loaded), *measurer, *session.store,
                 profiling);
}

Result<ProfileSummary> profile_segments(const Session& session, const std::vector<ProfileRequest>& wanted,
                                        const MeasuringOptions& options, const Control& control) {
  return profile_segments(session, session.loaded, *session.problem.graph, wanted, options, control);
}

Result<ProfileSummary> measure_segments(Session& session, const std::vector<ProfileRequest>& wanted,
                                        double min_s, const std::string& what, const Control& control,
                                        const MeasureConditions& conditions) {
  if (!session.may_measure) return ProfileSummary{};
  const auto& graph = *session.problem.graph;
  HEDDLE_ASSIGN_OR_RETURN(
      const ProfileSummary summary,
      profile_segments(
          session, wanted,
          {.min_s = min_s, .batch = session.problem.batch, .conditions = conditions, .what = what}, control));
  log_debug([&] {
    return fmt::format("{}: {} wanted, {} known, {} measured, {} failed", what, summary.requested,
                       summary.present, summary.measured, summary.failed);
  });
  const auto signature = signature_of(session.loaded);
  auto costs = std::make_shared<CostTable>(*session.problem.costs);
  for (const auto& w : wanted) {
    const auto& device = session.cluster->device(w.device);
    if (device.target.empty()) continue;
    const auto key = profile_key(signature(finest_ops(graph, w.ops)), device, session.problem.batch);
    HEDDLE_ASSIGN_OR_RETURN(const auto found, session.store->find(key));
    if (!found) continue;
    const Cost cost{found->median_us, Origin::kMeasured, found->rel_spread};
    costs->set_ops(w.ops, w.device, cost);
  }
  if (conditions.core_taken) put_core_taken(session, session.problem, *costs);
  session.problem.costs = costs;
  return summary;
}

Result<Session> open_session(const ModelSpec& source, const ProblemSettings& settings,
                             const Control& control) {
  HEDDLE_ASSIGN_OR_RETURN(auto given, open_given(source, settings));
  if (given) return std::move(*given);
  HEDDLE_ASSIGN_OR_RETURN(auto loaded, load_model(source));
  return open_session(source, std::move(loaded), settings, control);
}

Result<Session> open_session(const ModelSpec& source, LoadedModel loaded, const ProblemSettings& settings,
                             const Control& control) {
  if (!settings.keep_apart.empty() && settings.keep_apart.size() != loaded.graph->num_ops())
    return internal_error("keep_apart is not of this model's ops");
  Session session;
  session.loaded = std::move(loaded);
  if (session.loaded.simulation) return open_simulation(std::move(session.loaded), source.path, settings);
  session.cluster = settings.cluster;
  if (session.cluster == nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(session.cluster, open_cluster("preset:local"));
  }
  if (session.loaded.model) {
    HEDDLE_ASSIGN_OR_RETURN(session.cluster,
                            choose_variants(session.cluster, settings.variants, settings.devices));
  } else if (settings.variants.any()) {
    if (has_given_times(*session.loaded.graph))
      return invalid_input(source.path +
                           ": engines and precisions are for models; this graph's times are given");
    if (!settings.variants.engines.empty() || settings.variants.budget)
      return invalid_input(source.path +
                           ": engines and error budgets are for models; a graph has nothing to run");
    HEDDLE_ASSIGN_OR_RETURN(session.cluster,
                            choose_variants(session.cluster, settings.variants, settings.devices));
  }
  if (session.loaded.model) HEDDLE_RETURN_IF_ERROR(open_store(session, source, settings));
  // A schedule's ops are those of the file.
  const bool whole_ops =
      !session.loaded.model && (session.loaded.ios || has_given_times(*session.loaded.graph));
  HEDDLE_ASSIGN_OR_RETURN(session.units,
                          make_units(session, most_units(session, whole_ops, settings), whole_ops, settings));
  HEDDLE_ASSIGN_OR_RETURN(session.problem, make_problem(session, session.units, session.cluster, settings));
  if (session.may_measure) HEDDLE_RETURN_IF_ERROR(measure_units(session, control));
  HEDDLE_RETURN_IF_ERROR(choose_types(session, settings, control));
  HEDDLE_RETURN_IF_ERROR(measure_host_access(session, settings, control));
  HEDDLE_RETURN_IF_ERROR(allow_stages(session, settings, control));
  HEDDLE_RETURN_IF_ERROR(allow_cold_start(session.problem, settings));
  return session;
}

}  // namespace heddle
