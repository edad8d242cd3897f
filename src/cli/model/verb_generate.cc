// heddle generate: random graphs of the papers and models of the zoo.
#include <algorithm>
#include <cstdio>

#include "heddle/base/file.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/cluster/cluster_yaml.h"
#include "heddle/graph/generators.h"
#include "heddle/graph/graph_json.h"
#include "heddle/graph/zoo.h"
#include "heddle/report/text_table.h"
#include "heddle/session/loaded_model.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

struct GenerateOptions {
  std::string family, output, devices_like, dependency = "sdep", weights = "none";
  int64_t ops = 200, layers = 14, deps = 0, seed = 1;
  double transfer_share = 0.8, spread = 0.2, affinity = 0.8, crossing = 0;
  int64_t nodes = 10, modules = 10, channels = 1, batch = 1;
  std::vector<std::string> params;
  bool list = false;
};

const std::vector<std::string> kRandomFamilies = {"layered", "er", "ws", "ba"};

// Times per device class in proportion to peak rates, slowest devices slowest; the fastest class has
// factor 1.
Result<std::vector<std::pair<std::string, double>>> class_factors(const std::string& name) {
  std::vector<std::pair<std::string, double>> factors;
  if (name.empty()) return factors;
  HEDDLE_ASSIGN_OR_RETURN(const auto cluster, open_cluster(name));
  double fastest = 0;
  for (const auto& d : cluster->devices()) fastest = std::max(fastest, d.peak_flops * d.speed);
  for (const auto& d : cluster->devices()) {
    const bool known =
        std::any_of(factors.begin(), factors.end(), [&](const auto& f) { return f.first == d.device_class; });
    // GivenTime's are divided by the device's speed when they are used: leave it out here.
    if (!known && d.peak_flops > 0) factors.emplace_back(d.device_class, fastest / d.peak_flops);
  }
  return factors;
}

Result<std::shared_ptr<const Graph>> random_graph(const GenerateOptions& o) {
  if (o.family == "layered") {
    LayeredOptions l;
    l.ops = static_cast<int>(o.ops);
    l.layers = static_cast<int>(o.layers);
    l.deps = static_cast<int>(o.deps > 0 ? o.deps : 2 * o.ops);
    l.transfer_share = o.transfer_share;
    l.seed = static_cast<uint64_t>(o.seed);
    HEDDLE_ASSIGN_OR_RETURN(l.device_class_factors, class_factors(o.devices_like));
    l.device_spread = l.device_class_factors.empty() ? 0 : o.spread;
    return generate_layered(l);
  }
  RandomWiredOptions r;
  using Family = RandomWiredOptions::Family;
  r.family = o.family == "er"   ? Family::kErdosRenyi
             : o.family == "ws" ? Family::kWattsStrogatz
                                : Family::kBarabasiAlbert;
  if (o.dependency != "sdep" && o.dependency != "wdep") {
    return Error(Code::kInvalidInput, "--dependency " + o.dependency + ": expected sdep or wdep");
  }
  r.dependency = o.dependency == "sdep" ? RandomWiredOptions::Dependency::kSeries
                                        : RandomWiredOptions::Dependency::kWeak;
  r.nodes = static_cast<int>(o.nodes);
  r.modules = static_cast<int>(o.modules);
  r.channels = static_cast<int>(o.channels);
  r.seed = static_cast<uint64_t>(o.seed);
  HEDDLE_ASSIGN_OR_RETURN(r.device_class_factors, class_factors(o.devices_like));
  r.device_affinity = o.affinity;
  r.device_crossing = o.crossing;
  r.batch = o.batch;
  return generate_random_wired(r);
}

Result<int> list_families(const Invocation& invocation) {
  Json rows = Json::array();
  TextTable table({{"family"}, {"what"}, {"source"}});
  const auto add = [&](const std::string& name, const std::string& what, const std::string& source) {
    rows.push_back({{"name", name}, {"description", what}, {"source", source}});
    table.add_row({name, what, source});
  };
  add("layered", "layered random DAG: --ops --layers --deps --transfer-share", "HIOS, section V");
  add("er", "random wired network, Erdos-Renyi modules: --nodes --modules --channels --dependency",
      "DiviML, section V");
  add("ws", "the same with Watts-Strogatz modules", "DiviML, section V");
  add("ba", "the same with Barabasi-Albert modules", "DiviML, section V");
  for (const auto& entry : zoo_models()) add(entry.name, entry.description, entry.source);
  std::printf("%s", invocation.json ? (rows.dump(1) + "\n").c_str() : table.to_string().c_str());
  return kExitDone;
}

Status generate_zoo(const GenerateOptions& o, std::string& summary) {
  HEDDLE_ASSIGN_OR_RETURN(auto params, parse_zoo_params(o.params));
  if (o.output.ends_with(".onnx")) {
    ZooOnnxOptions options;
    options.seed = static_cast<uint64_t>(o.seed);
    if (o.weights != "none" && o.weights != "random")
      return Error(Code::kInvalidInput, "--weights " + o.weights + ": expected none or random");
    options.random_weights = o.weights == "random";
    HEDDLE_RETURN_IF_ERROR(write_zoo_onnx(o.family, params, o.output, options));
    summary = o.family;
    return {};
  }
  HEDDLE_ASSIGN_OR_RETURN(const auto graph, build_zoo_graph(o.family, params));
  summary = graph->name() + ": " + std::to_string(graph->num_ops()) + " ops, " +
            std::to_string(graph->num_edges()) + " edges, " + format_si(graph->total_flops(), "FLOP") +
            ", parameters " + format_bytes(graph->total_param_bytes());
  return write_file_atomic(o.output,
                           graph_to_json(*graph).dump(1, ' ', false, Json::error_handler_t::replace));
}

Result<int> run_generate(const GenerateOptions& o, const Invocation& invocation) {
  if (o.list) return list_families(invocation);
  auto names = kRandomFamilies;
  for (const auto& entry : zoo_models()) names.push_back(entry.name);
  if (o.family.empty()) return Error(Code::kInvalidInput, "generate needs a family; --list names them");
  if (std::find(names.begin(), names.end(), o.family) == names.end()) {
    return Error(Code::kInvalidInput, "no family is named '" + o.family + "'" +
                                          did_you_mean(o.family, names) + "; --list names them");
  }
  if (o.output.empty())
    return Error(Code::kInvalidInput, "generate needs -o FILE (.json, or .onnx for zoo models)");
  std::string summary;
  const bool random =
      std::find(kRandomFamilies.begin(), kRandomFamilies.end(), o.family) != kRandomFamilies.end();
  if (random) {
    if (!o.params.empty())
      return Error(Code::kInvalidInput, "--param is for zoo models; '" + o.family + "' has flags of its own");
    HEDDLE_ASSIGN_OR_RETURN(const auto graph, random_graph(o));
    HEDDLE_RETURN_IF_ERROR(write_file_atomic(
        o.output, graph_to_json(*graph).dump(1, ' ', false, Json::error_handler_t::replace)));
    summary = graph->name() + ": " + std::to_string(graph->num_ops()) + " ops, " +
              std::to_string(graph->num_edges()) + " edges";
  } else {
    HEDDLE_RETURN_IF_ERROR(generate_zoo(o, summary));
  }
  if (invocation.json) {
    std::printf("%s\n",
                Json{{"family", o.family}, {"summary", summary}, {"output", o.output}}.dump(1).c_str());
  } else {
    std::printf("%s, written to %s\n", summary.c_str(), o.output.c_str());
  }
  return kExitDone;
}

}  // namespace

RunFn setup_generate(Command& command) {
  auto o = std::make_shared<GenerateOptions>();
  command.positional("FAMILY", o->family, "layered, er, ws, ba or a zoo model; --list names all", false);
  command.flag("--list", o->list, "list the families");
  command.option("-o,--output", o->output, "FILE.json (Heddle graph) or, for zoo models, FILE.onnx");
  command.option("--seed", o->seed, "random seed (default 1)", 0, INT64_MAX);
  command.option("--ops", o->ops, "layered: number of ops (default 200)", 2, 10'000'000);
  command.option("--layers", o->layers, "layered: number of layers (default 14)", 3, 1'000'000);
  command.option("--deps", o->deps, "layered: number of dependencies (default twice the ops)", 1,
                 100'000'000);
  command.option("--transfer-share", o->transfer_share,
                 "layered: transfer time over the source's time, p (default 0.8)", 0, 1e6);
  command.option("--devices-like", o->devices_like,
                 "random graphs: times for each device class of this cluster file or preset");
  command.option("--spread", o->spread,
                 "layered: random spread of a class's times around its speed (default 0.2)", 0, 0.99);
  command.option("--affinity", o->affinity,
                 "er, ws, ba: how unevenly a slower class is slower, 0 to 0.99 (default 0.8)", 0, 0.99);
  command.option("--crossing", o->crossing,
                 "er, ws, ba: how far an op's times vary on each class beside that, 0 to 2 (default 0)", 0,
                 2);
  command.option("--batch", o->batch, "er, ws, ba: pictures that tensors hold (default 1)", 1, 1 << 20);
  command.option("--nodes", o->nodes, "er, ws, ba: nodes per module (default 10)", 2, 100'000);
  command.option("--modules", o->modules, "er, ws, ba: modules (default 10)", 1, 100'000);
  command.option("--channels", o->channels, "er, ws, ba: channels (default 1)", 1, 1000);
  command.option("--dependency", o->dependency, "er, ws, ba: sdep or wdep (default sdep)");
  command.list("--param", o->params, "zoo models: key=value, for example batch=8 (repeatable)");
  command.option("--weights", o->weights, "zoo .onnx: none or random (default none)");
  return [o](const Invocation& invocation) { return run_generate(*o, invocation); };
}

}  // namespace heddle::cli
