// An imported model: its graph, and the OpenVINO model from which any convex set of ops can be cut out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/graph.h"

namespace ov {
class Model;
}

namespace heddle {

class OnnxParts;

struct ImportOptions {
  std::map<std::string, Shape> shapes;  // --shape NAME=1,3,224,224: sets an input's dynamic dimensions
  // --value NAME=2,3: replaces an input of an .onnx file by a constant, so that sizes may follow from it. In the
  // order of the elements; an open dimension of the input is as long as there are values. Part of the plan.
  std::map<std::string, std::vector<double>> values;
  std::optional<int64_t> batch;  // sets the first dimension of every input that has a dynamic one; else 1
  int64_t max_file_bytes = int64_t{8} << 30;
  // A matrix product whose constant matrix has more bytes becomes several products of some columns each, and
  // a concatenation. So it can load and run in pieces. 0: never split.
  int64_t split_bytes = 0;
  // Leaves the weights of an .onnx file where they are, in the mapped file, until they are used: importing a
  // large model takes a fraction of the time and of the memory. The file must not change while the model,
  // what was cut out of it, or what was compiled from that lives; who keeps such parts keeps the model.
  // Weights in other files, and those of other formats, are copied all the same.
  bool map_weights = false;

  // The same at another batch size: given shapes whose first dimension is 1 get it, too.
  ImportOptions at_batch(int64_t size) const;
};

// A segment cut out of a model, to be compiled alone: parameter i is fed with the model's tensor inputs[i],
// result i is outputs[i].
struct SegmentModel {
  std::shared_ptr<ov::Model> model;
  std::vector<TensorId> inputs, outputs;
};

// A model output whose size depends on data. The graph has it in its largest size: the values are in the front
// corner, zeros in the rest. Another output, NAME.shape, holds the true shape (i64).
struct SizedOutput {
  size_t output = 0, shape = 0;  // indices into graph()->outputs()
  Shape open;                    // the output's shape with -1 for the dimensions that vary
};

// An input that takes the value which an output had in the run before. A variable of the file, which keeps a value
// from one run to the next, is one.
struct ModelState {
  std::string input, output;
  std::vector<std::byte> initial;  // the input's first value; empty: zeros
};

// Immutable; safe to share between threads.
class Model {
 public:
  // Reads .onnx and the other formats of OpenVINO's frontends (.xml with its .bin). Input is untrusted: a
  // malformed, truncated, cyclic or hostile file is an error that names the file, the node and the reason.
  // If sizes are the values of inputs, and the shapes that the file declares leave only one value, the import takes
  // it, with a note, as if it were in options.values.
  // Fails, naming the op or input, when an op is unsupported, an input's dimension stays dynamic (the message
  // says which --shape to give) or a model output has a shape that depends on data and no limit.
  static Result<std::shared_ptr<const Model>> load(const std::string& path,
                                                   const ImportOptions& options = {});

  const std::string& path() const { return path_; }
  // Hash of the file's bytes, which plans record. External data files contribute only their sizes.
  uint64_t file_hash() const { return file_hash_; }
  // As given, with a batch size of 1 if the import assumed one.
  const ImportOptions& options() const { return options_; }
  // What the import assumed, a sentence each, for the user.
  const std::vector<std::string>& notes() const { return notes_; }
  // One op per OpenVINO node that does work; constants and constant-folded subgraphs are parameters. Nodes that
  // exchange values without a fixed size are one op of the type Region. Nodes of an .onnx file that OpenVINO does not
  // convert are ops of the type OnnxRegion, which ONNX Runtime computes.
  const std::shared_ptr<const Graph>& graph() const { return graph_; }
  // Model outputs whose size depends on data; the outputs of their shapes follow those of the file.
  const std::vector<SizedOutput>& sized_outputs() const { return sized_outputs_; }
  // The file's variables.
  const std::vector<ModelState>& states() const { return states_; }
  // The model as in the file, before split_bytes was applied, with the outputs of the graph.
  const std::shared_ptr<ov::Model>& whole() const { return whole_; }

  // Cuts out a convex set of ops of graph(). Inputs are placeholders in ascending tensor order; outputs are
  // the tensors that other ops read or that are model outputs. Fails when the set is empty or not convex.
  // O(size of the set).
  Result<SegmentModel> cut(std::span<const OpId> ops) const;
  // Equal for segments that compile to the same program: covers op types, attributes, shapes, dtypes and
  // wiring, but neither names nor weight values. Key of the profile store.
  uint64_t signature(std::span<const OpId> ops) const;

  // The tensor that carries an ONNX value. Also finds values of nodes that the importer dropped (Identity,
  // Dropout), which leave one tensor with several ONNX names. Invalid for constants and for values inside
  // subgraphs.
  TensorId find_onnx_tensor(const std::string& name) const;

  // The model's file, for engines that read ONNX. Read on the first call; O(size of the file). Errors: see
  // OnnxParts::open().
  Result<const OnnxParts*> onnx_parts() const;

  struct Impl;

 private:
  Model();
  // `determined`: of options.values those that declared shapes determine.
  static Result<std::shared_ptr<const Model>> load_unnamed(
      const std::string& path, const ImportOptions& options,
      const std::map<std::string, std::vector<double>>& determined);
  static Result<std::shared_ptr<const Model>> load_determined(const std::string& path,
                                                              const ImportOptions& options,
                                                              const Error& failed);
  std::string path_;
  uint64_t file_hash_ = 0;
  ImportOptions options_;
  std::vector<std::string> notes_;
  std::vector<SizedOutput> sized_outputs_;
  std::vector<ModelState> states_;
  std::shared_ptr<const Graph> graph_;
  std::shared_ptr<ov::Model> whole_;
  std::shared_ptr<const Impl> impl_;
};

// The model's variables, and pairs of an input and an output that begin with zeros. Errors: none of that name, one that
// is there twice, an output of another type or shape than its input, or of a size that depends on data.
Result<std::vector<ModelState>> states_with(const Model& model,
                                            std::span<const std::pair<std::string, std::string>> pairs);

}  // namespace heddle
