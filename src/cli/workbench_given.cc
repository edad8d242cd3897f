#include "workbench_given.h"

#include "heddle/plan/problem_file.h"

namespace heddle::cli {
namespace {

// The first flag that changes what the file holds; null when there is none.
const char* flag_against_file(const ModelFlags& model, const ProblemFlags& flags) {
  const std::pair<const char*, bool> given[] = {{"--shape", !model.shapes.empty()},
                                                {"--batch", model.batch.has_value()},
                                                {"--split-weights", model.split_bytes > 0},
                                                {"--cluster", flags.cluster != "preset:local"},
                                                {"--devices", !flags.devices.empty()},
                                                {"--units", flags.units > 0},
                                                {"--coarsen", !flags.coarsen.empty()},
                                                {"--no-contention", flags.no_contention},
                                                {"--transfer", !flags.transfer.empty()},
                                                {"--stages", flags.stages > 1},
                                                {"--stage-model", !flags.stage_model.empty()},
                                                {"--host-access", flags.host_access},
                                                {"--fixed-sharing", flags.fixed_sharing},
                                                {"--drop-parameters", flags.drop_parameters},
                                                {"--resident", !flags.resident.empty()}};
  for (const auto& [name, is_given] : given) {
    if (is_given) return name;
  }
  return nullptr;
}

}  // namespace

Result<std::optional<Workbench>> given_workbench(const ModelFlags& model, const ProblemFlags& flags) {
  PlacementOptions options;
  options.objective = objective_from_name(flags.objective).value_or(Objective::kLatency);
  options.contiguous = flags.contiguous;
  options.pieces = static_cast<int>(flags.pieces);
  HEDDLE_ASSIGN_OR_RETURN(auto file, read_problem_file(model.model, options));
  if (!file && (flags.contiguous || flags.pieces != 1))
    return Error(Code::kInvalidInput, model.model + ": --contiguous and --pieces are for placement workloads");
  if (!file) return std::optional<Workbench>();
  if (!objective_from_name(flags.objective))
    return Error(Code::kInvalidInput,
                 "--objective " + flags.objective + ": expected latency, cold-latency or throughput");
  if (const char* flag = flag_against_file(model, flags))
    return Error(Code::kInvalidInput, model.model + ": this " + file->kind +
                                          " brings its own devices, times and rules; leave " + flag + " out");
  Workbench bench;
  bench.loaded.given = true;
  bench.loaded.name = file->problem.graph->name();
  bench.loaded.graph = file->problem.graph;
  bench.cluster = file->problem.cluster;
  bench.problem = std::move(file->problem);
  return std::optional<Workbench>(std::move(bench));
}

Result<Problem> with_edit(const Workbench& bench, const ProblemEdit& edit, const ProblemFlags& flags) {
  if (bench.loaded.given) return edit_problem(bench.problem, edit);
  HEDDLE_ASSIGN_OR_RETURN(const auto cluster, edit_cluster(*bench.cluster, edit.cluster));
  return with_cluster(bench, cluster, flags);
}

}  // namespace heddle::cli
