// A segment's ops as the kernels see them: types, attributes, shapes and wiring, without OpenVINO's and
// ATen's headers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/model.h"
#include "heddle/graph/types.h"
#include "heddle/runtime/tensor.h"

namespace heddle::torch_backend {

// Enumerations are stored by name, as in OpenVINO's files.
using Attribute = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>>;

// The number format of a kF8 or kF4.
enum class FloatCode : uint8_t { kNone, kE4M3, kE5M2, kE8M0, kE2M1 };

struct ValueType {
  DType dtype = DType::kUndefined;
  Shape shape;
  FloatCode code = FloatCode::kNone;
};

struct SegmentOps;

// How an op's input becomes a body's parameter. Sliced: iteration i gets `part` elements of the axis, from
// start + i * stride on (backwards if the stride is negative). Fed back: after the first iteration it gets
// the previous iteration's result.
struct BodyInput {
  size_t input = 0, parameter = 0;
  std::optional<size_t> fed_back;  // a result; none: the parameter is the same in all iterations
  bool sliced = false;
  int64_t axis = 0, start = 0, stride = 1, part = 1, end = -1;
};

// How a body's result becomes an op's output: the last iteration's value, or all iterations joined along the
// axis, in reverse order if the stride is negative.
struct BodyOutput {
  size_t result = 0, output = 0;
  bool joined = false;
  int64_t axis = 0, stride = 1;
};

// A branch of an If, or a loop's body.
struct OpBody {
  std::shared_ptr<const SegmentOps> ops;
  std::vector<BodyInput> inputs;
  std::vector<BodyOutput> outputs;
  std::optional<size_t> number_parameter;  // gets the iteration's number
  std::optional<size_t> condition_result;  // true: another iteration follows
};

struct OpNode {
  std::string type;  // OpenVINO's: "Convolution"
  int opset = 0;     // number of the op's opset: 1 for opset1
  std::string name;  // for messages
  std::map<std::string, Attribute> attributes;
  std::vector<ValueType> inputs, outputs;
  std::vector<bool> wanted;  // [output] true if anything reads it
  std::vector<OpBody> bodies;

  // The attribute; `otherwise` if the op has none of that name and type.
  template <class T>
  T attribute(const std::string& key, T otherwise) const {
    const auto it = attributes.find(key);
    if (it == attributes.end()) return otherwise;
    const T* value = std::get_if<T>(&it->second);
    return value == nullptr ? otherwise : *value;
  }
};

// A node with the numbers of its input and output values.
struct SegmentNode {
  OpNode op;
  std::vector<int> reads, writes;
};

struct SegmentConstant {
  int value = 0;
  TensorView view;  // read-only
  FloatCode code = FloatCode::kNone;
};

// A segment in topological order. Every value is written once: by a node, an input or a constant.
struct SegmentOps {
  std::vector<SegmentNode> nodes;
  std::vector<SegmentConstant> constants;
  std::vector<int> inputs, outputs;  // values, in SegmentModel's order
  std::vector<ValueType> input_types, output_types;
  int num_values = 0;
  std::shared_ptr<const void> memory;  // owns what the constants' views refer to
};

// Fails (unsupported), naming the op, if a tensor is dynamic or its elements have no addresses of their own.
Result<SegmentOps> read_segment(const SegmentModel& segment);

}  // namespace heddle::torch_backend
