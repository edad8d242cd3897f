#include <cmath>
#include <set>

#include "heddle/base/hash.h"
#include "heddle/base/random.h"
#include "heddle/base/units.h"
#include "net.h"
#include "onnx/onnx_writer.h"

namespace heddle::zoo {
namespace {

using namespace internal;

constexpr int64_t kIrVersion = 8, kOpset = 17;
constexpr uint64_t kMaxFileBytes = (uint64_t{1} << 31) - 1;  // protobuf's limit for a message

// Field numbers of onnx.proto.
constexpr int kModelIrVersion = 1, kModelProducer = 2, kModelGraph = 7, kModelOpset = 8;
constexpr int kOpsetDomain = 1, kOpsetVersion = 2;
constexpr int kGraphNode = 1, kGraphName = 2, kGraphInitializer = 5, kGraphInput = 11, kGraphOutput = 12;
constexpr int kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kNodeType = 4, kNodeAttribute = 5;

// The constant that replaces a weight's random values: averages, ones or zeros keep signals at their scale.
float constant_of(const Weight& weight) {
  if (weight.exact || weight.fill == Fill::kAroundZero) return 0;
  return weight.fill == Fill::kAroundOne ? 1.0F : 1.0F / static_cast<float>(weight.fan_in);
}

class FileMaker {
 public:
  FileMaker(const Net& net, const ZooOnnxOptions& options) : net_(net), options_(options) {}

  Result<std::string> make() {
    graph_.text(kGraphName, net_.name());
    add_constants();
    for (const Node& node : net_.nodes()) add_node(node);
    for (const Val v : net_.inputs()) graph_.message(kGraphInput, info(v));
    for (const Val v : net_.outputs()) graph_.message(kGraphOutput, info(v));
    return finish();
  }

 private:
  const Value& value(Val v) const { return net_.values()[static_cast<size_t>(v)]; }
  WireMessage info(Val v) const { return onnx_value_info(value(v).name, value(v).dtype, value(v).shape); }

  void add_constants() {
    for (const Value& v : net_.values()) {
      if (v.kind == ValueKind::kWeight && options_.random_weights)
        drawn_.push_back(&v);
      else if (v.kind == ValueKind::kWeight)
        add_constant_weight(v);
      else if (v.kind == ValueKind::kConstant && v.dtype == DType::kI64)
        graph_.message(kGraphInitializer, onnx_int_tensor(v.name, v.shape, v.ints));
      else if (v.kind == ValueKind::kConstant)
        graph_.message(kGraphInitializer, onnx_float_tensor(v.name, v.dtype, v.shape, v.floats));
    }
  }

  void add_constant_weight(const Value& v) {
    const std::string shape = "shape_" + shape_text(v.shape);
    if (shapes_.insert(shape).second) {
      graph_.message(kGraphInitializer,
                     onnx_int_tensor(shape, {static_cast<int64_t>(v.shape.size())}, v.shape));
    }
    const float number = constant_of(v.weight);
    WireMessage node;
    node.text(kNodeInput, shape);
    node.text(kNodeOutput, v.name);
    node.text(kNodeName, v.name);
    node.text(kNodeType, "ConstantOfShape");
    node.message(kNodeAttribute,
                 onnx_attribute("value", onnx_float_tensor("", v.dtype, {1}, std::span(&number, 1))));
    graph_.message(kGraphNode, node);
  }

  void add_node(const Node& node) {
    WireMessage m;
    for (const Val v : node.inputs) m.text(kNodeInput, value(v).name);
    for (const Val v : node.outputs) m.text(kNodeOutput, value(v).name);
    m.text(kNodeName, node.name);
    m.text(kNodeType, node.onnx_type);
    for (const Attribute& a : node.attributes) {
      m.message(kNodeAttribute,
                std::visit([&](const auto& x) { return onnx_attribute(a.name, x); }, a.value));
    }
    graph_.message(kGraphNode, m);
  }

  // Random weights are written directly into the file's bytes, so that memory holds them only once.
  Result<std::string> finish() {
    uint64_t graph_size = graph_.bytes().size();
    std::vector<uint64_t> sizes;
    for (const Value* v : drawn_) {
      const auto data = static_cast<uint64_t>(tensor_bytes(v->dtype, v->shape).value_or(0));
      sizes.push_back(onnx_tensor_header(v->name, v->dtype, v->shape).bytes().size() + wire_text_size(data));
      graph_size += wire_text_size(sizes.back());
    }
    WireMessage file;
    file.number(kModelIrVersion, kIrVersion);
    file.text(kModelProducer, "heddle");
    WireMessage opset;
    opset.text(kOpsetDomain, "");
    opset.number(kOpsetVersion, kOpset);
    file.message(kModelOpset, opset);
    if (file.bytes().size() + wire_text_size(graph_size) > kMaxFileBytes) {
      return unsupported("with weights, '" + net_.name() + "' would be a file of " +
                         format_bytes(static_cast<int64_t>(graph_size)) +
                         ", beyond the 2 GiB that an ONNX file can have; write it without weights, with "
                         "dtype=f16 or with fewer layers");
    }
    file.reserve(file.bytes().size() + wire_text_size(graph_size));
    file.text_header(kModelGraph, graph_size);
    file.bytes() += graph_.bytes();
    for (size_t i = 0; i < drawn_.size(); ++i) {
      file.text_header(kGraphInitializer, sizes[i]);
      append_drawn(file, *drawn_[i]);
    }
    return std::move(file.bytes());
  }

  void append_drawn(WireMessage& file, const Value& v) const {
    file.bytes() += onnx_tensor_header(v.name, v.dtype, v.shape).bytes();
    const int64_t bytes = tensor_bytes(v.dtype, v.shape).value_or(0), count = bytes * 8 / dtype_bits(v.dtype);
    file.text_header(kOnnxRawData, static_cast<uint64_t>(bytes));
    // Seeded by name: a weight keeps its values when layers are added or removed.
    Random random(Hasher().number(options_.seed).text(v.name).value());
    const double spread =
        std::sqrt(3.0 / static_cast<double>(v.weight.fan_in));  // of standard deviation 1 / sqrt(fan_in)
    for (int64_t i = 0; i < count; ++i) {
      double x = 0;
      if (v.weight.exact)
        x = v.weight.exact(i);
      else if (v.weight.fill == Fill::kUniform)
        x = random.uniform(-spread, spread);
      else if (v.weight.fill == Fill::kAroundOne)
        x = random.uniform(0.5, 1.5);
      else
        x = random.uniform(-0.1, 0.1);
      append_float(file.bytes(), v.dtype, static_cast<float>(x));
    }
  }

  const Net& net_;
  const ZooOnnxOptions& options_;
  WireMessage graph_;
  std::set<std::string> shapes_;
  std::vector<const Value*> drawn_;
};

}  // namespace

Result<std::string> to_onnx(const Net& net, const ZooOnnxOptions& options) {
  return FileMaker(net, options).make();
}

}  // namespace heddle::zoo
