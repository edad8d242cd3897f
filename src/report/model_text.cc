#include "heddle/report/model_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "heddle/base/json.h"
#include "heddle/base/units.h"
#include "heddle/graph/analysis.h"
#include "heddle/graph/submodels.h"
#include "heddle/graph/zoo.h"
#include "heddle/report/text_table.h"

namespace heddle {
namespace {

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

void add_io(const char* title, const Graph& graph, std::span<const TensorId> tensors, std::string& text) {
  for (const auto t : tensors) {
    const auto& tensor = graph.tensor(t);
    text += fmt::format("  {:<7} {}  {} {}  {}\n", title, tensor.name, dtype_name(tensor.dtype),
                        shape_text(tensor.shape), format_bytes(tensor.bytes));
  }
}

std::string cut_points_text(const Graph& graph, const std::vector<CutPoint>& points, size_t limit) {
  std::string text = fmt::format("\n{} cut points (every path goes through them){}\n", points.size(),
                                 points.size() > limit ? "; the smallest:" : ":");
  auto shown = points;
  if (shown.size() > limit) {
    std::stable_sort(shown.begin(), shown.end(),
                     [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    shown.resize(limit);
    std::stable_sort(shown.begin(), shown.end(),
                     [](const auto& a, const auto& b) { return a.flops_before < b.flops_before; });
  }
  if (shown.empty()) return text;
  TextTable table({{"after op"}, {"crossing", kRight}, {"FLOPs before", kRight}});
  for (const auto& p : shown)
    table.add_row({graph.op(p.op).name, format_bytes(p.bytes), percent(p.flops_before)});
  return text + table.to_string();
}

int depth_of(const Graph& g) {
  const auto depths = levels(g);
  return depths.empty() ? 0 : 1 + *std::max_element(depths.begin(), depths.end());
}

// Its FLOPs.
double heaviest_path(const Graph& g) {
  return longest_paths(
             g, [&](OpId v) { return g.op(v).flops; }, [](const Edge&) { return 0.0; })
      .length;
}

}  // namespace

Json model_json(const LoadedModel& loaded) {
  const Graph& g = *loaded.graph;
  Json cuts = Json::array();
  for (const auto& p : cut_points(g))
    cuts.push_back({{"op", g.op(p.op).name}, {"bytes", p.bytes}, {"flops_before", p.flops_before}});
  Json type_rows = Json::array();
  for (const auto& [type, sum] : sums_by_type(g)) {
    type_rows.push_back(
        {{"type", type}, {"count", sum.count}, {"flops", sum.flops}, {"param_bytes", sum.param_bytes}});
  }
  return {{"model", loaded.name},
          {"ops", g.num_ops()},
          {"edges", g.num_edges()},
          {"tensors", g.num_tensors()},
          {"depth", depth_of(g)},
          {"flops", g.total_flops()},
          {"param_bytes", g.total_param_bytes()},
          {"critical_path_flops", heaviest_path(g)},
          {"inputs", io_json(g, g.inputs())},
          {"outputs", io_json(g, g.outputs())},
          {"op_types", type_rows},
          {"cut_points", cuts}};
}

std::string model_text(const LoadedModel& loaded, size_t rows) {
  const Graph& g = *loaded.graph;
  std::string text = fmt::format("{}: {} ops, {} edges, depth {}, {}, parameters {}\n", loaded.name,
                                 g.num_ops(), g.num_edges(), depth_of(g), format_si(g.total_flops(), "FLOP"),
                                 format_bytes(g.total_param_bytes()));
  if (const double path = heaviest_path(g); path > 0) {
    text +=
        fmt::format("  parallelism: FLOPs over those on the heaviest path {:.2f}\n", g.total_flops() / path);
  }
  add_io("input", g, g.inputs(), text);
  add_io("output", g, g.outputs(), text);
  text += '\n';
  const auto types = sums_by_type(g);
  TextTable table(
      {{"op type"}, {"ops", kRight}, {"FLOPs", kRight}, {"share", kRight}, {"parameters", kRight}});
  for (size_t i = 0; i < types.size() && i < rows; ++i) {
    const auto& [type, sum] = types[i];
    table.add_row({type, std::to_string(sum.count), format_si(sum.flops, "FLOP"),
                   percent(g.total_flops() > 0 ? sum.flops / g.total_flops() : 0),
                   format_bytes(sum.param_bytes)});
  }
  text += table.to_string();
  if (types.size() > rows)
    text += fmt::format("and {} more types (--top {})\n", types.size() - rows, types.size());
  return text + cut_points_text(g, cut_points(g), rows);
}

Shown families_shown() {
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
  return {rows, table.to_string()};
}

}  // namespace heddle
