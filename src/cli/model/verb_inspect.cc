// heddle inspect: a model's structure, sizes, FLOPs and cut points.
#include <algorithm>
#include <cstdio>
#include <map>

#include "heddle/base/json.h"
#include "heddle/base/units.h"
#include "heddle/graph/analysis.h"
#include "heddle/report/text_table.h"
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

// An op at which the model can be cut in two so that one tensor set crosses: every path from an input to an
// output goes through it.
struct CutPoint {
  std::string op;
  int64_t bytes = 0;        // of what crosses after it
  double flops_before = 0;  // share of all FLOPs in its ancestors and itself
};

// Ops that dominate a virtual sink: the chain of immediate dominators of the sink.
std::vector<CutPoint> cut_points(const Graph& graph) {
  // An op is on every path iff no edge jumps over it and nothing starts or ends beside it, in topological
  // order: count the paths' open ends by position.
  const auto topo = graph.topological_order();
  const auto n = topo.size();
  const double total = std::max(1.0, graph.total_flops());
  std::vector<CutPoint> points;
  size_t reach = 0;  // furthest position that an op so far feeds
  size_t open_sinks = 0;
  size_t sources_left = 0;
  for (const auto op : topo) sources_left += graph.predecessors(op).empty();
  double flops = 0;
  for (size_t i = 0; i < n; ++i) {
    const auto op = topo[i];
    sources_left -= graph.predecessors(op).empty();
    flops += graph.op(op).flops;
    const bool jumped = reach > i;
    if (!jumped && open_sinks == 0 && sources_left == 0 && !graph.successors(op).empty()) {
      int64_t bytes = 0;
      for (const auto t : graph.op(op).outputs) {
        if (!graph.tensor(t).consumers.empty()) bytes += graph.tensor(t).bytes;
      }
      points.push_back({graph.op(op).name, bytes, flops / total});
    }
    if (graph.successors(op).empty()) ++open_sinks;
    for (const auto next : graph.successors(op)) {
      reach = std::max(reach, static_cast<size_t>(graph.topological_position(next)));
    }
  }
  return points;
}

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
    std::printf("  %-7s %s  %s %s  %s\n", title, tensor.name.c_str(), dtype_name(tensor.dtype),
                shape_text(tensor.shape).c_str(), format_bytes(tensor.bytes).c_str());
  }
}

void print_cut_points(const std::vector<CutPoint>& points, size_t limit) {
  std::printf("\n%zu cut points (every path goes through them)%s\n", points.size(),
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
  TextTable table(
      {{"after op"}, {"crossing", TextTable::Align::kRight}, {"FLOPs before", TextTable::Align::kRight}});
  for (const auto& p : shown) table.add_row({p.op, format_bytes(p.bytes), percent(p.flops_before)});
  std::printf("%s", table.to_string().c_str());
}

Result<int> run_inspect(const InspectOptions& o, const Invocation& invocation) {
  HEDDLE_ASSIGN_OR_RETURN(const auto source, o.model.source());
  HEDDLE_ASSIGN_OR_RETURN(const auto loaded, load_model(source));
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
      cuts.push_back({{"op", p.op}, {"bytes", p.bytes}, {"flops_before", p.flops_before}});
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
    std::printf("%s\n", j.dump(1, ' ', false, Json::error_handler_t::replace).c_str());
    return kExitDone;
  }
  std::printf("%s: %zu ops, %zu edges, depth %d, %s, parameters %s\n", loaded.name.c_str(), g.num_ops(),
              g.num_edges(), depth, format_si(g.total_flops(), "FLOP").c_str(),
              format_bytes(g.total_param_bytes()).c_str());
  if (flop_path.length > 0) {
    std::printf("  parallelism: FLOPs over those on the heaviest path %.2f\n",
                g.total_flops() / flop_path.length);
  }
  print_io("input", g, g.inputs());
  print_io("output", g, g.outputs());
  std::printf("\n");
  TextTable table({{"op type"},
                   {"ops", TextTable::Align::kRight},
                   {"FLOPs", TextTable::Align::kRight},
                   {"share", TextTable::Align::kRight},
                   {"parameters", TextTable::Align::kRight}});
  for (size_t i = 0; i < types.size() && i < static_cast<size_t>(o.top); ++i) {
    const auto& [type, sum] = types[i];
    table.add_row({type, std::to_string(sum.count), format_si(sum.flops, "FLOP"),
                   percent(g.total_flops() > 0 ? sum.flops / g.total_flops() : 0),
                   format_bytes(sum.param_bytes)});
  }
  std::printf("%s", table.to_string().c_str());
  print_cut_points(points, static_cast<size_t>(o.top));
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
