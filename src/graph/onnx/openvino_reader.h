// From a file to an ov::Model with static shapes, ready to be taken apart.
#pragma once

#include <memory>
#include <openvino/core/partial_shape.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/model.h"
#include "onnx_file.h"

namespace heddle::internal {

// Reads (`path`, or where it is not null `skeleton`, the file's onnx_skeleton()), gives inputs and outputs
// their names, sets the dimensions that `options` give, and folds what depends on shapes alone. `onnx` is the
// file's structure, null for other formats. Every dimension and type is known afterwards, or the error names
// the input or op. No exception leaves it.
Result<std::shared_ptr<ov::Model>> read_openvino(const std::string& path, const ImportOptions& options,
                                                 const OnnxModel* onnx,
                                                 const std::string* skeleton = nullptr);

// The useful part of what OpenVINO says, on one line and without what differs between two runs.
std::string openvino_reason(const std::string& what);
// The node that makes a value or has this name, subgraphs included; null when there is none.
const OnnxNode* find_onnx_node(const OnnxGraph& graph, std::string_view name);
// The importer's exception as an error that names nodes.
Error conversion_error(const std::string& what, const OnnxModel* onnx);

// The shapes of a model's inputs that are to be set, by their places: what `options` give where it differs
// from what the model has (model_shapes.cc). An error where they do not fit, or leave a dimension open.
using InputShapes = std::vector<std::pair<size_t, ov::PartialShape>>;
Result<InputShapes> wanted_shapes(const ov::Model& model, const ImportOptions& options);
// ShapeOf and small constant arithmetic become constants (model_fold.cc). Weights are left alone. `changed`:
// whose shapes are others than when their readers were inferred; what follows from that is inferred again.
void fold_shapes(ov::Model& model, std::span<const ov::Node* const> changed);

// Loads the library that reads ONNX. The linker loads one library at a time: before a larger one is loaded by
// another thread, this lets the import begin. Not needed otherwise.
void load_onnx_frontend();

}  // namespace heddle::internal
