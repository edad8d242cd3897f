// A real model: its graph and the OpenVINO model behind it, from which any convex set of ops is cut out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/graph.h"

namespace ov {
class Model;
}

namespace heddle {

struct ImportOptions {
  std::map<std::string, Shape> shapes;  // --shape NAME=1,3,224,224: sets an input's dynamic dimensions
  std::optional<int64_t> batch;         // sets the first dimension of every input where it is dynamic
  int64_t max_file_bytes = int64_t{8} << 30;
  // Products with a constant matrix of more bytes are imported as several, each with some of its columns, and
  // a concatenation: what is one op in the file can then load and run in pieces. 0: none is.
  int64_t split_bytes = 0;
  // Leaves the weights of an .onnx file where they are, in the mapped file, until they are used: importing a
  // large model takes a fraction of the time and of the memory. The file must not change while the model,
  // what was cut out of it, or what was compiled from that lives; who keeps such parts keeps the model.
  // Weights in other files, and those of other formats, are copied all the same.
  bool map_weights = false;
};

// A segment cut out of a model, to be compiled alone: parameter i is fed with the model's tensor inputs[i],
// result i is outputs[i].
struct SegmentModel {
  std::shared_ptr<ov::Model> model;
  std::vector<TensorId> inputs, outputs;
};

// Immutable; safe to share between threads.
class Model {
 public:
  // .onnx, and what else OpenVINO's frontends read (.xml with its .bin). Untrusted: a malformed, truncated,
  // cyclic or hostile file is an error that names the file, the node and the reason. Fails, naming the op or
  // input, when an op is not supported or a dimension stays dynamic (the message says which --shape to give).
  static Result<std::shared_ptr<const Model>> load(const std::string& path,
                                                   const ImportOptions& options = {});

  const std::string& path() const { return path_; }
  // Hash of the file's bytes: plans remember it. External data files are hashed by size only.
  uint64_t file_hash() const { return file_hash_; }
  const ImportOptions& options() const { return options_; }
  // One op per OpenVINO node that does work; constants (and what is constant-folded) are parameters.
  const std::shared_ptr<const Graph>& graph() const { return graph_; }
  // As the file has it, whatever the options split.
  const std::shared_ptr<ov::Model>& whole() const { return whole_; }

  // Cuts out a convex set of ops of graph(), with placeholder inputs in ascending tensor order and, as
  // outputs, the tensors that ops outside read or that are model outputs. Fails when the set is empty or not
  // convex. O(size of the set).
  Result<SegmentModel> cut(std::span<const OpId> ops) const;
  // Equal for segments that compile to the same program: op types, attributes, shapes, dtypes and wiring, but
  // neither names nor weight values. Key of the profile store.
  uint64_t signature(std::span<const OpId> ops) const;

  // The tensor that carries an ONNX value, also where the importer dropped nodes (Identity, Dropout) and one
  // tensor has several ONNX names. Invalid for constants and for what lies inside subgraphs.
  TensorId find_onnx_tensor(const std::string& name) const;

  struct Impl;

 private:
  Model();
  static Result<std::shared_ptr<const Model>> load_unnamed(const std::string& path,
                                                           const ImportOptions& options);
  std::string path_;
  uint64_t file_hash_ = 0;
  ImportOptions options_;
  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<ov::Model> whole_;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace heddle
