// Cuts segments out of an ONNX file as smaller ONNX files, for engines that read ONNX themselves.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/ids.h"
#include "heddle/base/status.h"

namespace heddle {

class Graph;
class Model;

struct OnnxCut {
  std::string bytes;  // an ONNX file with all the weights that it needs
  struct Input {
    std::string name;  // in the cut
    size_t index = 0;  // of the tensor in `inputs` of OnnxParts::cut(); one tensor may have several names
  };
  std::vector<Input> inputs;
  std::vector<std::string> outputs;  // names in the cut, in the order of `outputs` of OnnxParts::cut()
};

// The file of a model, from which any number of segments can be cut (Model::onnx_parts()). Lives as long as the
// model. Safe to share between threads.
class OnnxParts {
 public:
  // Unsupported if the model is not one .onnx file with its weights inside; invalid input if the file has changed
  // since the model was loaded. O(size of the file).
  static Result<OnnxParts> open(const Model& model);

  // True if the tensor is a value of the file, so that a segment may begin or end there.
  bool has(TensorId tensor) const;

  // Groups of the ops of `graph`, the model's graph, as coarsen() takes them: `group` with the groups united that
  // exchange tensors inside a node of the file. Then no group begins or ends inside a node. The quotient stays
  // acyclic. O(V + E).
  std::vector<int> keep_nodes_whole(const Graph& graph, std::span<const int> group) const;

  // The nodes of the file that compute `outputs` from `inputs`, tensors of the model's graph. Unsupported, with
  // the node's name, if the segment begins or ends inside a node that the importer split into several ops;
  // invalid input if the file has changed. O(size of the structure + size of the cut's weights).
  Result<OnnxCut> cut(std::span<const TensorId> inputs, std::span<const TensorId> outputs) const;

  struct File;

 private:
  explicit OnnxParts(std::shared_ptr<const File> file) : file_(std::move(file)) {}
  std::shared_ptr<const File> file_;
};

}  // namespace heddle
