// heddle inspect: a model's structure, sizes, FLOPs and cut points.

#include <algorithm>
#include <map>

#include "heddle/base/json.h"
#include "heddle/base/units.h"
#include "heddle/graph/analysis.h"
#include "heddle/graph/submodels.h"
#include "model_flags.h"
#include "verbs.h"

namespace heddle::cli {
namespace {

struct InspectOptions {
  ModelFlags model;
  int64_t top = 10;
};

struct TypeSum {
  int count = 0;
  double flops = 0;
  int64_t param_bytes = 0;
};

Json io_json(const Graph& graph, std::span<const TensorId> tensors) {
  Json list = Json::array();
  for (const auto t : tensors) {
    const auto& tensor = graph.tensor(t);
    list.push_back({{"name", tensor.name},
                    {"dtype", dtype_name(tensor.dtype)},
                    {"shape", tensor.shape},
                    {"bytes", tensor.bytes}});
  }
  return list;
}

std::vector<std::pair<std::string, TypeSum>> sums_by_type(const Graph& graph) {
  std::map<std::string, TypeSum> by_type;
  for (const auto& op : graph.ops()) {
    auto& sum = by_type[op.type];
    ++sum.count;
    sum.flops += op.flops;
    for (const auto p : op.params) sum.param_bytes += graph.param(p).bytes;
  }
  std::vector<std::pair<std::string, TypeSum>> rows(by_type.begin(), by_type.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second.flops != b.second.flops ? a.second.flops > b.second.flops
                                            : a.second.count > b.second.count;
  });
  return rows;
}

void print_io(const char* title, const Graph& graph, std::span<const TensorId> tensors) {
  for (const auto t : tensors) {
    const auto& tensor = graph.tensor(t);
    print("  {:<7} {}  {} {}  {}\n", title, tensor.name, dtype_name(tensor.dtype), shape_text(tensor.shape),
          format_bytes(tensor.bytes));
  }
}

void print_cut_points(const Graph& graph, const std::vector<CutPoint>& points, size_t limit) {
  print("\n{} cut points (every path goes through them){}\n", points.size(),
        points.size() > limit ? "; the smallest:" : ":");
  auto shown = points;
  if (shown.size() > limit) {
    std::stable_sort(shown.begin(), shown.end(),
                     [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    shown.resize(limit);
    std::stable_sort(shown.begin(), shown.end(),
                     [](const auto& a, const auto& b) { return a.flops_before < b.flops_before; });
  }
  if (shown.empty()) return;
  TextTable table({{"after op"}, {"crossing", kRight}, {"FLOPs before", kRight}});
  for (const auto& p : shown)
    table.add_row({graph.op(p.op).name, format_bytes(p.bytes), percent(p.flops_before)});
  print("{}", table.to_string());
}

Result<int> run_inspect(const InspectOptions& o, const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto source, o.model.source());
  HEDDLE_ASSIGN_OR_RETURN(const auto loaded, load_model(source));
  show_notes(loaded, invocation);
  const auto& g = *loaded.graph;
  const auto points = cut_points(g);
  const auto depth_list = levels(g);
  const int depth = depth_list.empty() ? 0 : 1 + *std::max_element(depth_list.begin(), depth_list.end());
  const auto flop_path = longest_paths(
      g, [&](OpId v) { return g.op(v).flops; }, [](const Edge&) { return 0.0; });
  const auto types = sums_by_type(g);
  if (invocation.json) {
    Json cuts = Json::array();
    for (const auto& p : points)
      cuts.push_back({{"op", g.op(p.op).name}, {"bytes", p.bytes}, {"flops_before", p.flops_before}});
    Json type_rows = Json::array();
    for (const auto& [type, sum] : types) {
      type_rows.push_back(
          {{"type", type}, {"count", sum.count}, {"flops", sum.flops}, {"param_bytes", sum.param_bytes}});
    }
    const Json j = {{"model", loaded.name},
                    {"ops", g.num_ops()},
                    {"edges", g.num_edges()},
                    {"tensors", g.num_tensors()},
                    {"depth", depth},
                    {"flops", g.total_flops()},
                    {"param_bytes", g.total_param_bytes()},
                    {"critical_path_flops", flop_path.length},
                    {"inputs", io_json(g, g.inputs())},
                    {"outputs", io_json(g, g.outputs())},
                    {"op_types", type_rows},
                    {"cut_points", cuts}};
    show_json(invocation, j);
    return kExitDone;
  }
  print("{}: {} ops, {} edges, depth {}, {}, parameters {}\n", loaded.name, g.num_ops(), g.num_edges(), depth,
        format_si(g.total_flops(), "FLOP"), format_bytes(g.total_param_bytes()));
  if (flop_path.length > 0) {
    print("  parallelism: FLOPs over those on the heaviest path {:.2f}\n",
          g.total_flops() / flop_path.length);
  }
  print_io("input", g, g.inputs());
  print_io("output", g, g.outputs());
  print("\n");
  TextTable table(
      {{"op type"}, {"ops", kRight}, {"FLOPs", kRight}, {"share", kRight}, {"parameters", kRight}});
  for (size_t i = 0; i < types.size() && i < static_cast<size_t>(o.top); ++i) {
    const auto& [type, sum] = types[i];
    table.add_row({type, std::to_string(sum.count), format_si(sum.flops, "FLOP"),
                   percent(g.total_flops() > 0 ? sum.flops / g.total_flops() : 0),
                   format_bytes(sum.param_bytes)});
  }
  print("{}", table.to_string());
  print_cut_points(g, points, static_cast<size_t>(o.top));
  return kExitDone;
}

}  // namespace

RunFn setup_inspect(Command& command) {
  auto o = std::make_shared<InspectOptions>();
  o->model.declare(command);
  command.option("--top", o->top, "rows per table (default 10)", 1, 100000);
  return [o](const Invocation& invocation) { return run_inspect(*o, invocation); };
}

}  // namespace heddle::cli
