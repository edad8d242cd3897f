#include "model_flags.h"

#include <cmath>
#include <regex>
#include <sstream>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/numbers.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/report/explain.h"

namespace heddle::cli {

void ModelFlags::declare(Command& command) {
  command.positional("MODEL", spec.path,
                     ".onnx (or what OpenVINO reads), graph .json (Heddle's or IOS's, simulation instance of "
                     "HIOS), flow or placement workload, plan file, or zoo:NAME[,key=value]");
  command.group(kModelFlags);
  command.list("--shape", shapes, "set an input's shape: NAME=1,3,224,224 (repeatable)");
  command.list("--value", values, "make an .onnx input a constant of the plan: NAME=2,3 (repeatable)");
  command.option("--batch", spec.import.batch, "set the first dimension of inputs that leave it open", 1,
                 1 << 20);
  command.bytes("--split-weights", spec.import.split_bytes,
                "import products with a larger constant matrix as several, each with some of its columns", 1,
                INT64_MAX);
  command.group("");
}

namespace {

Result<Shape> parse_shape(const std::string& text, const std::string& flag) {
  Shape shape;
  for (const auto& part : split_list(text)) {
    const auto v = parse_number<int64_t>(part);
    if (!v || *v < 1)
      return invalid_input("--shape " + flag + ": '" + part +
                           "' is not a dimension; expected NAME=D1,D2,... with positive whole numbers");
    shape.push_back(*v);
  }
  return shape;
}

Status set_coarsening(const std::string& text, ProblemSettings& settings) {
  if (text.empty()) return {};
  if (text.starts_with("gcof:")) {
    settings.coarsening = Coarsening::kGcof;
    settings.fusion_rules = text.substr(5);
    return {};
  }
  HEDDLE_ASSIGN_OR_RETURN(settings.coarsening, named_value<Coarsening>("--coarsen", text,
                                                                       {{"light", Coarsening::kLight},
                                                                        {"none", Coarsening::kNone},
                                                                        {"gcof", Coarsening::kGcof},
                                                                        {"gcof:FILE", Coarsening::kGcof}}));
  return {};
}

// Names, or for a simulation instance a number.
Status set_devices(const ProblemFlags& flags, ProblemSettings& settings) {
  const auto count = parse_number<int>(flags.devices);
  if (!count) settings.devices = split_list(flags.devices);
  if (!count && flags.transfer.empty()) return {};
  settings.simulation.emplace();
  if (count) settings.simulation->devices = *count;
  if (flags.transfer.empty()) return {};
  HEDDLE_ASSIGN_OR_RETURN(
      settings.simulation->transfer_by_reader,
      named_value<bool>("--transfer", flags.transfer, {{"source", false}, {"reader", true}}));
  return {};
}

}  // namespace

Result<std::map<std::string, Shape>> parse_shapes(const std::vector<std::string>& texts) {
  std::map<std::string, Shape> shapes;
  for (const auto& text : texts) {
    const auto eq = text.rfind('=');
    if (eq == std::string::npos || eq == 0)
      return invalid_input("--shape " + text + ": expected NAME=D1,D2,...");
    HEDDLE_ASSIGN_OR_RETURN(shapes[text.substr(0, eq)], parse_shape(text.substr(eq + 1), text));
  }
  return shapes;
}

Result<std::map<std::string, std::vector<double>>> parse_values(const std::vector<std::string>& texts) {
  std::map<std::string, std::vector<double>> values;
  for (const auto& text : texts) {
    const auto eq = text.rfind('=');
    if (eq == std::string::npos || eq == 0)
      return invalid_input("--value " + text + ": expected NAME=V1,V2,...");
    auto& list = values[text.substr(0, eq)];
    list.clear();
    for (const auto& part : split_list(text.substr(eq + 1))) {
      const auto v = parse_number<double>(part);
      if (!v || !std::isfinite(*v))
        return invalid_input("--value " + text + ": '" + part + "' is not a number; expected NAME=V1,V2,...");
      list.push_back(*v);
    }
  }
  return values;
}

Status check_is_no_fleet(const std::string& path) {
  const std::string head = file_head(path, 4096);
  static const std::regex format("format[\"']?[ \t]*:[ \t]*[\"']?heddle-fleet(-plan)?[\"']?[ \t]*[,}\r\n]");
  std::smatch match;
  if (!std::regex_search(head, match, format)) return {};
  if (match[1].matched)
    return invalid_input(path + ": this is a plan of a fleet; use `heddle fleet explain FLEET --plan " +
                         path + "`");
  return invalid_input(path + ": this is a fleet file; use `heddle fleet plan " + path + "`");
}

Status check_is_no_cluster(const std::string& path) {
  if (!path.ends_with(".yaml") && !path.ends_with(".yml")) return {};
  std::istringstream file(file_head(path, 1 << 20));
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("hosts:") || line.starts_with("devices:"))
      return invalid_input(path + ": this is a cluster file; use `heddle plan MODEL --cluster " + path + "`");
  return {};
}

Status check_is_plan(const std::string& path) {
  if (path.ends_with(".onnx") || path.starts_with("zoo:"))
    return invalid_input(path + ": this is a model; make a plan of it with `heddle plan " + path +
                         " -o plan.json`");
  HEDDLE_RETURN_IF_ERROR(check_is_no_cluster(path));
  return check_is_no_fleet(path);
}

Result<ModelSpec> ModelFlags::source() const {
  HEDDLE_RETURN_IF_ERROR(check_is_no_fleet(spec.path));
  HEDDLE_RETURN_IF_ERROR(check_is_no_cluster(spec.path));
  ModelSpec source = spec;
  HEDDLE_ASSIGN_OR_RETURN(source.import.shapes, parse_shapes(shapes));
  HEDDLE_ASSIGN_OR_RETURN(source.import.values, parse_values(values));
  return source;
}

void declare_variants(Command& command, std::string& engines, std::string& precision) {
  command.option(
      "--engines", engines,
      "choose each segment's engine among these, e.g. openvino,onnxruntime (default: the one in the cluster "
      "file, openvino for this machine)");
  command.option(
      "--precision", precision,
      "choose each segment's type among these: f32, tf32, bf16, fp16, auto for what the engine takes "
      "by itself (comma-separated; default auto); or budget");
}

void declare_budget(Command& command, std::string& budget) {
  command.option("--budget", budget,
                 "for --precision budget: least share of equal decisions and largest mean error "
                 "(default decisions=0.999,mean=0.001)");
}

Result<VariantSettings> variant_settings(const std::string& engines, const std::string& precision,
                                         const std::string& budget) {
  VariantSettings settings;
  settings.engines = split_list(engines);
  if (precision != "budget") {
    settings.precisions = split_list(precision);
    if (!budget.empty()) return invalid_input("--budget needs --precision budget");
    return settings;
  }
  ErrorBudget& limits = settings.budget.emplace();
  for (const auto& part : split_list(budget)) {
    const auto eq = part.find('=');
    const auto name = part.substr(0, eq);
    const auto value = eq == std::string::npos ? std::nullopt : parse_number<double>(part.substr(eq + 1));
    const bool known = name == "decisions" || name == "mean";
    if (!known || !value || !(*value >= 0) || (name == "decisions" && *value > 1))
      return invalid_input(
          "--budget " + budget + ": '" + part +
          "' is no limit; expected decisions=SHARE (0 to 1) and mean=ERROR (of the output's range), "
          "for example decisions=0.999,mean=0.001");
    (name == "mean" ? limits.mean : limits.agreement) = *value;
  }
  return settings;
}

void CalibrationFlags::declare(Command& command) {
  command.option(
      "--calibration", folder,
      "measure the error of narrower types on the samples in this folder: .npy, .pb or .ppm files, or a "
      "folder with one for each input (default: reference inputs beside the model, and random ones)");
  command.list(
      "--decisions", decisions,
      "what an output decides: NAME=argmax, argmax:AXIS, threshold:VALUE, boxes, detections, values or none "
      "(default: by its shape; repeatable)");
}

Status CalibrationFlags::settings(CalibrationOptions& options, DecisionRules& rules) const {
  options.folder = folder;
  for (const auto& flag : decisions) {
    const auto eq = flag.rfind('=');
    if (eq == std::string::npos || eq == 0)
      return invalid_input("--decisions " + flag + ": expected NAME=KIND, for example scores=argmax");
    HEDDLE_ASSIGN_OR_RETURN(
        rules[flag.substr(0, eq)],
        with_context(parse_decision(std::string_view(flag).substr(eq + 1)), "--decisions"));
  }
  return {};
}

void ProblemFlags::declare(Command& command) {
  command.group(kPlanningFlags);
  command.option("--cluster", cluster, "cluster file, or preset:NAME (default preset:local, this machine)");
  command.option("--objective", objective, "latency, cold-latency or throughput (default latency)");
  command.option("--devices", devices,
                 "use only these devices (comma-separated names); simulation instances: their number");
  declare_variants(command, engines, precision);
  declare_budget(command, budget);
  calibration.declare(command);
  command.option("--units", plain.units,
                 "place at most N units (default: 24 where they are measured, else 2000)", 1, 1'000'000);
  command.option(
      "--coarsen", coarsen,
      "which ops become one unit: light, none, gcof or gcof:FILE with fusion rules (default light; none "
      "for graphs that come with times)");
  command.option("--store", plain.store, "profile store file (default: the user's cache)");
  command.switch_off("--no-profile", plain.measure, "do not measure; use stored measurements or estimates");
  command.group(kColdFlags);
  command.flag(
      "--host-access", plain.host_access,
      "cold-latency: segments may read their parameters in place from host memory (times are estimated "
      "where they are not given)");
  command.option(
      "--resident", resident,
      "cold-latency: parameters that are on the devices from the start: a fraction (0 to 1), a plan "
      "file (what it leaves behind) or a JSON object from devices to parameter names");
  command.flag("--drop-parameters", plain.drop_parameters,
               "cold-latency: plans drop parameters after their last use");
  command.group(kResearchFlags);
  command.switch_off("--no-contention", plain.contention, "transfers never wait for each other");
  command.flag("--fixed-sharing", plain.fixed_sharing,
               "transfers and host access take longer by fixed factors instead of waiting for links");
  command.option("--stages", plain.stage_width,
                 "most segments that a device runs at once, as a stage (default 1: none; "
                 "simulation instances 2)",
                 1, 1024);
  command.option("--stage-model", stage_model,
                 "how the time of a stage is found: measured (here, fitted to pairs), simulated (HIOS) or "
                 "serial (default: measured if the devices are here, else simulated)");
  command.option("--transfer", transfer,
                 "simulation instances: transfers take the time given by their source or by their reader "
                 "(default source)");
  command.flag("--contiguous", plain.contiguous,
               "placement workloads, throughput: devices follow one another");
  command.option("--pieces", plain.pieces,
                 "placement workloads, latency: pieces on an accelerator (default 1)", 1, 1000);
  command.group("");
}

void PlanningFlags::declare(Command& command) {
  model.declare(command);
  problem.declare(command);
  command.group(kPlanningFlags);
  command.seconds("--time-limit", search.time_limit_s, "time for planning (default 10s)", 0, 1e7);
  command.option("--seed", search.seed, "random seed (default 1)", 0, INT64_MAX);
  command.option("--threads", search.threads, "planning threads (default 1)", 1, 1024);
  command.group(kResearchFlags);
  command.option("--q", search.subgraph_slots,
                 "sortinghat, efficient-mip: subgraphs per device in a submodel, even (default 6)", 2, 64);
  command.option("--ndom", search.dominators,
                 "sortinghat, efficient-mip: dominators per submodel; 0: look for the best (default 1)", 0,
                 1'000'000);
  command.group("");
}

void RobustFlag::declare(Command& command) {
  command.group(kPlanningFlags);
  command.option(
      "--robust", share,
      "plan for the loss of this share of any one device's speed, such as 0.25: the plan whose worst "
      "case is best",
      0, kMostRobustShare);
  command.group("");
}

Result<PlanResult> RobustFlag::plan(Session& session, const std::string& planner,
                                    const SearchSettings& search, const Control& control) {
  if (share == 0) return make_plan(session, planner, search, control);
  HEDDLE_ASSIGN_OR_RETURN(planned, make_robust_plan(session, planner, search, share, control));
  return planned->result;
}

Result<Session> PlanningFlags::open(const Invocation& invocation) const {
  return open_session(model, problem, invocation);
}

Result<ProblemSettings> ProblemFlags::settings() const {
  ProblemSettings s = plain;
  HEDDLE_ASSIGN_OR_RETURN(s.objective, named_value<Objective>("--objective", objective,
                                                              {{"latency", Objective::kLatency},
                                                               {"cold-latency", Objective::kColdLatency},
                                                               {"throughput", Objective::kThroughput}}));
  HEDDLE_ASSIGN_OR_RETURN(s.variants, variant_settings(engines, precision, budget));
  HEDDLE_RETURN_IF_ERROR(calibration.settings(s.calibration, s.decisions));
  HEDDLE_RETURN_IF_ERROR(set_coarsening(coarsen, s));
  HEDDLE_RETURN_IF_ERROR(set_devices(*this, s));
  if (!stage_model.empty()) {
    if (plain.stage_width < 2) return invalid_input("--stage-model needs --stages 2 or more");
    HEDDLE_ASSIGN_OR_RETURN(s.stage_times, named_value<StageTimes>("--stage-model", stage_model,
                                                                   {{"measured", StageTimes::kMeasured},
                                                                    {"simulated", StageTimes::kSimulated},
                                                                    {"serial", StageTimes::kSerial}}));
  }
  if (const auto fraction = parse_number<double>(resident))
    s.resident = {.fraction = *fraction, .file = ""};
  else if (!resident.empty())
    s.resident = {.fraction = 0, .file = resident};
  if (cluster != "preset:local") {
    HEDDLE_RETURN_IF_ERROR(check_is_no_fleet(cluster));
    HEDDLE_ASSIGN_OR_RETURN(s.cluster, open_cluster(cluster));
  }
  return s;
}

Result<Session> open_session(const ModelFlags& model, const ProblemFlags& problem,
                             const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto source, model.source());
  HEDDLE_ASSIGN_OR_RETURN(const auto settings, problem.settings());
  HEDDLE_ASSIGN_OR_RETURN(auto session, heddle::open_session(source, settings, invocation));
  show_notes(session.loaded, invocation);
  return session;
}

void show_notes(const LoadedModel& loaded, const Invocation& invocation) {
  if (loaded.model == nullptr || invocation.progress == nullptr) return;
  for (const auto& note : loaded.model->notes()) print(stderr, "heddle: note: {}: {}\n", loaded.name, note);
}

Status check_planner(const std::string& name) {
  const auto entry = planner_named(name);
  return entry.ok() ? Status() : Status(entry.error());
}

}  // namespace heddle::cli
