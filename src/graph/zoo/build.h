// Converts a network's description to a graph or to an ONNX file.
#pragma once

#include <memory>
#include <string>

#include "heddle/graph/zoo.h"
#include "net.h"

namespace heddle::zoo {

Result<std::shared_ptr<const Graph>> to_graph(const Net& net);
// The whole file's bytes.
Result<std::string> to_onnx(const Net& net, const ZooOnnxOptions& options);

}  // namespace heddle::zoo
