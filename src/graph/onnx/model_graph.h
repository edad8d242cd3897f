// Converts an ov::Model to a Graph.
#pragma once

#include <memory>
#include <string>

#include "model_impl.h"

namespace heddle::internal {

// One op per node that does work, one parameter per constant value that such a node reads. `model` must be
// static; its nodes are renamed to the ops' names. Fills `impl`.
Result<std::shared_ptr<const Graph>> make_graph(const std::shared_ptr<ov::Model>& model,
                                                const std::string& name, const OnnxModel* onnx,
                                                Model::Impl& impl);

}  // namespace heddle::internal
