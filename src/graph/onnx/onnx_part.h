// A part of an ONNX file as a file of its own, with the nodes and weights unchanged.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/status.h"
#include "onnx_file.h"
#include "onnx_writer.h"

namespace heddle::internal {

struct OnnxPart {
  std::vector<bool> nodes, initializers;     // by index in the file's graph: is it kept?
  std::vector<WireMessage> constants;        // further initializers
  std::vector<WireMessage> inputs, outputs;  // ValueInfoProto
};

Result<std::string> write_part(const OnnxContent& content, const OnnxPart& part);

// The file with another graph (GraphProto).
Result<std::string> with_graph(const OnnxContent& content, const WireMessage& graph);

// The fields of a message that have one number, in the order of the file.
Result<std::vector<std::string_view>> fields_of(std::string_view message, uint32_t number);
// The file's GraphProto.
Result<std::string_view> graph_of(std::string_view file);

// Appends the names that the node reads; those of subgraphs' own values are among them.
void add_read_names(const OnnxNode& node, std::vector<std::string_view>& names);

// Field numbers of GraphProto.
struct GraphProtoField {
  static constexpr int kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12;
};

}  // namespace heddle::internal
