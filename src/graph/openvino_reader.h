// From a file to an ov::Model with static shapes, ready to be taken apart.
#pragma once

#include <memory>
#include <string>
#include <string_view>

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

// Sets dimensions (model_shapes.cc).
Status apply_shapes(const std::shared_ptr<ov::Model>& model, const ImportOptions& options);
// ShapeOf and small constant arithmetic become constants (model_fold.cc). Weights are left alone.
void fold_shapes(const std::shared_ptr<ov::Model>& model);

}  // namespace heddle::internal
