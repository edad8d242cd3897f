#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "heddle/base/file.h"
#include "heddle/base/hash.h"
#include "heddle/base/random.h"
#include "heddle/base/units.h"
#include "net.h"
#include "onnx/onnx_writer.h"

namespace heddle::zoo {
namespace {

using namespace internal;

constexpr int64_t kIrVersion = 8, kOpset = 17;
constexpr int64_t kPieceElements = int64_t{1} << 20;  // of weights that go to a file of their own
constexpr uint64_t kDataAlignment = 64;               // for vector units that read the mapped file

// Field numbers of onnx.proto.
constexpr int kModelIrVersion = 1, kModelProducer = 2, kModelGraph = 7, kModelOpset = 8;
constexpr int kOpsetDomain = 1, kOpsetVersion = 2;
constexpr int kGraphNode = 1, kGraphName = 2, kGraphInitializer = 5, kGraphInput = 11, kGraphOutput = 12;
constexpr int kTensorExternalData = 13, kTensorDataLocation = 14, kEntryKey = 1, kEntryValue = 2;
constexpr int64_t kExternal = 1;
constexpr int kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kNodeType = 4, kNodeAttribute = 5;

// The constant that replaces a weight's random values: averages, ones or zeros keep signals at their scale.
float constant_of(const Weight& weight) {
  if (weight.exact || weight.fill == Fill::kAroundZero) return 0;
  return weight.fill == Fill::kAroundOne ? 1.0F : 1.0F / static_cast<float>(weight.fan_in);
}

// Draws a weight's values, one after the other. Seeded by name: a weight keeps its values when layers are added or
// removed.
class Drawing {
 public:
  Drawing(const Value& v, uint64_t seed)
      : value_(v),
        random_(Hasher().number(seed).text(v.name).value()),
        // Of standard deviation 1 / sqrt(fan_in).
        spread_(std::sqrt(3.0 / static_cast<double>(v.weight.fan_in))) {}

  void append(std::string& out, int64_t count) {
    for (; count > 0; --count, ++at_) append_float(out, value_.dtype, static_cast<float>(next()));
  }

 private:
  double next() {
    if (value_.weight.exact) return value_.weight.exact(at_);
    if (value_.weight.fill == Fill::kUniform) return random_.uniform(-spread_, spread_);
    if (value_.weight.fill == Fill::kAroundOne) return random_.uniform(0.5, 1.5);
    return random_.uniform(-0.1, 0.1);
  }

  const Value& value_;
  Random random_;
  const double spread_;
  int64_t at_ = 0;
};

class FileMaker {
 public:
  FileMaker(const Net& net, const ZooOnnxOptions& options) : net_(net), options_(options) {}

  Result<std::string> write(const std::string& path) {
    graph_.text(kGraphName, net_.name());
    add_constants();
    for (const Node& node : net_.nodes()) add_node(node);
    for (const Val v : net_.inputs()) graph_.message(kGraphInput, info(v));
    for (const Val v : net_.outputs()) graph_.message(kGraphOutput, info(v));
    if (const auto file = with_weights()) {
      HEDDLE_RETURN_IF_ERROR(write_file_atomic(path, *file));
      return std::string();
    }
    const std::string data = path + ".data";
    refer_to(data);
    WireMessage small = head();
    small.message(kModelGraph, graph_);
    if (small.bytes().size() > options_.most_file_bytes)
      return unsupported("'" + net_.name() + "' without its weights is a file of " +
                         format_bytes(static_cast<int64_t>(small.bytes().size())) +
                         ", more than an ONNX file can have");
    HEDDLE_RETURN_IF_ERROR(write_weights(data));
    HEDDLE_RETURN_IF_ERROR(write_file_atomic(path, small.bytes()));
    return data;
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

  static WireMessage head() {
    WireMessage file;
    file.number(kModelIrVersion, kIrVersion);
    file.text(kModelProducer, "heddle");
    WireMessage opset;
    opset.text(kOpsetDomain, "");
    opset.number(kOpsetVersion, kOpset);
    file.message(kModelOpset, opset);
    return file;
  }

  static uint64_t aligned(uint64_t offset) {
    return (offset + kDataAlignment - 1) / kDataAlignment * kDataAlignment;
  }
  static uint64_t bytes_of(const Value& v) {
    return static_cast<uint64_t>(tensor_bytes(v.dtype, v.shape).value_or(0));
  }

  // Initializers without data, which say where it is in the file beside the model's.
  void refer_to(const std::string& data) {
    const size_t slash = data.rfind('/');
    const std::string location = slash == std::string::npos ? data : data.substr(slash + 1);
    uint64_t offset = 0;
    for (const Value* v : drawn_) {
      WireMessage tensor = onnx_tensor_header(v->name, v->dtype, v->shape);
      for (const auto& [key, value] : {std::pair<std::string_view, std::string>("location", location),
                                       {"offset", std::to_string(offset)},
                                       {"length", std::to_string(bytes_of(*v))}}) {
        WireMessage entry;
        entry.text(kEntryKey, key);
        entry.text(kEntryValue, value);
        tensor.message(kTensorExternalData, entry);
      }
      tensor.number(kTensorDataLocation, kExternal);
      graph_.message(kGraphInitializer, tensor);
      offset = aligned(offset + bytes_of(*v));
    }
  }

  Status write_weights(const std::string& path) const {
    return write_file_atomic(path, [this](const AppendPiece& append) -> Status {
      std::string piece;
      for (const Value* v : drawn_) {
        Drawing drawing(*v, options_.seed);
        const auto all = static_cast<int64_t>(bytes_of(*v)) * 8 / dtype_bits(v->dtype);
        for (int64_t from = 0; from < all; from += kPieceElements) {
          piece.clear();
          drawing.append(piece, std::min(kPieceElements, all - from));
          HEDDLE_RETURN_IF_ERROR(append(piece));
        }
        HEDDLE_RETURN_IF_ERROR(append(std::string(aligned(bytes_of(*v)) - bytes_of(*v), '\0')));
      }
      return {};
    });
  }

  // Random weights are written directly into the file's bytes, so that memory holds them only once. None if they do not
  // fit.
  std::optional<std::string> with_weights() {
    uint64_t graph_size = graph_.bytes().size();
    std::vector<uint64_t> sizes;
    for (const Value* v : drawn_) {
      sizes.push_back(onnx_tensor_header(v->name, v->dtype, v->shape).bytes().size() +
                      wire_text_size(bytes_of(*v)));
      graph_size += wire_text_size(sizes.back());
    }
    WireMessage file = head();
    if (file.bytes().size() + wire_text_size(graph_size) > options_.most_file_bytes) return std::nullopt;
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
    file.text_header(kOnnxRawData, bytes_of(v));
    Drawing(v, options_.seed)
        .append(file.bytes(), static_cast<int64_t>(bytes_of(v)) * 8 / dtype_bits(v.dtype));
  }

  const Net& net_;
  const ZooOnnxOptions& options_;
  WireMessage graph_;
  std::set<std::string> shapes_;
  std::vector<const Value*> drawn_;
};

}  // namespace

Result<std::string> write_onnx(const Net& net, const ZooOnnxOptions& options, const std::string& path) {
  return FileMaker(net, options).write(path);
}

}  // namespace heddle::zoo
