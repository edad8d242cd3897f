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

struct ValueType {
  DType dtype = DType::kUndefined;
  Shape shape;
};

struct OpNode {
  std::string type;  // OpenVINO's: "Convolution"
  int opset = 0;     // of the op's version: 1 for opset1
  std::string name;  // for messages
  std::map<std::string, Attribute> attributes;
  std::vector<ValueType> inputs, outputs;
  std::vector<bool> wanted;  // by output: somebody reads it

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
};

// A segment in topological order. Every value is written once: by a node, an input or a constant.
struct SegmentOps {
  std::vector<SegmentNode> nodes;
  std::vector<SegmentConstant> constants;
  std::vector<int> inputs, outputs;  // values, in the order of SegmentModel's
  int num_values = 0;
  std::shared_ptr<const void> memory;  // what the constants' views point into
};

// Fails (unsupported), naming the op, where a tensor is dynamic or of a type without an address per element.
Result<SegmentOps> read_segment(const SegmentModel& segment);

}  // namespace heddle::torch_backend
