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
#include "heddle/runtime/openvino_devices.h"
#include "workbench.h"

namespace heddle::cli {

void ModelFlags::declare(Command& command) {
  command.positional("MODEL", model,
                     ".onnx (or what OpenVINO reads), Heddle graph .json, or zoo:NAME[,key=value]");
  command.list("--shape", shapes, "set an input's shape: NAME=1,3,224,224 (repeatable)");
  command.option("--batch", batch, "set the first dimension of inputs that leave it open", 1, 1 << 20);
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
  HEDDLE_ASSIGN_OR_RETURN(auto graph, build_zoo_graph(parts[0], params));
  return LoadedModel{parts[0], nullptr, graph};
}

}  // namespace

Result<ImportOptions> ModelFlags::import_options() const {
  ImportOptions options;
  options.batch = batch;
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
  return discover_local(openvino_other_devices());
}

Result<LoadedModel> load_model(const ModelFlags& flags) {
  if (flags.model.rfind("zoo:", 0) == 0) return load_zoo(flags.model.substr(4));
  if (!file_exists(flags.model)) {
    return Error(
        Code::kNotFound,
        flags.model + ": no such file; expected a model (.onnx), a Heddle graph (.json) or zoo:NAME");
  }
  if (flags.model.ends_with(".json")) {
    HEDDLE_ASSIGN_OR_RETURN(auto graph, read_graph_file(flags.model));
    return LoadedModel{graph->name(), nullptr, graph};
  }
  HEDDLE_ASSIGN_OR_RETURN(auto options, flags.import_options());
  HEDDLE_ASSIGN_OR_RETURN(auto model, Model::load(flags.model, options));
  return LoadedModel{std::filesystem::path(flags.model).stem().string(), model, model->graph()};
}

void ProblemFlags::declare(Command& command) {
  command.option("--cluster", cluster, "cluster file, or preset:NAME (default preset:local, this machine)");
  command.option("--objective", objective, "latency, cold-latency or throughput (default latency)");
  command.option("--devices", devices, "use only these devices (comma-separated names)");
  command.option("--units", units, "place at most N units (default: 24 where they are measured, else 2000)",
                 1, 1'000'000);
  command.option(
      "--coarsen", coarsen,
      "which ops become one unit: light, none, gcof or gcof:FILE with fusion rules (default light; none "
      "for graphs that come with times)");
  command.option("--store", store, "profile store file (default: the user's cache)");
  command.flag("--no-profile", no_profile, "do not measure; use stored measurements or estimates");
  command.flag("--no-contention", no_contention, "transfers never wait for each other");
}

void SearchFlags::declare(Command& command) {
  command.option("--time-limit", time_limit_s, "seconds for planning (default 10)", 0, 1e7);
  command.option("--seed", seed, "random seed (default 1)", 0, INT64_MAX);
  command.option("--threads", threads, "planning threads (default 1)", 1, 1024);
}

PlannerOptions SearchFlags::options(const Invocation& invocation) const {
  PlannerOptions options;
  options.deadline = Deadline::after_seconds(time_limit_s, invocation.cancel);
  options.seed = static_cast<uint64_t>(seed);
  options.threads = static_cast<int>(threads);
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
