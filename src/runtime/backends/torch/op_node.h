// A segment's ops as the kernels see them: types, attributes, shapes and wiring, free of OpenVINO's and
// ATen's headers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/model.h"
#include "heddle/graph/types.h"
#include "heddle/runtime/tensor.h"

namespace heddle::torch_backend {

// Enumerations come by their names, as OpenVINO writes them into its files.
using Attribute = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>>;

// Which numbers the bits of a kF8 or kF4 stand for.
enum class FloatCode : uint8_t { kNone, kE4M3, kE5M2, kE8M0, kE2M1 };

struct ValueType {
  DType dtype = DType::kUndefined;
  Shape shape;
  FloatCode code = FloatCode::kNone;
};

struct SegmentOps;

// How an op's input becomes a body's parameter. Sliced: iteration i gets `part` elements of the axis, from
// start + i * stride on (backwards where the stride is negative). Fed back: after the first iteration it gets
// what the one before made for that result.
struct BodyInput {
  int input = 0, parameter = 0;
  int fed_back = -1;  // a result; -1: the same in all iterations
  bool sliced = false;
  int64_t axis = 0, start = 0, stride = 1, part = 1, end = -1;
};

// How a body's result becomes an op's output: that of the last iteration, or those of all behind each other,
// the last first where the stride is negative.
struct BodyOutput {
  int result = 0, output = 0;
  bool joined = false;
  int64_t axis = 0, stride = 1;
};

// A branch of an If, or what a loop repeats.
struct OpBody {
  std::shared_ptr<const SegmentOps> ops;
  std::vector<BodyInput> inputs;
  std::vector<BodyOutput> outputs;
  int number_parameter = -1;  // gets the number of the iteration
  int condition_result = -1;  // says whether there is another one
};

struct OpNode {
  std::string type;  // OpenVINO's: "Convolution"
  int opset = 0;     // of the op's version: 1 for opset1
  std::string name;  // for messages
  std::map<std::string, Attribute> attributes;
  std::vector<ValueType> inputs, outputs;
  std::vector<bool> wanted;  // by output: somebody reads it
  std::vector<OpBody> bodies;

  // The attribute, or `otherwise` where the op has none of that name and type.
  template <class T>
  T attribute(const std::string& key, T otherwise) const {
    const auto it = attributes.find(key);
    if (it == attributes.end()) return otherwise;
    const T* value = std::get_if<T>(&it->second);
    return value == nullptr ? otherwise : *value;
  }
};

// A node with the numbers of the values that it reads and writes.
struct SegmentNode {
  OpNode op;
  std::vector<int> reads, writes;
};

struct SegmentConstant {
  int value = 0;
  TensorView view;  // only read from
  FloatCode code = FloatCode::kNone;
};

// A segment in topological order. Every value is written once: by a node, an input or a constant.
struct SegmentOps {
  std::vector<SegmentNode> nodes;
  std::vector<SegmentConstant> constants;
  std::vector<int> inputs, outputs;  // values, in the order of SegmentModel's
  std::vector<ValueType> input_types, output_types;
  int num_values = 0;
  std::shared_ptr<const void> memory;  // what the constants' views point into
};

// Fails (unsupported), naming the op, where a tensor is dynamic or of a type without an address per element.
Result<SegmentOps> read_segment(const SegmentModel& segment);

}  // namespace heddle::torch_backend
