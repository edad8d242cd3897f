// Reads a file into an ov::Model whose inputs have static shapes.
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
#include "onnxruntime/region_op.h"

namespace heddle::internal {

// Nodes of an ONNX file that OpenVINO does not import become regions that ONNX Runtime computes (onnx_regions.cc).
// Operators of the rewritten file: this text and the region's number.
inline constexpr const char* kRegionOperator = "HeddleRegion";

struct OnnxRegions {
  std::string bytes;  // the file with one node in place of each region
  std::vector<std::shared_ptr<const RegionProgram>> programs;
  std::vector<std::string> by_run;  // values whose sizes runs on sample inputs have shown
};

// Makes regions of the nodes that are `chosen`, by their index in the file. A region has one node, or those that
// exchange values which no tensor of a graph can hold, as sequences and strings. Unsupported if ONNX Runtime cannot run
// them, or such a value is an input or output of the model; the weights must lie in the file.
Result<OnnxRegions> make_regions(const OnnxContent& content, const ImportOptions& options,
                                 std::vector<bool> chosen);

// A variable of the file, as an input and an output of the model.
struct ReadState {
  size_t input = 0, output = 0;    // indices of the model's parameter and result
  std::vector<std::byte> initial;  // before the first run; empty: zeros
};

struct ReadModel {
  std::shared_ptr<ov::Model> model;
  std::vector<std::string> assumed;  // as in InputShapes
  std::vector<SizedOutput> sized;
  std::vector<std::string> by_run;  // as in OnnxRegions
  std::vector<ReadState> states;
};

// What is read: the file `path` or, if not null, `skeleton`: onnx_skeleton() of that file, its inlined form, or the
// file with these regions.
struct ReadSource {
  const std::string& path;
  const OnnxModel* onnx = nullptr;  // the file's structure, null for other formats
  const std::string* skeleton = nullptr;
  std::span<const std::shared_ptr<const RegionProgram>> regions = {};
};

// Why a model was not converted: names of nodes or of their outputs, and operators ("Det"). Both are empty if the
// reason is something else than single nodes.
struct Unconverted {
  std::vector<std::string> nodes, operators;
  bool failed = false;  // the conversion, not the shapes that the options give
};

// Names inputs and outputs, sets the dimensions given by `options`, and folds values that depend on shapes alone. On
// success every type and every input's shape is known, and all shapes that follow from those; errors name the input or
// op. Throws nothing.
Result<ReadModel> read_openvino(const ReadSource& source, const ImportOptions& options,
                                Unconverted& unconverted);

// The same; nodes that OpenVINO does not convert become regions. `content` is null for other formats than ONNX;
// `one_file`: all weights lie in it (read_regions.cc).
Result<ReadModel> read_with_regions(const ReadSource& source, const ImportOptions& options,
                                    const OnnxContent* content, bool one_file);

// The same without setting shapes: the model as in the file. Fails also for models that cannot be converted
// before their shapes are known.
Result<std::shared_ptr<ov::Model>> read_open(const std::string& path, const OnnxModel* onnx,
                                             const std::string* skeleton);

// The useful part of OpenVINO's message, on one line and equal in every run.
std::string openvino_reason(const std::string& what);
// The node that produces the value, or has the name, `name`; also searches subgraphs. Null if there is none,
// or no ONNX file.
const OnnxNode* find_onnx_node(const OnnxModel* onnx, std::string_view name);
// Converts the importer's exception to an error that names nodes.
Error conversion_error(const std::string& what, const OnnxModel* onnx);
// The nodes and operators that the importer's exception names.
Unconverted unconverted_in(const std::string& what);

// The input shapes to set, by input index: those in `options` that differ from the model's (model_shapes.cc).
// A first dimension that stays open is 1. Dimensions to which the file gives the same name are equal, so one
// that is set sets the others. Fails when shapes do not fit or a dimension stays open.
struct InputShapes {
  std::vector<std::pair<size_t, ov::PartialShape>> changes;
  std::vector<std::string> assumed;  // inputs whose first dimension neither the model nor the options give
};
Result<InputShapes> wanted_shapes(const ov::Model& model, const ImportOptions& options,
                                  const OnnxModel* onnx);
// Replaces ShapeOf and small constant arithmetic by constants (model_fold.cc), but no weights. `changed`:
// nodes whose shapes changed since their readers were inferred; what depends on them is inferred again.
void fold_shapes(ov::Model& model, std::span<const ov::Node* const> changed);

// Pads each output whose size depends on data, but has a limit, to that limit, and adds an output with its
// shape (sized_outputs.cc).
std::vector<SizedOutput> size_outputs(ov::Model& model);

// Each variable becomes an input, which stands for its reads, and an output with the value that is assigned
// (model_states.cc). Both are the last ones of the model.
Result<std::vector<ReadState>> states_as_inputs(ov::Model& model);

// Loads the library that reads ONNX. The dynamic linker loads one library at a time, so this lets an import
// start before another thread loads a larger one. Optional.
void load_onnx_frontend();

}  // namespace heddle::internal
