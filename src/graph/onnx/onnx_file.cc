#include "onnx_file.h"

#include <algorithm>
#include <array>
#include <string>

#include "heddle/base/errors.h"
#include "heddle/base/spelling.h"
#include "onnx_wire.h"

namespace heddle::internal {
namespace {

// More than any real model has (the largest public graphs have about 10^5 nodes), and small enough to keep
// the memory of a hostile file within a few GiB.
constexpr int64_t kMaxItems = 4'000'000;
constexpr int kMaxGraphDepth = 16;
constexpr int kMaxTypeDepth = 8;
constexpr size_t kMaxRank = 32;

// Each message is read by a function from one field to a Status; `Parser` holds the shared state.
class Parser {
 public:
  explicit Parser(std::string_view file) : base_(file.data()) {}

  Status model(std::string_view file, OnnxModel& out) {
    bool graph_seen = false;
    const WireField whole{.type = WireField::kBytes, .bytes = file};
    HEDDLE_RETURN_IF_ERROR(each_field(whole, "model", [&](const WireField& f) -> Status {
      switch (f.number) {
        case 1:
          return number(f, out.ir_version);
        case 7:
          HEDDLE_RETURN_IF_ERROR(once(graph_seen, f, "the graph"));
          return graph(f, out.graph, 0);
        case 8:
          return opset(f, out.opsets.emplace_back());
        case 25:
          return function(f, out);
        default:
          return {};
      }
    }));
    if (!graph_seen) return invalid_input("there is no graph in it; is this an ONNX model?");
    return {};
  }

 private:
  template <class Handler>
  Status each_field(const WireField& message, const char* what, Handler handler) {
    std::string_view bytes;
    HEDDLE_RETURN_IF_ERROR(text(message, bytes));
    WireReader reader(bytes, base_);
    while (!reader.done()) {
      HEDDLE_ASSIGN_OR_RETURN(const WireField field, with_context(reader.next(), what));
      HEDDLE_RETURN_IF_ERROR(handler(field));
    }
    return {};
  }

  Status count(const WireField& field) {
    if (++items_ > kMaxItems) {
      return wire_error(field.offset, "the file has more than " + std::to_string(kMaxItems) +
                                          " nodes, names and attributes; Heddle reads at most that many");
    }
    return {};
  }

  // Parsers merge repeated messages in different ways; real writers never produce them, so they are rejected.
  Status once(bool& seen, const WireField& field, const char* what) {
    if (seen) return wire_error(field.offset, std::string(what) + " is given twice");
    seen = true;
    return {};
  }

  Status text(const WireField& field, std::string_view& out) {
    if (field.type != WireField::kBytes)
      return wire_error(field.offset, "a number stands where a text is expected; this is not ONNX");
    out = field.bytes;
    return {};
  }

  Status number(const WireField& field, int64_t& out) {
    if (field.type != WireField::kVarint)
      return wire_error(field.offset, "a number is expected here; this is not ONNX");
    out = static_cast<int64_t>(field.value);
    return {};
  }

  // Appends varints (packed or not) to `out`, up to `limit`; `total` counts all of them.
  Status numbers(const WireField& field, std::vector<int64_t>& out, size_t limit, int64_t& total) {
    if (field.type == WireField::kVarint) {
      ++total;
      if (out.size() < limit) out.push_back(static_cast<int64_t>(field.value));
      return {};
    }
    if (field.type != WireField::kBytes)
      return wire_error(field.offset, "a list of whole numbers is expected here; this is not ONNX");
    WireReader reader(field.bytes, base_);
    while (!reader.done()) {
      HEDDLE_ASSIGN_OR_RETURN(const uint64_t v, reader.varint());
      ++total;
      if (out.size() < limit) out.push_back(static_cast<int64_t>(v));
    }
    return {};
  }

  // A list of floats or doubles, whose elements have a fixed size.
  Status list_size(const WireField& field, size_t element_bytes, int64_t& total) {
    if (field.type == WireField::kBytes) {
      if (field.bytes.size() % element_bytes != 0)
        return wire_error(field.offset, "a list of numbers ends inside one");
      total += static_cast<int64_t>(field.bytes.size() / element_bytes);
    } else if (field.type == (element_bytes == 4 ? WireField::kFixed32 : WireField::kFixed64)) {
      ++total;
    } else {
      return wire_error(field.offset, "a list of numbers is expected here; this is not ONNX");
    }
    return {};
  }

  Status dims(const WireField& field, std::vector<int64_t>& out) {
    int64_t total = static_cast<int64_t>(out.size());
    HEDDLE_RETURN_IF_ERROR(numbers(field, out, kMaxRank + 1, total));
    if (out.size() > kMaxRank)
      return wire_error(field.offset, "a tensor has more than " + std::to_string(kMaxRank) + " dimensions");
    return {};
  }

  Status entry(const WireField& field, OnnxEntry& out) {
    return each_field(field, "key and value", [&](const WireField& f) -> Status {
      if (f.number == 1) return text(f, out.key);
      if (f.number == 2) return text(f, out.value);
      return {};
    });
  }

  Status tensor(const WireField& field, OnnxTensor& out) {
    out.offset = field.offset;
    return each_field(field, "tensor", [&](const WireField& f) -> Status {
      std::vector<int64_t> ignored;
      int64_t location = 0;
      switch (f.number) {
        case 1:
          return dims(f, out.dims);
        case 2:
          return number(f, out.data_type);
        case 4:
          return list_size(f, 4, out.floats);
        case 5:
          return numbers(f, ignored, 0, out.int32s);
        case 6:
          ++out.strings;
          return {};
        case 7:
          return numbers(f, out.small_int64s, kSmallValues, out.int64s);
        case 8:
          return text(f, out.name);
        case 9:
          out.has_raw = true;
          return text(f, out.raw);
        case 10:
          return list_size(f, 8, out.doubles);
        case 11:
          return numbers(f, ignored, 0, out.uint64s);
        case 13:
          HEDDLE_RETURN_IF_ERROR(count(f));
          return entry(f, out.external_data.emplace_back());
        case 14:
          HEDDLE_RETURN_IF_ERROR(number(f, location));
          out.external = location == 1;
          return location == 0 || location == 1
                     ? Status()
                     : wire_error(f.offset, "a tensor has an unknown data location");
        default:
          return {};
      }
    });
  }

  Status shape(const WireField& field, OnnxValue& out) {
    out.has_shape = true;
    return each_field(field, "shape", [&](const WireField& f) -> Status {
      if (f.number != 1) return {};
      int64_t dim = -1;
      std::string_view name;
      HEDDLE_RETURN_IF_ERROR(each_field(f, "dimension", [&](const WireField& d) -> Status {
        return d.number == 1 ? number(d, dim) : d.number == 2 ? text(d, name) : Status();
      }));
      out.dims.push_back(dim);
      out.dim_names.push_back(name);
      if (out.dims.size() > kMaxRank)
        return wire_error(f.offset, "a value has more than " + std::to_string(kMaxRank) + " dimensions");
      return {};
    });
  }

  Status tensor_type(const WireField& field, OnnxValue& out) {
    bool shaped = false;
    return each_field(field, "tensor type", [&](const WireField& f) -> Status {
      if (f.number == 1) return number(f, out.elem_type);
      if (f.number != 2) return {};
      HEDDLE_RETURN_IF_ERROR(once(shaped, f, "a value's shape"));
      return shape(f, out);
    });
  }

  Status type(const WireField& field, OnnxValue& out, int depth) {
    using Kind = OnnxValue::Kind;
    if (depth > kMaxTypeDepth)
      return wire_error(field.offset,
                        "a type is nested more than " + std::to_string(kMaxTypeDepth) + " deep");
    return each_field(field, "type", [&](const WireField& f) -> Status {
      static constexpr std::array kKinds = {Kind::kTensor, Kind::kSequence, Kind::kMap,
                                            Kind::kOpaque, Kind::kSparse,   Kind::kOptional};
      const auto kind = static_cast<Kind>(f.number);
      if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end()) return {};
      if (out.kind != Kind::kNone) return wire_error(f.offset, "a value has two types");
      out.kind = kind;
      if (kind == Kind::kTensor || kind == Kind::kSparse) return tensor_type(f, out);
      if (kind != Kind::kSequence && kind != Kind::kOptional) return {};
      // Inner types are only walked through to check their depth.
      return each_field(f, "type", [&](const WireField& inner) -> Status {
        OnnxValue ignored;
        return inner.number == 1 ? type(inner, ignored, depth + 1) : Status();
      });
    });
  }

  Status value(const WireField& field, OnnxValue& out) {
    out.offset = field.offset;
    bool typed = false;
    HEDDLE_RETURN_IF_ERROR(count(field));
    return each_field(field, "value", [&](const WireField& f) -> Status {
      if (f.number == 1) return text(f, out.name);
      if (f.number != 2) return {};
      HEDDLE_RETURN_IF_ERROR(once(typed, f, "a value's type"));
      return type(f, out, 0);
    });
  }

  Status attribute_part(const WireField& f, OnnxAttribute& out, int depth) {
    int64_t ignored = 0;
    switch (f.number) {
      case 1:
        return text(f, out.name);
      case 3:
        return number(f, out.i);
      case 4:
        return text(f, out.s);
      case 5:
      case 10:
        HEDDLE_RETURN_IF_ERROR(count(f));
        return tensor(f, out.tensors.emplace_back());
      case 6:
      case 11:
        out.graphs.push_back(std::make_unique<OnnxGraph>());
        return graph(f, *out.graphs.back(), depth + 1);
      case 7:
        return list_size(f, 4, out.floats);
      case 8:
        return numbers(f, out.ints, kSmallValues, ignored);
      case 9:
        ++out.strings;
        return {};
      case 20:
        return number(f, out.type);
      case 22:
      case 23:
        out.sparse = true;
        return {};
      default:
        return {};
    }
  }

  Status attribute(const WireField& field, OnnxAttribute& out, int depth) {
    HEDDLE_RETURN_IF_ERROR(count(field));
    bool tensor_seen = false, graph_seen = false;
    return each_field(field, "attribute", [&](const WireField& f) -> Status {
      if (f.number == 5) HEDDLE_RETURN_IF_ERROR(once(tensor_seen, f, "an attribute's tensor"));
      if (f.number == 6) HEDDLE_RETURN_IF_ERROR(once(graph_seen, f, "an attribute's graph"));
      return attribute_part(f, out, depth);
    });
  }

  Status node(const WireField& field, OnnxNode& out, int depth) {
    out.offset = field.offset;
    HEDDLE_RETURN_IF_ERROR(count(field));
    return each_field(field, "node", [&](const WireField& f) -> Status {
      switch (f.number) {
        case 1:
          HEDDLE_RETURN_IF_ERROR(count(f));
          return text(f, out.inputs.emplace_back());
        case 2:
          HEDDLE_RETURN_IF_ERROR(count(f));
          return text(f, out.outputs.emplace_back());
        case 3:
          return text(f, out.name);
        case 4:
          return text(f, out.op_type);
        case 5:
          return attribute(f, out.attributes.emplace_back(), depth);
        case 7:
          return text(f, out.domain);
        default:
          return {};
      }
    });
  }

  Status graph(const WireField& field, OnnxGraph& out, int depth) {
    if (depth > kMaxGraphDepth) {
      return wire_error(field.offset,
                        "subgraphs are nested more than " + std::to_string(kMaxGraphDepth) + " deep");
    }
    return each_field(field, "graph", [&](const WireField& f) -> Status {
      switch (f.number) {
        case 1:
          return node(f, out.nodes.emplace_back(), depth);
        case 2:
          return text(f, out.name);
        case 5:
          HEDDLE_RETURN_IF_ERROR(count(f));
          return tensor(f, out.initializers.emplace_back());
        case 11:
          return value(f, out.inputs.emplace_back());
        case 12:
          return value(f, out.outputs.emplace_back());
        case 13:
          return value(f, out.values.emplace_back());
        case 15:
          ++out.sparse_initializers;
          return {};
        default:
          return {};
      }
    });
  }

  Status opset(const WireField& field, OnnxOpset& out) {
    HEDDLE_RETURN_IF_ERROR(count(field));
    return each_field(field, "opset", [&](const WireField& f) -> Status {
      if (f.number == 1) return text(f, out.domain);
      return f.number == 2 ? number(f, out.version) : Status();
    });
  }

  Status function(const WireField& field, OnnxModel& out) {
    HEDDLE_RETURN_IF_ERROR(count(field));
    auto& name = out.functions.emplace_back();
    return each_field(field, "function",
                      [&](const WireField& f) -> Status { return f.number == 1 ? text(f, name) : Status(); });
  }

  const char* base_;
  int64_t items_ = 0;
};

}  // namespace

Result<OnnxModel> parse_onnx(std::string_view file) {
  if (file.empty()) return invalid_input("the file is empty; an ONNX model is expected");
  OnnxModel model;
  HEDDLE_RETURN_IF_ERROR(Parser(file).model(file, model));
  return model;
}

const OnnxAttribute* OnnxNode::attribute(std::string_view wanted) const {
  for (const auto& a : attributes)
    if (a.name == wanted) return &a;
  return nullptr;
}

bool is_standard_domain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

int64_t OnnxModel::standard_opset() const {
  for (const auto& o : opsets)
    if (is_standard_domain(o.domain)) return o.version;
  return 0;
}

std::string node_name(const OnnxNode& node) {
  std::string_view name = node.name;
  for (const auto& output : node.outputs)
    if (name.empty()) name = output;
  return std::string(name.empty() ? node.op_type : name);
}

std::string node_text(const OnnxNode& node) {
  return "node " + quote_text(node_name(node)) + " (" + std::string(node.op_type.substr(0, 60)) + ")";
}

}  // namespace heddle::internal
