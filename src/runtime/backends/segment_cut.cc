#include "segment_cut.h"

#include <map>
#include <string_view>

namespace heddle {
namespace {

Result<std::vector<int>> match_ports(const Graph& graph, std::span<const TensorId> ports,
                                     std::span<const SegmentTensor> wanted, bool inputs) {
  std::map<std::string_view, int> by_name;
  for (size_t i = 0; i < wanted.size(); ++i) by_name[wanted[i].name] = static_cast<int>(i);
  std::vector<int> match;
  size_t found = 0;
  for (TensorId port : ports) {
    const auto it = by_name.find(graph.tensor(port).name);
    if (it == by_name.end() && inputs) {
      return internal_error("the cut reads tensor '" + graph.tensor(port).name +
                            "', which the plan does not feed");
    }
    match.push_back(it == by_name.end() ? -1 : it->second);
    found += it == by_name.end() ? 0 : 1;
  }
  if (!inputs && found < wanted.size()) {
    return internal_error("the cut makes " + std::to_string(found) + " of the " +
                          std::to_string(wanted.size()) + " tensors that the plan expects of it");
  }
  return match;
}

}  // namespace

Result<SegmentCut> cut_segment(const SegmentSpec& spec, const std::string& device) {
  SegmentCut cut{.model = spec.model, .part = {}, .inputs = {}, .outputs = {}};
  if (!cut.model && spec.read_model) {
    HEDDLE_ASSIGN_OR_RETURN(cut.model, spec.read_model());
  }
  if (!cut.model) {
    return invalid_input("device '" + device +
                         "' runs real models only; this plan's graph has none behind it "
                         "(give the model, or a cluster with emulated devices)");
  }
  HEDDLE_ASSIGN_OR_RETURN(cut.part, cut.model->cut(spec.finest_ops));
  const Graph& graph = *cut.model->graph();
  HEDDLE_ASSIGN_OR_RETURN(cut.inputs, match_ports(graph, cut.part.inputs, spec.inputs, true));
  HEDDLE_ASSIGN_OR_RETURN(cut.outputs, match_ports(graph, cut.part.outputs, spec.outputs, false));
  return cut;
}

}  // namespace heddle
