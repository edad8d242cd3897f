// heddle generate: random graphs of the papers and models of the zoo.
#include <fmt/format.h>

#include <algorithm>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/graph/generators.h"
#include "heddle/graph/graph_json.h"
#include "heddle/graph/zoo.h"
#include "heddle/report/model_text.h"
#include "heddle/session/clusters.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

struct GenerateOptions {
  std::string family, output, devices_like, dependency = "sdep", weights = "none";
  LayeredOptions layered;
  RandomWiredOptions wired;
  uint64_t seed = 1;
  double spread = 0.2;
  std::vector<std::string> params;
  bool list = false;
};

Result<std::shared_ptr<const Graph>> random_graph(const GenerateOptions& o) {
  std::vector<std::pair<std::string, double>> factors;
  if (!o.devices_like.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(const auto cluster, open_cluster(o.devices_like));
    factors = class_factors(*cluster);
  }
  if (o.family == "layered") {
    LayeredOptions l = o.layered;
    l.seed = o.seed;
    l.device_class_factors = factors;
    l.device_spread = factors.empty() ? 0 : o.spread;
    return generate_layered(l);
  }
  RandomWiredOptions r = o.wired;
  using Family = RandomWiredOptions::Family;
  using Dependency = RandomWiredOptions::Dependency;
  r.family = o.family == "er"   ? Family::kErdosRenyi
             : o.family == "ws" ? Family::kWattsStrogatz
                                : Family::kBarabasiAlbert;
  HEDDLE_ASSIGN_OR_RETURN(
      r.dependency, named_value<Dependency>("--dependency", o.dependency,
                                            {{"sdep", Dependency::kSeries}, {"wdep", Dependency::kWeak}}));
  r.seed = o.seed;
  r.device_class_factors = std::move(factors);
  return generate_random_wired(r);
}

// Writes the graph; returns a summary of it.
Result<std::string> write_graph(const Graph& graph, const std::string& path) {
  HEDDLE_RETURN_IF_ERROR(write_file_atomic(path, json_text(graph_to_json(graph), 1)));
  return fmt::format("{}: {} ops, {} edges", graph.name(), graph.num_ops(), graph.num_edges());
}

Result<std::string> generate_zoo(const GenerateOptions& o) {
  HEDDLE_ASSIGN_OR_RETURN(auto params, parse_zoo_params(o.params));
  if (o.output.ends_with(".onnx")) {
    ZooOnnxOptions options{.seed = o.seed};
    HEDDLE_ASSIGN_OR_RETURN(options.random_weights,
                            named_value<bool>("--weights", o.weights, {{"none", false}, {"random", true}}));
    HEDDLE_ASSIGN_OR_RETURN(const std::string weights, write_zoo_onnx(o.family, params, o.output, options));
    return o.family + (weights.empty() ? "" : ", weights in " + weights);
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto graph, build_zoo_graph(o.family, params));
  HEDDLE_ASSIGN_OR_RETURN(const std::string summary, write_graph(*graph, o.output));
  return fmt::format("{}, {}, parameters {}", summary, format_si(graph->total_flops(), "FLOP"),
                     format_bytes(graph->total_param_bytes()));
}

Result<std::string> generate_random(const GenerateOptions& o) {
  if (!o.params.empty())
    return invalid_input("--param is for zoo models; '" + o.family + "' has flags of its own");
  HEDDLE_ASSIGN_OR_RETURN(const auto graph, random_graph(o));
  return write_graph(*graph, o.output);
}

Result<int> run_generate(const GenerateOptions& o, const Invocation& invocation) {
  if (o.list) {
    show_result(invocation, families_shown());
    return kExitDone;
  }
  if (o.family.empty()) return invalid_input("generate needs a family; --list names them");
  std::vector<std::string> names = {"layered", "er", "ws", "ba"};
  const bool random = std::ranges::find(names, o.family) != names.end();
  for (const auto& entry : zoo_models()) names.push_back(entry.name);
  if (std::ranges::find(names, o.family) == names.end())
    return invalid_input("no family is named '" + o.family + "'" + did_you_mean(o.family, names) +
                         "; --list names them");
  if (o.output.empty()) return invalid_input("generate needs -o FILE (.json, or .onnx for zoo models)");
  HEDDLE_ASSIGN_OR_RETURN(const auto summary, random ? generate_random(o) : generate_zoo(o));
  show_result(invocation, {{"family", o.family}, {"summary", summary}, {"output", o.output}},
              summary + ", written to " + o.output + "\n");
  return kExitDone;
}

}  // namespace

RunFn setup_generate(Command& command) {
  auto o = std::make_shared<GenerateOptions>();
  command.positional("FAMILY", o->family, "layered, er, ws, ba or a zoo model; --list names all", false);
  command.flag("--list", o->list, "list the families");
  command.option("-o,--output", o->output, "FILE.json (Heddle graph) or, for zoo models, FILE.onnx");
  command.option("--seed", o->seed, "random seed (default 1)", 0, INT64_MAX);
  command.option("--ops", o->layered.ops, "layered: number of ops (default 200)", 2, 10'000'000);
  command.option("--layers", o->layered.layers, "layered: number of layers (default 14)", 3, 1'000'000);
  command.option("--deps", o->layered.deps,
                 "layered: number of dependencies (default twice the ops, or all that the layers allow)", 1,
                 100'000'000);
  command.option("--transfer-share", o->layered.transfer_share,
                 "layered: transfer time over the source's time, p (default 0.8)", 0, 1e6);
  command.option("--devices-like", o->devices_like,
                 "random graphs: times for each device class of this cluster file or preset");
  command.option("--spread", o->spread,
                 "layered: random spread of a class's times around its speed (default 0.2)", 0, 0.99);
  command.option("--affinity", o->wired.device_affinity,
                 "er, ws, ba: how unevenly a slower class is slower, 0 to 0.99 (default 0.8)", 0, 0.99);
  command.option("--crossing", o->wired.device_crossing,
                 "er, ws, ba: how far an op's times vary on each class beside that, 0 to 2 (default 0)", 0,
                 2);
  command.option("--batch", o->wired.batch, "er, ws, ba: pictures that tensors hold (default 1)", 1, 1 << 20);
  command.option("--nodes", o->wired.nodes, "er, ws, ba: nodes per module (default 10)", 2, 100'000);
  command.option("--modules", o->wired.modules, "er, ws, ba: modules (default 10)", 1, 100'000);
  command.option("--channels", o->wired.channels, "er, ws, ba: channels (default 1)", 1, 1000);
  command.option("--dependency", o->dependency, "er, ws, ba: sdep or wdep (default sdep)");
  command.list("--param", o->params, "zoo models: key=value, for example batch=8 (repeatable)");
  command.option("--weights", o->weights, "zoo .onnx: none or random (default none)");
  return [o](const Invocation& invocation) { return run_generate(*o, invocation); };
}

}  // namespace heddle::cli
