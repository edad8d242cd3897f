// Workbench, part one: flags, models and the values that are printed.
#include <charconv>
#include <filesystem>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/cluster/discover.h"
#include "heddle/graph/graph_json.h"
#include "heddle/graph/zoo.h"
#include "heddle/plan/hios_workload.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/openvino_devices.h"
#include "workbench.h"

namespace heddle::cli {

void ModelFlags::declare(Command& command) {
  command.positional("MODEL", model,
                     ".onnx (or what OpenVINO reads), graph .json (Heddle's or IOS's, simulation instance of "
                     "HIOS), flow or placement workload, plan file, or zoo:NAME[,key=value]");
  command.list("--shape", shapes, "set an input's shape: NAME=1,3,224,224 (repeatable)");
  command.option("--batch", batch, "set the first dimension of inputs that leave it open", 1, 1 << 20);
  command.option(
      "--split-weights", split_bytes,
      "import products with a constant matrix of more BYTES as several, each with some of its columns", 1,
      INT64_MAX);
}

namespace {

Result<Shape> parse_shape(const std::string& text, const std::string& flag) {
  Shape shape;
  for (const auto& part : split_list(text)) {
    int64_t v = 0;
    const auto [end, code] = std::from_chars(part.data(), part.data() + part.size(), v);
    if (code != std::errc() || end != part.data() + part.size() || v < 1) {
      return Error(Code::kInvalidInput,
                   "--shape " + flag + ": '" + part +
                       "' is not a dimension; expected NAME=D1,D2,... with positive whole numbers");
    }
    shape.push_back(v);
  }
  return shape;
}

Result<LoadedModel> load_zoo(const std::string& text) {
  const auto parts = split_list(text);
  if (parts.empty())
    return Error(Code::kInvalidInput, "zoo: needs a name: zoo:NAME; `heddle generate --list` names them");
  HEDDLE_ASSIGN_OR_RETURN(auto params, parse_zoo_params({parts.begin() + 1, parts.end()}));
  LoadedModel loaded;
  loaded.name = parts[0];
  HEDDLE_ASSIGN_OR_RETURN(loaded.graph, build_zoo_graph(parts[0], params));
  return loaded;
}

Result<LoadedModel> load_graph_file(const std::string& path) {
  LoadedModel loaded;
  const auto json = read_json_file(path);
  if (json.ok() && is_ios_graph(*json)) {
    HEDDLE_ASSIGN_OR_RETURN(auto file, read_ios_graph(path));
    loaded.graph = file.graph;
    loaded.stages = std::move(file.stages);
    loaded.ios = true;
  } else if (json.ok() && is_hios_workload(*json)) {
    HEDDLE_ASSIGN_OR_RETURN(const auto problem, read_hios_workload(path, {}));
    loaded.graph = problem.graph;
    loaded.simulation = true;
  } else {
    HEDDLE_ASSIGN_OR_RETURN(loaded.graph, read_graph_file(path));
  }
  loaded.name = loaded.graph->name();
  return loaded;
}

// Graphs have their shapes.
Status check_is_model(const ModelFlags& flags) {
  const std::pair<const char*, bool> given[] = {{"--shape", !flags.shapes.empty()},
                                                {"--batch", flags.batch.has_value()},
                                                {"--split-weights", flags.split_bytes > 0}};
  for (const auto& [name, is_given] : given) {
    if (is_given)
      return Error(Code::kInvalidInput,
                   std::string(name) + " is about importing a model; " + flags.model + " is a graph");
  }
  return {};
}

}  // namespace

Result<ImportOptions> ModelFlags::import_options() const {
  ImportOptions options;
  options.batch = batch;
  options.split_bytes = split_bytes;
  for (const auto& flag : shapes) {
    const auto eq = flag.rfind('=');
    if (eq == std::string::npos || eq == 0) {
      return Error(Code::kInvalidInput, "--shape " + flag + ": expected NAME=D1,D2,...");
    }
    HEDDLE_ASSIGN_OR_RETURN(options.shapes[flag.substr(0, eq)], parse_shape(flag.substr(eq + 1), flag));
  }
  return options;
}

Result<std::shared_ptr<const Cluster>> open_cluster(const std::string& file_or_preset) {
  if (file_or_preset != "preset:local") return load_cluster(file_or_preset);
  return discover_local(openvino_other_devices(), local_gpus());
}

Result<LoadedModel> load_model(const ModelFlags& flags) {
  if (flags.model.rfind("zoo:", 0) == 0) {
    HEDDLE_RETURN_IF_ERROR(check_is_model(flags));
    return load_zoo(flags.model.substr(4));
  }
  if (!file_exists(flags.model)) {
    return Error(
        Code::kNotFound,
        flags.model + ": no such file; expected a model (.onnx), a Heddle graph (.json) or zoo:NAME");
  }
  if (flags.model.ends_with(".json")) {
    HEDDLE_RETURN_IF_ERROR(check_is_model(flags));
    return load_graph_file(flags.model);
  }
  HEDDLE_ASSIGN_OR_RETURN(auto options, flags.import_options());
  HEDDLE_ASSIGN_OR_RETURN(auto model, Model::load(flags.model, options));
  LoadedModel loaded;
  loaded.name = std::filesystem::path(flags.model).stem().string();
  loaded.model = model;
  loaded.graph = model->graph();
  return loaded;
}

void ProblemFlags::declare(Command& command) {
  command.option("--cluster", cluster, "cluster file, or preset:NAME (default preset:local, this machine)");
  command.option("--objective", objective, "latency, cold-latency or throughput (default latency)");
  command.option("--devices", devices,
                 "use only these devices (comma-separated names); simulation instances: their number");
  command.option("--units", units, "place at most N units (default: 24 where they are measured, else 2000)",
                 1, 1'000'000);
  command.option(
      "--coarsen", coarsen,
      "which ops become one unit: light, none, gcof or gcof:FILE with fusion rules (default light; none "
      "for graphs that come with times)");
  command.option("--store", store, "profile store file (default: the user's cache)");
  command.flag("--no-profile", no_profile, "do not measure; use stored measurements or estimates");
  command.flag("--no-contention", no_contention, "transfers never wait for each other");
  command.flag(
      "--host-access", host_access,
      "cold-latency: segments may read their parameters in place from host memory (times are estimated "
      "where they are not given)");
  command.option(
      "--resident", resident,
      "cold-latency: parameters that are on the devices from the start: a fraction (0 to 1), a plan "
      "file (what it leaves behind) or a JSON object from devices to parameter names");
  command.flag("--drop-parameters", drop_parameters,
               "cold-latency: plans drop parameters after their last use");
  command.flag("--fixed-sharing", fixed_sharing,
               "transfers and host access take longer by fixed factors instead of waiting for links");
  command.option("--stages", stages,
                 "most segments that a device runs at once, as a stage (default 1: none; "
                 "simulation instances 2)",
                 1, 1024);
  command.option("--stage-model", stage_model,
                 "what a stage takes: measured (here, fitted to pairs), simulated (HIOS) or serial (default: "
                 "measured where devices are here, else simulated)");
  command.option("--transfer", transfer,
                 "simulation instances: transfers take the time given by their source or by their reader "
                 "(default source)");
  command.flag("--contiguous", contiguous, "placement workloads, throughput: devices follow one another");
  command.option("--pieces", pieces, "placement workloads, latency: pieces on an accelerator (default 1)", 1,
                 1000);
}

void SearchFlags::declare(Command& command) {
  command.option("--time-limit", time_limit_s, "seconds for planning (default 10)", 0, 1e7);
  command.option("--seed", seed, "random seed (default 1)", 0, INT64_MAX);
  command.option("--threads", threads, "planning threads (default 1)", 1, 1024);
  command.option("--q", q, "sortinghat, efficient-mip: subgraphs per device in a submodel, even (default 6)",
                 2, 64);
  command.option("--ndom", ndom,
                 "sortinghat, efficient-mip: dominators per submodel; 0: look for the best (default 1)", 0,
                 1'000'000);
}

PlannerOptions SearchFlags::options(const Invocation& invocation) const {
  PlannerOptions options;
  options.deadline = Deadline::after_seconds(time_limit_s, invocation.cancel);
  options.seed = static_cast<uint64_t>(seed);
  options.threads = static_cast<int>(threads);
  options.subgraph_slots = static_cast<int>(q);
  options.dominators = static_cast<int>(ndom);
  options.progress = invocation.progress;
  return options;
}

Status check_output(const std::string& path) {
  if (path.empty()) return {};
  const auto folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (folder.empty() || std::filesystem::is_directory(folder, error)) return {};
  return Error(Code::kInvalidInput, path + ": there is no folder '" + folder.string() + "'; create it first");
}

Result<const PlannerEntry*> planner_named(const std::string& name) {
  if (const auto* entry = find_planner(name)) return entry;
  std::vector<std::string> names;
  for (const auto& entry : planner_registry()) names.push_back(entry.info.name);
  return Error(Code::kInvalidInput, "no planner is named '" + name + "'" + did_you_mean(name, names) +
                                        "; there are " + join_names(names, 40));
}

PlanFile to_plan_file(const Problem& problem, const PlanResult& result, uint64_t seed) {
  PlanFile file;
  file.problem = problem;
  file.plan = result.plan;
  file.predicted = result.timeline;
  file.bound = result.bound;
  file.planner = result.planner;
  file.seed = seed;
  file.planning_s = result.planning_s;
  return file;
}

std::map<std::string, int> cost_origins(const Problem& problem) {
  std::map<std::string, int> counts;
  for (const auto device : problem.usable_devices()) {
    for (size_t i = 0; i < problem.graph->num_ops(); ++i) {
      const auto cost = problem.costs->at(OpId(i), device);
      if (cost.us < kImpossible) ++counts[origin_name(cost.origin)];
    }
  }
  return counts;
}

std::string value_text(const Problem& problem, double us) {
  if (problem.objective != Objective::kThroughput) return format_us(us);
  return format_si(us > 0 ? kUsPerSecond * problem.batch / us : 0, "/s");
}

void put_value(Json& row, const Problem& problem, double value_us, double bound_us) {
  if (problem.objective == Objective::kThroughput) {
    row["value_per_s"] = value_us > 0 ? kUsPerSecond * problem.batch / value_us : 0;
    row["bound"] = bound_us > 0 ? Json(kUsPerSecond * problem.batch / bound_us) : Json();
  } else {
    row["value_us"] = value_us;
    row["bound"] = bound_us;
  }
}

}  // namespace heddle::cli
