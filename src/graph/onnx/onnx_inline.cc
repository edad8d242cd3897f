// read_onnx(): parses a file and replaces calls of its own functions by their bodies, in protobuf's wire format.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "heddle/base/errors.h"
#include "heddle/base/spelling.h"
#include "model_impl.h"
#include "onnx_check.h"
#include "onnx_file.h"
#include "onnx_wire.h"
#include "onnx_writer.h"

namespace heddle::internal {
namespace {

// Calls within calls. Functions must not call themselves, directly or through others.
constexpr int kMostNestedCalls = 32;
// Small functions that call each other several times grow exponentially: a hostile file must end in an error.
constexpr int64_t kMostInlinedNodes = 2'000'000;
constexpr size_t kMostInlinedBytes = size_t{256}
                                     << 20;  // of what is added: the model's own weights stay as they are
// As in the parser, which sees a function's body only after it is inlined.
constexpr int kMostNestedGraphs = 16;

// Field numbers of onnx.proto.
enum ModelField { kGraph = 7, kOpset = 8, kFunctions = 25 };
enum GraphField { kNode = 1, kInitializer = 5, kGraphInput = 11, kGraphOutput = 12, kValueInfo = 13 };
enum NodeField {
  kInput = 1,
  kOutput = 2,
  kNodeName = 3,
  kOpType = 4,
  kAttribute = 5,
  kDomain = 7,
  kOverload = 8
};
enum AttributeField { kAttributeName = 1, kSubgraph = 6, kSubgraphs = 11, kReference = 21 };
constexpr uint32_t kTensorName = 8, kValueName = 1;

using FunctionKey =
    std::tuple<std::string_view, std::string_view, std::string_view>;  // domain, name, overload

struct Function {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs, nodes;
  std::map<std::string_view, std::string_view> defaults;  // attributes by name
  std::map<std::string_view, int64_t> opsets;
};

// Fields of a node that decide what it calls.
struct Call {
  std::string_view name, op_type, domain, overload;
  std::vector<std::string_view> inputs, outputs, attributes;
};

// The place where a node is copied from: the model's graph, or one call of a function.
struct Frame {
  std::string prefix;  // of the names of a call's values; empty for the model's graph
  int depth = 0;
  const std::map<std::string_view, int64_t>* opsets = nullptr;            // of the function that is called
  std::map<std::string_view, std::string> attributes;                     // of the call, without references
  std::vector<std::unordered_map<std::string_view, std::string>> scopes;  // new names, inner graphs last
  bool renames() const { return depth > 0; }
};

std::string_view plain_domain(std::string_view domain) { return is_standard_domain(domain) ? "" : domain; }

Result<std::pair<std::string_view, int64_t>> read_opset(std::string_view message) {
  std::pair<std::string_view, int64_t> opset;
  HEDDLE_RETURN_IF_ERROR(each_field(message, [&](const WireField& f) -> Status {
    if (f.number == 1) opset.first = plain_domain(f.bytes);
    if (f.number == 2) opset.second = static_cast<int64_t>(f.value);
    return {};
  }));
  return opset;
}

Result<Function> read_function(std::string_view message) {
  Function function;
  HEDDLE_RETURN_IF_ERROR(each_field(message, [&](const WireField& f) -> Status {
    switch (f.number) {
      case 1:
        function.name = f.bytes;
        return {};
      case 4:
        function.inputs.push_back(f.bytes);
        return {};
      case 5:
        function.outputs.push_back(f.bytes);
        return {};
      case 7:
        function.nodes.push_back(f.bytes);
        return {};
      case 9: {
        HEDDLE_ASSIGN_OR_RETURN(const auto opset, read_opset(f.bytes));
        function.opsets.insert(opset);
        return {};
      }
      case 10:
        function.domain = plain_domain(f.bytes);
        return {};
      case 11: {
        HEDDLE_ASSIGN_OR_RETURN(const auto name, text_in(f.bytes, kAttributeName));
        function.defaults[name] = f.bytes;
        return {};
      }
      case 13:
        function.overload = f.bytes;
        return {};
      default:
        return {};
    }
  }));
  return function;
}

Result<Call> read_call(std::string_view node) {
  Call call;
  HEDDLE_RETURN_IF_ERROR(each_field(node, [&](const WireField& f) -> Status {
    if (f.number == kInput) call.inputs.push_back(f.bytes);
    if (f.number == kOutput) call.outputs.push_back(f.bytes);
    if (f.number == kNodeName) call.name = f.bytes;
    if (f.number == kOpType) call.op_type = f.bytes;
    if (f.number == kAttribute) call.attributes.push_back(f.bytes);
    if (f.number == kDomain) call.domain = plain_domain(f.bytes);
    if (f.number == kOverload) call.overload = f.bytes;
    return {};
  }));
  return call;
}

class Inliner {
 public:
  explicit Inliner(const OnnxModel& parsed) : parsed_(parsed) { collect_names(parsed.graph); }

  Result<std::string> run(std::string_view file) {
    for (const auto& opset : parsed_.opsets) opsets_.emplace(plain_domain(opset.domain), opset.version);
    const auto own = opsets_;
    HEDDLE_RETURN_IF_ERROR(each_field(file, [&](const WireField& f) -> Status {
      return f.number == kFunctions ? add_function(f.bytes) : Status();
    }));
    WireMessage model;
    HEDDLE_RETURN_IF_ERROR(each_field(file, [&](const WireField& f) -> Status {
      if (f.number == kFunctions) return {};
      if (f.number != kGraph) {
        model.bytes() += f.whole;
        return {};
      }
      Frame frame;
      HEDDLE_ASSIGN_OR_RETURN(const WireMessage graph, copy_graph(f.bytes, frame));
      model.message(kGraph, graph);
      return {};
    }));
    for (const auto& [domain, version] : opsets_) {
      if (own.contains(domain)) continue;
      WireMessage opset;
      opset.text(1, domain);
      opset.number(2, version);
      model.message(kOpset, opset);
    }
    return std::move(model.bytes());
  }

 private:
  void collect_names(const OnnxGraph& graph) {
    for (const auto& value : graph.inputs) (void)names_.make(std::string(value.name));
    for (const auto& tensor : graph.initializers) (void)names_.make(std::string(tensor.name));
    for (const auto& node : graph.nodes) {
      for (const auto& output : node.outputs) (void)names_.make(std::string(output));
      for (const auto& attribute : node.attributes)
        for (const auto& inner : attribute.graphs) collect_names(*inner);
    }
  }

  Status add_function(std::string_view message) {
    HEDDLE_ASSIGN_OR_RETURN(auto function, with_context(read_function(message), "a function"));
    const FunctionKey key{function.domain, function.name, function.overload};
    const std::string text = quote_text(function.name);
    if (!functions_.emplace(key, std::move(function)).second)
      return invalid_input("function " + text + " is defined twice");
    return {};
  }

  Error too_large() const {
    return invalid_input("its functions make more than " + std::to_string(kMostInlinedNodes) +
                         " nodes or 256 MiB when they are inlined; export the model without functions");
  }

  // Called before so much is added.
  Status grow(size_t bytes) {
    bytes_ += bytes;
    if (bytes_ > kMostInlinedBytes) return too_large();
    return {};
  }

  std::string unique(const std::string& wanted) {
    bytes_ += wanted.size();
    return names_.make(wanted);
  }

  std::string renamed(std::string_view name, const Frame& frame) const {
    if (!frame.renames() || name.empty()) return std::string(name);
    for (auto scope = frame.scopes.rbegin(); scope != frame.scopes.rend(); ++scope)
      if (const auto it = scope->find(name); it != scope->end()) return it->second;
    return frame.prefix + std::string(name);  // nothing defines it, which the check of the result reports
  }

  void define(std::string_view name, Frame& frame) {
    if (!name.empty() && !frame.scopes.back().contains(name))
      frame.scopes.back()[name] = unique(frame.prefix + std::string(name));
  }

  Status define_outputs(std::string_view node, Frame& frame) {
    return each_field(node, [&](const WireField& f) -> Status {
      if (f.number == kOutput) define(f.bytes, frame);
      return {};
    });
  }

  // The name in the field, under its new name.
  Status add_name(const WireField& field, const Frame& frame, WireMessage& copy) {
    const std::string name = renamed(field.bytes, frame);
    if (frame.renames()) HEDDLE_RETURN_IF_ERROR(grow(name.size()));
    copy.text(static_cast<int>(field.number), name);
    return {};
  }

  // A message whose name is in the field `number`, under its new name.
  Result<WireMessage> copy_named(std::string_view message, uint32_t number, const Frame& frame) {
    WireMessage copy;
    HEDDLE_RETURN_IF_ERROR(each_field(message, [&](const WireField& f) -> Status {
      if (f.number == number) return add_name(f, frame, copy);
      copy.bytes() += f.whole;
      return {};
    }));
    return copy;
  }

  Result<WireMessage> copy_graph(std::string_view message, Frame& frame) {
    if (nested_graphs_ > kMostNestedGraphs)
      return invalid_input("subgraphs are nested more than " + std::to_string(kMostNestedGraphs) + " deep");
    ++nested_graphs_;
    if (frame.renames()) {
      frame.scopes.emplace_back();
      HEDDLE_RETURN_IF_ERROR(each_field(message, [&](const WireField& f) -> Status {
        if (f.number == kNode) return define_outputs(f.bytes, frame);
        if (f.number != kInitializer && f.number != kGraphInput) return {};
        HEDDLE_ASSIGN_OR_RETURN(const auto name,
                                text_in(f.bytes, f.number == kInitializer ? kTensorName : kValueName));
        define(name, frame);
        return {};
      }));
    }
    WireMessage copy;
    HEDDLE_RETURN_IF_ERROR(each_field(message, [&](const WireField& f) -> Status {
      if (f.number == kNode) return copy_node(f.bytes, frame, copy);
      if (frame.renames()) HEDDLE_RETURN_IF_ERROR(grow(f.whole.size()));
      const bool named = f.number == kInitializer || f.number == kGraphInput || f.number == kGraphOutput ||
                         f.number == kValueInfo;
      if (!frame.renames() || !named) {
        copy.bytes() += f.whole;
        return {};
      }
      HEDDLE_ASSIGN_OR_RETURN(
          const auto part, copy_named(f.bytes, f.number == kInitializer ? kTensorName : kValueName, frame));
      copy.message(static_cast<int>(f.number), part);
      return {};
    }));
    if (frame.renames()) frame.scopes.pop_back();
    --nested_graphs_;
    return copy;
  }

  // An attribute without references; nothing if it refers to one that the call leaves out.
  Result<std::optional<std::string>> copy_attribute(std::string_view message, Frame& frame) {
    HEDDLE_ASSIGN_OR_RETURN(const auto reference, text_in(message, kReference));
    WireMessage copy;
    if (!reference.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(const auto name, text_in(message, kAttributeName));
      const auto given = frame.attributes.find(reference);
      if (given == frame.attributes.end()) return std::optional<std::string>();
      HEDDLE_RETURN_IF_ERROR(grow(given->second.size()));
      HEDDLE_RETURN_IF_ERROR(each_field(given->second, [&](const WireField& f) -> Status {
        if (f.number != kAttributeName) copy.bytes() += f.whole;
        return {};
      }));
      copy.text(kAttributeName, name);
      return std::optional(std::move(copy.bytes()));
    }
    HEDDLE_RETURN_IF_ERROR(each_field(message, [&](const WireField& f) -> Status {
      if (f.number != kSubgraph && f.number != kSubgraphs) {
        copy.bytes() += f.whole;
        return {};
      }
      HEDDLE_ASSIGN_OR_RETURN(const auto graph, copy_graph(f.bytes, frame));
      copy.message(static_cast<int>(f.number), graph);
      return {};
    }));
    return std::optional(std::move(copy.bytes()));
  }

  // Appends the node, or the body of the function that it calls, to `graph`.
  Status copy_node(std::string_view message, Frame& frame, WireMessage& graph) {
    if (frame.renames()) HEDDLE_RETURN_IF_ERROR(grow(message.size()));
    if (++nodes_ > kMostInlinedNodes || bytes_ > kMostInlinedBytes) return too_large();
    HEDDLE_ASSIGN_OR_RETURN(const Call call, read_call(message));
    const auto function = functions_.find({call.domain, call.op_type, call.overload});
    if (function != functions_.end()) {
      const Status done = inline_call(call, function->second, frame, graph);
      return frame.renames() ? done : with_context(done, "function " + quote_text(call.op_type));
    }
    HEDDLE_RETURN_IF_ERROR(check_opset(call, frame));
    WireMessage node;
    HEDDLE_RETURN_IF_ERROR(each_field(message, [&](const WireField& f) -> Status {
      if (f.number == kInput || f.number == kOutput) {
        return add_name(f, frame, node);
      } else if (f.number == kNodeName) {
        HEDDLE_RETURN_IF_ERROR(grow(frame.prefix.size()));
        node.text(kNodeName, frame.prefix + std::string(f.bytes));
      } else if (f.number == kAttribute) {
        HEDDLE_ASSIGN_OR_RETURN(const auto attribute, copy_attribute(f.bytes, frame));
        if (attribute) node.text(kAttribute, *attribute);
      } else {
        node.bytes() += f.whole;
      }
      return {};
    }));
    graph.message(kNode, node);
    return {};
  }

  Status inline_call(const Call& call, const Function& function, Frame& caller, WireMessage& graph) {
    if (caller.depth >= kMostNestedCalls)
      return invalid_input("calls are nested more than " + std::to_string(kMostNestedCalls) +
                           " deep; does it call itself?");
    if (call.inputs.size() > function.inputs.size() || call.outputs.size() > function.outputs.size())
      return invalid_input("a call has " + std::to_string(call.inputs.size()) + " inputs and " +
                           std::to_string(call.outputs.size()) + " outputs, but the function has " +
                           std::to_string(function.inputs.size()) + " and " +
                           std::to_string(function.outputs.size()));
    Frame frame;
    frame.opsets = &function.opsets;
    frame.depth = caller.depth + 1;
    const auto output = std::ranges::find_if(call.outputs, [](const auto& name) { return !name.empty(); });
    const std::string label(!call.name.empty()             ? call.name
                            : output != call.outputs.end() ? *output
                                                           : call.op_type);
    frame.prefix = unique(caller.prefix + label) + "/";
    for (const auto& [name, value] : function.defaults) frame.attributes.emplace(name, value);
    for (const auto& attribute : call.attributes) {
      HEDDLE_ASSIGN_OR_RETURN(const auto name, text_in(attribute, kAttributeName));
      HEDDLE_ASSIGN_OR_RETURN(auto value, copy_attribute(attribute, caller));
      if (value) frame.attributes.insert_or_assign(name, std::move(*value));
    }
    HEDDLE_RETURN_IF_ERROR(bind_values(call, function, caller, frame, graph));
    for (const auto& node : function.nodes) HEDDLE_RETURN_IF_ERROR(define_outputs(node, frame));
    for (const auto& node : function.nodes) HEDDLE_RETURN_IF_ERROR(copy_node(node, frame, graph));
    return {};
  }

  // The function's inputs and outputs are the caller's values.
  Status bind_values(const Call& call, const Function& function, const Frame& caller, Frame& frame,
                     WireMessage& graph) {
    auto& values = frame.scopes.emplace_back();
    for (size_t i = 0; i < function.inputs.size(); ++i)
      values[function.inputs[i]] = i < call.inputs.size() ? renamed(call.inputs[i], caller) : std::string();
    for (size_t i = 0; i < function.outputs.size(); ++i) {
      const std::string given = i < call.outputs.size() ? renamed(call.outputs[i], caller) : std::string();
      if (given.empty()) continue;
      if (const auto known = values.find(function.outputs[i]); known != values.end()) {
        // An input that is handed through, or an output listed twice.
        HEDDLE_RETURN_IF_ERROR(grow(known->second.size() + given.size()));
        WireMessage identity;
        identity.text(kInput, known->second);
        identity.text(kOutput, given);
        identity.text(kOpType, "Identity");
        graph.message(kNode, identity);
      } else {
        values[function.outputs[i]] = given;
      }
    }
    return {};
  }

  // A function has opsets of its own, the result has one of each domain: a node must mean the same in both.
  Status check_opset(const Call& call, const Frame& frame) {
    if (!frame.renames()) return {};
    const auto wanted = frame.opsets->find(call.domain);
    if (wanted == frame.opsets->end()) return {};
    const int64_t version = opsets_.emplace(call.domain, wanted->second).first->second;
    if (version == wanted->second) return {};
    if (call.domain.empty() && same_operator(call.op_type, version, wanted->second)) return {};
    return unsupported("it uses " + quote_text(call.op_type) + " of opset " + std::to_string(wanted->second) +
                       ", but the model has opset " + std::to_string(version) +
                       ", where that operator differs; export the model for one opset");
  }

  const OnnxModel& parsed_;
  std::map<FunctionKey, Function> functions_;
  UniqueNames names_;
  std::map<std::string_view, int64_t> opsets_;  // of the result, by domain
  int64_t nodes_ = 0;
  int nested_graphs_ = 0;
  size_t bytes_ = 0;  // of what was added
};

}  // namespace

Result<OnnxContent> read_onnx(std::string_view file, const InputValues& values) {
  OnnxContent content;
  content.bytes = file;
  HEDDLE_ASSIGN_OR_RETURN(content.model, parse_onnx(file));
  const auto replace = [&content](Result<std::string> bytes) -> Status {
    if (!bytes) return bytes.error();
    content.rewritten = std::make_unique<const std::string>(std::move(*bytes));
    content.bytes = *content.rewritten;
    HEDDLE_ASSIGN_OR_RETURN(content.model, parse_onnx(content.bytes));
    return {};
  };
  if (!content.model.functions.empty()) HEDDLE_RETURN_IF_ERROR(replace(Inliner(content.model).run(file)));
  if (!values.empty()) HEDDLE_RETURN_IF_ERROR(replace(with_values(content.bytes, content.model, values)));
  return content;
}

}  // namespace heddle::internal
