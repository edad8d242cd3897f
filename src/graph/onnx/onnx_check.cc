#include "onnx_check.h"

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "heddle/base/errors.h"
#include "heddle/base/spelling.h"

namespace heddle::internal {
namespace {

using Names = std::unordered_set<std::string_view>;

class Checker {
 public:
  Checker(const OnnxModel& model, std::string folder) : model_(model), files_(std::move(folder)) {}

  Status model();
  const FileSizes& external_files() const { return files_.sizes(); }

 private:
  Status opsets();
  // `outer`: the enclosing scopes; names that this graph takes from them are added to `captured`.
  Status graph(const OnnxGraph& g, std::vector<const Names*>& outer, Names& captured);
  Status tensor(const OnnxTensor& t, const std::string& what);
  Status tensors(const OnnxGraph& g);
  Status values(const OnnxGraph& g);
  Result<Names> define(const OnnxGraph& g, bool inner);
  Status attributes(const OnnxNode& node);
  Status node(const OnnxNode& node);
  Status outputs(const OnnxGraph& g, const Names& names, const std::vector<const Names*>& outer,
                 Names& captured);

  const OnnxModel& model_;
  ExternalFiles files_;
};

Status Checker::opsets() {
  for (const auto& o : model_.opsets)
    if (is_standard_domain(o.domain) && o.version < 1)
      return invalid_input("opset " + std::to_string(o.version) +
                           " of the standard operators does not exist");
  const int64_t opset = model_.standard_opset(), newest = newest_standard_opset();
  if (opset > newest) {
    return unsupported("opset " + std::to_string(opset) + " of the standard operators is newer than " +
                       std::to_string(newest) + ", the newest known; export the model for an older one");
  }
  return {};
}

Status Checker::tensor(const OnnxTensor& t, const std::string& what) {
  HEDDLE_RETURN_IF_ERROR(with_context(check_tensor(t), what));
  return with_context(files_.check(t), what);
}

Status Checker::tensors(const OnnxGraph& g) {
  if (g.sparse_initializers > 0) {
    return unsupported("graph " + quote_text(g.name) +
                       ": sparse initializers are not supported; store them dense");
  }
  for (const auto& t : g.initializers) HEDDLE_RETURN_IF_ERROR(tensor(t, "initializer " + quote_text(t.name)));
  return {};
}

Status check_value(const OnnxValue& v, bool must_be_tensor) {
  if (v.kind == OnnxValue::Kind::kTensor) {
    // Some exporters write -1 for an unknown dimension.
    for (const auto d : v.dims)
      if (d < -1) return invalid_input("dimension " + std::to_string(d) + " is negative");
    Shape known;
    for (const auto d : v.dims)
      if (d > 0) known.push_back(d);
    if (!tensor_bytes(DType::kF64, known)) return invalid_input("its shape is more than fits in memory");
    return v.elem_type == 0 && !must_be_tensor ? Status() : check_element_type(v.elem_type);
  }
  if (!must_be_tensor) return {};
  using Kind = OnnxValue::Kind;
  static const std::map<Kind, std::string> kNames = {{Kind::kSequence, "a sequence"},
                                                     {Kind::kOptional, "an optional value"},
                                                     {Kind::kMap, "a map"},
                                                     {Kind::kSparse, "a sparse tensor"},
                                                     {Kind::kOpaque, "an opaque value"}};
  if (v.kind == Kind::kNone) return invalid_input("it has no type");
  return unsupported("it is " + kNames.at(v.kind) +
                     "; plans move tensors of numbers, so export the model with such tensors at its ends");
}

Status Checker::values(const OnnxGraph& g) {
  const bool whole = &g == &model_.graph;
  const auto check = [](const std::vector<OnnxValue>& list, const char* what, bool must) -> Status {
    for (const auto& v : list)
      HEDDLE_RETURN_IF_ERROR(
          with_context(check_value(v, must), std::string(what) + " " + quote_text(v.name)));
    return {};
  };
  HEDDLE_RETURN_IF_ERROR(check(g.inputs, "input", whole));
  HEDDLE_RETURN_IF_ERROR(check(g.values, "value", false));
  for (const auto& v : g.outputs) {
    // An output's type may be missing; inference then finds it.
    const bool typed = v.kind != OnnxValue::Kind::kNone && v.kind != OnnxValue::Kind::kTensor;
    HEDDLE_RETURN_IF_ERROR(with_context(check_value(v, whole && typed), "output " + quote_text(v.name)));
  }
  return {};
}

// All names that the graph defines. Each has one definition (single assignment), but an initializer may also
// give the default of an input.
Result<Names> Checker::define(const OnnxGraph& g, bool inner) {
  Names names, initializers;
  for (const auto& v : g.inputs) {
    if (v.name.empty()) return invalid_input("an input of graph " + quote_text(g.name) + " has no name");
    if (!names.insert(v.name).second) return invalid_input("two inputs have the name " + quote_text(v.name));
  }
  for (const auto& t : g.initializers) {
    if (t.name.empty())
      return invalid_input("an initializer of graph " + quote_text(g.name) + " has no name");
    if (!initializers.insert(t.name).second)
      return invalid_input("two initializers have the name " + quote_text(t.name));
    names.insert(t.name);
  }
  for (const auto& n : g.nodes) {
    for (const auto& o : n.outputs) {
      if (!o.empty() && !names.insert(o).second)
        return invalid_input(node_text(n) + ": its output " + quote_text(o) + " is defined twice");
    }
  }
  if (!inner && g.nodes.empty() && g.outputs.empty())
    return invalid_input("graph " + quote_text(g.name) + " has no nodes and no outputs");
  return names;
}

bool known(std::string_view name, const Names& names, const std::vector<const Names*>& outer,
           Names& captured) {
  if (names.contains(name)) return true;
  for (const auto* scope : outer) {
    if (!scope->contains(name)) continue;
    captured.insert(name);
    return true;
  }
  return false;
}

Status Checker::attributes(const OnnxNode& n) {
  Names names;
  for (const auto& a : n.attributes) {
    if (!names.insert(a.name).second)
      return invalid_input("attribute " + quote_text(a.name) + " is given twice");
    if (a.sparse)
      return unsupported("attribute " + quote_text(a.name) +
                         ": sparse tensors are not supported; store them dense");
    for (const auto& t : a.tensors)
      HEDDLE_RETURN_IF_ERROR(tensor(t, "attribute " + quote_text(a.name) + ": tensor"));
    // Type 5 is a graph, 4 a tensor: importers trust the type and expect the value to exist.
    if ((a.type == 5 && a.graphs.size() != 1) || (a.type == 4 && a.tensors.size() != 1))
      return invalid_input("attribute " + quote_text(a.name) + " has no value of its type");
  }
  return {};
}

Status Checker::node(const OnnxNode& n) {
  if (n.op_type.empty()) return invalid_input("names no operator");
  HEDDLE_RETURN_IF_ERROR(attributes(n));
  if (!is_standard_domain(n.domain)) return {};
  if (model_.standard_opset() == 0)
    return invalid_input("is a standard operator, but the file imports no opset of them");
  return check_operator(n, model_.standard_opset());
}

// A depth-first search against the edges. The file's order does not matter, because OpenVINO sorts.
Status check_acyclic(const OnnxGraph& g, const std::vector<Names>& captured) {
  std::unordered_map<std::string_view, size_t> producer;
  for (size_t i = 0; i < g.nodes.size(); ++i)
    for (const auto& o : g.nodes[i].outputs)
      if (!o.empty()) producer.emplace(o, i);
  enum State : uint8_t { kNew, kOpen, kDone };
  std::vector<State> state(g.nodes.size(), kNew);
  std::vector<size_t> stack;
  for (size_t i = 0; i < g.nodes.size(); ++i) stack.push_back(i);
  while (!stack.empty()) {
    const size_t at = stack.back();
    if (state[at] != kNew) {
      state[at] = kDone;
      stack.pop_back();
      continue;
    }
    state[at] = kOpen;
    bool cycle = false;
    const auto visit = [&](std::string_view name) {
      const auto it = producer.find(name);
      if (it == producer.end()) return;
      cycle |= state[it->second] == kOpen;
      if (state[it->second] == kNew) stack.push_back(it->second);
    };
    for (const auto& input : g.nodes[at].inputs) visit(input);
    for (const auto& name : captured[at]) visit(name);
    if (cycle)
      return invalid_input(node_text(g.nodes[at]) +
                           ": its output leads back to its input; the graph has a cycle");
  }
  return {};
}

Status Checker::outputs(const OnnxGraph& g, const Names& names, const std::vector<const Names*>& outer,
                        Names& captured) {
  for (const auto& o : g.outputs) {
    if (o.name.empty()) return invalid_input("an output of graph " + quote_text(g.name) + " has no name");
    if (!known(o.name, names, outer, captured))
      return invalid_input("output " + quote_text(o.name) + ": no node, input or initializer provides it");
  }
  return {};
}

Status Checker::graph(const OnnxGraph& g, std::vector<const Names*>& outer, Names& captured) {
  HEDDLE_RETURN_IF_ERROR(tensors(g));
  HEDDLE_RETURN_IF_ERROR(values(g));
  HEDDLE_ASSIGN_OR_RETURN(const Names names, define(g, !outer.empty()));
  std::vector<Names> node_captures(g.nodes.size());
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    const auto& n = g.nodes[i];
    HEDDLE_RETURN_IF_ERROR(with_context(node(n), node_text(n)));
    for (const auto& input : n.inputs) {
      if (!input.empty() && !known(input, names, outer, captured))
        return invalid_input(node_text(n) + ": reads " + quote_text(input) +
                             ", but no node, input or initializer provides it");
    }
    outer.push_back(&names);
    for (const auto& a : n.attributes) {
      for (const auto& inner : a.graphs)
        HEDDLE_RETURN_IF_ERROR(with_context(graph(*inner, outer, node_captures[i]),
                                            node_text(n) + ": attribute " + quote_text(a.name)));
    }
    outer.pop_back();
    // Names that an inner graph takes from further out pass through this one.
    for (const auto& name : node_captures[i])
      if (!names.contains(name)) captured.insert(name);
  }
  HEDDLE_RETURN_IF_ERROR(check_acyclic(g, node_captures));
  return outputs(g, names, outer, captured);
}

Status Checker::model() {
  HEDDLE_RETURN_IF_ERROR(opsets());
  std::vector<const Names*> outer;
  Names captured;
  HEDDLE_RETURN_IF_ERROR(graph(model_.graph, outer, captured));
  if (model_.graph.outputs.empty())
    return invalid_input("graph " + quote_text(model_.graph.name) + " has no outputs");
  return {};
}

}  // namespace

Result<FileSizes> check_onnx(const OnnxModel& model, const std::string& folder) {
  Checker checker(model, folder);
  HEDDLE_RETURN_IF_ERROR(checker.model());
  return checker.external_files();
}

}  // namespace heddle::internal
