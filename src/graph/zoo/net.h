// A network's description: values and the nodes that produce them, with shapes and arithmetic. The zoo's
// models write it; to_graph.cc and to_onnx.cc read it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/graph/graph.h"
#include "heddle/graph/types.h"
#include "heddle/graph/zoo.h"

namespace heddle::zoo {

// A value: index into Net::values().
using Val = int;

enum class ValueKind {
  kActivation,  // a model input or a node's output
  kWeight,      // a parameter: weights, running statistics, tables
  kConstant,    // a few numbers that belong to a node: shapes, axes, an epsilon
};

// Distribution of a weight's generated values.
enum class Fill {
  kUniform,     // symmetric around 0, standard deviation 1 / sqrt(fan_in)
  kAroundOne,   // scales and variances: uniform in [0.5, 1.5]
  kAroundZero,  // shifts: uniform in [-0.1, 0.1]
};

struct Weight {
  Shape shape;
  Fill fill = Fill::kUniform;
  int64_t fan_in = 1;
  int64_t trained = -1;                      // trained numbers, as publications count; -1: all
  std::function<float(int64_t)> exact = {};  // for untrained tables: value at a flat index
};

struct Value {
  std::string name = {};
  DType dtype = DType::kF32;
  Shape shape = {};
  ValueKind kind = ValueKind::kActivation;
  Weight weight = {};              // kWeight
  std::vector<int64_t> ints = {};  // kConstant of dtype i64
  std::vector<float> floats = {};  // kConstant of the net's float type
};

struct Attribute {
  std::string name;
  std::variant<int64_t, float, std::vector<int64_t>, std::string> value;
};

// What a node does that does not follow from its type and shapes.
struct Work {
  double flops = -1;   // -1: by its type for each element of its output
  int64_t bytes = -1;  // accessed; -1: all inputs, weights and outputs (a gather reads only some rows)
};

struct Node {
  std::string name;       // also its output's name; several outputs: NAME.0, NAME.1, ...
  const char* onnx_type;  // of opset 17
  const char* type;       // OpenVINO's name for it, used in the graph
  std::vector<Val> inputs, outputs;
  std::vector<Attribute> attributes;
  double flops = 0;
  int64_t bytes = -1;  // as Work has them

  // Convolutions and matrix products: half of their operations are multiplications.
  bool is_product() const;
};

struct KernelWindow {
  int64_t kernel_h = 1, kernel_w = 1, stride = 1;
  int64_t top = 0, left = 0, bottom = 0, right = 0;
  int64_t groups = 1;
};
// A square kernel with the same padding on all sides.
KernelWindow window(int64_t kernel, int64_t stride = 1, int64_t pad = 0, int64_t groups = 1);

// Builds the description. The first error is kept in status() and later calls are ignored, so models need not
// check each step. Node names must be unique; GraphBuilder checks.
class Net {
 public:
  Net(std::string name, DType float_type) : name_(std::move(name)), float_type_(float_type) {}

  const std::string& name() const { return name_; }
  DType float_type() const { return float_type_; }
  const std::vector<Value>& values() const { return values_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Val>& inputs() const { return inputs_; }
  const std::vector<Val>& outputs() const { return outputs_; }
  const Shape& shape(Val v) const { return values_[static_cast<size_t>(v)].shape; }
  int64_t dim(Val v, size_t axis) const { return shape(v)[axis]; }
  const Status& status() const { return status_; }

  Val input(const std::string& name, Shape shape) { return input(name, float_type_, std::move(shape)); }
  Val input(const std::string& name, DType dtype, Shape shape);
  void output(Val value) { outputs_.push_back(value); }
  Val weight(const std::string& name, Weight weight);
  Val ints(std::vector<int64_t> values);  // a one-dimensional constant; equal ones are shared
  Val scalar(float value);                // a rank-0 constant of the net's float type; equal ones are shared
  Val index(int64_t value);               // a rank-0 constant of type i64

  // Convolutions and pooling work on N x C x H x W. No bias: see bias().
  Val conv(const std::string& name, Val x, int64_t features, const KernelWindow& w);
  Val bias(const std::string& name, Val x, size_t axis);
  Val batch_norm(const std::string& name, Val x, float epsilon = 1e-5F);
  Val max_pool(const std::string& name, Val x, const KernelWindow& w) { return pool("MaxPool", name, x, w); }
  // ONNX excludes padding from the average by default.
  Val avg_pool(const std::string& name, Val x, const KernelWindow& w) {
    return pool("AveragePool", name, x, w);
  }
  Val unary(const char* onnx_type, const std::string& name, Val x) {
    return add(onnx_type, name, {x}, shape(x));
  }
  Val relu(const std::string& name, Val x) { return unary("Relu", name, x); }
  // Converts integers to the net's float type.
  Val cast(const std::string& name, Val x);
  Val binary(const char* onnx_type, const std::string& name, Val a, Val b);
  Val add(const std::string& name, Val a, Val b) { return binary("Add", name, a, b); }
  Val mul(const std::string& name, Val a, Val b) { return binary("Mul", name, a, b); }
  Val matmul(const std::string& name, Val a, Val b);
  // x times a weight [last dimension of x, features], plus an optional bias.
  Val linear(const std::string& name, Val x, int64_t features, bool with_bias = true);
  Val einsum(const std::string& name, const std::string& equation, Val a, Val b, Shape shape, double macs);
  Val softmax(const std::string& name, Val x, int64_t axis = -1);
  Val reduce_mean(const std::string& name, Val x, std::vector<int64_t> axes, bool keep);
  Val concat(const std::string& name, const std::vector<Val>& parts, size_t axis);
  std::vector<Val> split(const std::string& name, Val x, int64_t parts, size_t axis);
  Val slice(const std::string& name, Val x, size_t axis, int64_t begin, int64_t end);
  Val reshape(const std::string& name, Val x, Shape shape);
  Val transpose(const std::string& name, Val x, std::vector<int64_t> permutation);
  Val gather(const std::string& name, Val table, Val indices, size_t axis = 0);
  Val pad(const std::string& name, Val x, std::vector<int64_t> before, std::vector<int64_t> after);

 private:
  void fail(const std::string& name, const std::string& message);
  Val push(Value value);
  int64_t elements(const Shape& shape) const;  // 0 after an overflow
  // A node with one output, and one with several.
  Val add(const char* onnx_type, const std::string& name, std::vector<Val> inputs, Shape shape,
          std::vector<Attribute> attributes = {}, Work work = {});
  std::vector<Val> add(const char* onnx_type, const std::string& name, std::vector<Val> inputs,
                       const std::vector<Shape>& shapes, std::vector<Attribute> attributes, Work work);
  // Equal constants of a kind are shared.
  Val constant(const std::string& kind, Value value);
  Val pool(const char* onnx_type, const std::string& name, Val x, const KernelWindow& w);

  std::string name_;
  DType float_type_;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<Val> inputs_, outputs_;
  std::map<std::string, std::vector<Val>> constants_;  // by kind
  Status status_;
};

Result<std::shared_ptr<const Graph>> to_graph(const Net& net);
// See write_zoo_onnx().
Result<std::string> write_onnx(const Net& net, const ZooOnnxOptions& options, const std::string& path);

}  // namespace heddle::zoo
