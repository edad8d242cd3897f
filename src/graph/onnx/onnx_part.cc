#include "onnx_part.h"

#include <algorithm>

#include "onnx_wire.h"

namespace heddle::internal {
namespace {

constexpr uint32_t kPartIrVersion = 1, kPartGraph = 7;
// The first version in which an initializer need not be an input too.
constexpr int64_t kLeastIrVersion = 4;

void add_read_names_of(const OnnxGraph& graph, std::vector<std::string_view>& names) {
  for (const OnnxNode& node : graph.nodes) add_read_names(node, names);
  for (const auto& output : graph.outputs) names.push_back(output.name);
}

}  // namespace

void add_read_names(const OnnxNode& node, std::vector<std::string_view>& names) {
  names.insert(names.end(), node.inputs.begin(), node.inputs.end());
  for (const auto& attribute : node.attributes)
    for (const auto& inner : attribute.graphs) add_read_names_of(*inner, names);
}

Result<std::vector<std::string_view>> fields_of(std::string_view message, uint32_t number) {
  std::vector<std::string_view> found;
  HEDDLE_RETURN_IF_ERROR(each_field(message, [&](const WireField& f) -> Status {
    if (f.number == number && f.type == WireField::kBytes) found.push_back(f.bytes);
    return {};
  }));
  return found;
}

Result<std::string_view> graph_of(std::string_view file) {
  HEDDLE_ASSIGN_OR_RETURN(const auto graphs, fields_of(file, kPartGraph));
  if (graphs.empty()) return invalid_input("the file has no graph");
  return graphs.back();
}

Result<std::string> with_graph(const OnnxContent& content, const WireMessage& graph) {
  WireMessage written;
  written.number(kPartIrVersion, std::max(kLeastIrVersion, content.model.ir_version));
  HEDDLE_RETURN_IF_ERROR(each_field(content.bytes, [&](const WireField& f) -> Status {
    if (f.number == kPartGraph)
      written.message(kPartGraph, graph);
    else if (f.number != kPartIrVersion)
      written.bytes() += f.whole;
    return {};
  }));
  return std::move(written.bytes());
}

Result<std::string> write_part(const OnnxContent& content, const OnnxPart& part) {
  HEDDLE_ASSIGN_OR_RETURN(const auto graph, graph_of(content.bytes));
  HEDDLE_ASSIGN_OR_RETURN(const auto nodes, fields_of(graph, GraphProtoField::kNode));
  HEDDLE_ASSIGN_OR_RETURN(const auto tensors, fields_of(graph, GraphProtoField::kInitializer));
  if (nodes.size() != part.nodes.size() || tensors.size() != part.initializers.size())
    return internal_error("the ONNX file was read in two ways");
  WireMessage written;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (part.nodes[i]) written.text(GraphProtoField::kNode, nodes[i]);
  written.text(GraphProtoField::kName, "segment");
  for (size_t i = 0; i < tensors.size(); ++i)
    if (part.initializers[i]) written.text(GraphProtoField::kInitializer, tensors[i]);
  for (const auto& constant : part.constants) written.message(GraphProtoField::kInitializer, constant);
  for (const auto& input : part.inputs) written.message(GraphProtoField::kInput, input);
  for (const auto& output : part.outputs) written.message(GraphProtoField::kOutput, output);
  return with_graph(content, written);
}

}  // namespace heddle::internal
