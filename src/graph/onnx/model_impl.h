// The OpenVINO objects that a Model keeps, and the functions that build it.
#pragma once

#include <memory>
#include <openvino/core/model.hpp>
#include <openvino/core/node.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/model.h"
#include "onnx_file.h"

namespace heddle {

// The nodes behind the graph's ops and the outputs behind its tensors. Not modified after loading.
struct Model::Impl {
  std::vector<std::shared_ptr<ov::Node>> nodes;  // by OpId
  std::vector<ov::Output<ov::Node>> outputs;     // by TensorId
  std::unordered_map<const ov::Node*, OpId> ops;
  std::unordered_map<const ov::Node*, std::vector<TensorId>> tensors;  // by node and port
  std::unordered_map<std::string, TensorId>
      onnx_names;  // every ONNX value name that leads to a tensor of the graph

  // Invalid for constants.
  TensorId tensor_of(const ov::Output<ov::Node>& output) const {
    const auto it = tensors.find(output.get_node());
    return it == tensors.end() ? TensorId() : it->second[output.get_index()];
  }
};

namespace internal {

// kUndefined if there is no equivalent.
DType dtype_of(const ov::element::Type& type);
// Static shapes only.
Shape shape_of(const ov::Output<ov::Node>& output);

// Names of ops and tensors (model_names.cc).
struct ModelNames {
  std::unordered_map<const ov::Node*, std::string> ops;
  std::unordered_map<const ov::Node*, std::vector<std::string>> onnx_nodes;
  std::unordered_map<const ov::Node*, std::vector<std::string>> tensors;  // by port; empty: unnamed
  std::unordered_map<const ov::Node*, std::vector<std::vector<std::string>>>
      aliases;  // by port, all names of the file
};
// `ops`: the nodes that become ops, in topological order.
ModelNames name_model(const ov::Model& model, const std::vector<std::shared_ptr<ov::Node>>& ops,
                      const OnnxModel* onnx);

// Floating-point operations of one execution (model_flops.cc); docs/import.md has the rules.
double node_flops(const ov::Node& node);

}  // namespace internal
}  // namespace heddle
