// An ONNX file's structure, read in place: every view points into the file's bytes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/types.h"

namespace heddle::internal {

struct OnnxGraph;

struct OnnxEntry {
  std::string_view key, value;
};

// TensorProto. The typed lists are given by their element counts; the elements stay in the file.
struct OnnxTensor {
  std::string_view name;
  int64_t data_type = 0;
  std::vector<int64_t> dims;
  bool has_raw = false, external = false;
  std::string_view raw;
  std::vector<OnnxEntry> external_data;
  int64_t floats = 0, int32s = 0, strings = 0, int64s = 0, doubles = 0, uint64s = 0;
  std::vector<int64_t> small_int64s;  // values of int64_data if there are few (see kSmallValues)
  int64_t offset = 0;
};
inline constexpr int64_t kSmallValues = 64;

// ValueInfoProto.
struct OnnxValue {
  // Numbered as TypeProto's fields.
  enum class Kind { kNone, kTensor = 1, kSequence = 4, kMap = 5, kOpaque = 7, kSparse = 8, kOptional = 9 };
  std::string_view name;
  Kind kind = Kind::kNone;
  int64_t elem_type = 0;
  bool has_shape = false;
  std::vector<int64_t> dims;                // -1: missing or symbolic
  std::vector<std::string_view> dim_names;  // by dimension; empty: it has none
  int64_t offset = 0;
};

struct OnnxAttribute {
  std::string_view name;
  int64_t type = 0;
  int64_t i = 0;
  std::string_view s;
  std::vector<int64_t> ints;  // the first kSmallValues of them
  int64_t floats = 0, strings = 0;
  bool sparse = false;                             // has sparse tensors
  std::vector<OnnxTensor> tensors;                 // `t` and `tensors`
  std::vector<std::unique_ptr<OnnxGraph>> graphs;  // `g` and `graphs`
};

struct OnnxNode {
  std::string_view name, op_type, domain;
  std::vector<std::string_view> inputs, outputs;
  std::vector<OnnxAttribute> attributes;
  int64_t offset = 0;

  const OnnxAttribute* attribute(std::string_view wanted) const;
};

struct OnnxGraph {
  std::string_view name;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> initializers;
  int64_t sparse_initializers = 0;
  std::vector<OnnxValue> inputs, outputs, values;
};

struct OnnxOpset {
  std::string_view domain;
  int64_t version = 0;
};

struct OnnxModel {
  int64_t ir_version = 0;
  std::vector<OnnxOpset> opsets;
  std::vector<std::string_view> functions;  // names of model-local functions
  OnnxGraph graph;

  // The opset version of the standard operators; 0 when the file imports none.
  int64_t standard_opset() const;
};

// Parses the structure only: wire format, nesting, counts. O(size of the structure); skips tensor data.
Result<OnnxModel> parse_onnx(std::string_view file);

// ImportOptions::values.
using InputValues = std::map<std::string, std::vector<double>>;

// A file's structure with its own functions inlined (onnx_inline.cc) and inputs replaced (onnx_values.cc).
struct OnnxContent {
  OnnxModel model;
  std::unique_ptr<const std::string> rewritten;  // null if the file has no functions and `values` is empty
  std::string_view bytes;                        // which `model` points into: the file's or those rewritten
};
// Fails if a function calls itself, does not fit its calls or grows without measure, or if a value does not fit
// its input. O(size of the result).
Result<OnnxContent> read_onnx(std::string_view file, const InputValues& values);

// The file with the inputs of these names as initializers. `model` is the file's structure.
Result<std::string> with_values(std::string_view file, const OnnxModel& model, const InputValues& values);

// Values of inputs that set sizes, if the shapes that the file declares leave no other: a Reshape to a declared shape,
// a ReduceSum whose input and output have declared ones. Not of inputs with a value in the file. The shapes of the
// model with these values must be compared with the declared ones. O(size of the structure).
InputValues determined_values(const OnnxModel& model);
// What the input is to the first node that reads it: "the scales of node 'resize' (Resize)"; empty if none does.
std::string role_of_input(const OnnxModel& model, std::string_view input);

// An ONNX file without its weights, for imports that leave the weights in the file (onnx_skeleton.cc): the
// same model, with the data (raw_data) of every large initializer replaced by a reference: external data in a
// file called `name` next to the model. The file must be checked and have no external data of its own, whose
// location would be lost. O(size without weights).
Result<std::string> onnx_skeleton(std::string_view file, const std::string& name);

// Of a node without a name that of its first output, else its operator.
std::string node_name(const OnnxNode& node);
// "node 'conv1' (Conv)".
std::string node_text(const OnnxNode& node);
// True for the empty domain and its long name.
bool is_standard_domain(std::string_view domain);

}  // namespace heddle::internal
