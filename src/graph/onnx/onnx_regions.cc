
#include <algorithm>
#include <openvino/core/model.hpp>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "core/strong_components.h"
#include "heddle/base/content_hash.h"
#include "heddle/base/spelling.h"
#include "onnx_check.h"
#include "onnx_part.h"
#include "onnxruntime/found_values.h"
#include "openvino_reader.h"

namespace heddle::internal {
namespace {

using Views = std::vector<std::string_view>;

Error other_type(const char* what, std::string_view value, int64_t type) {
  const std::string of = type == 0 ? "is no tensor" : "has the type " + element_type_name(type);
  return unsupported(std::string(what) + " " + quote_text(value) + " " + of +
                     ", which no plan can hold; export the model with tensors of numbers there");
}

Shape dims_of(const ov::PartialShape& shape) {
  Shape dims;
  for (const auto& d : shape) dims.push_back(d.is_static() ? d.get_length() : -1);
  return dims;
}

int64_t bytes_of(const OnnxTensor& t) {
  return static_cast<int64_t>(t.raw.size()) + 4 * (t.floats + t.int32s) +
         8 * (t.int64s + t.doubles + t.uint64s);
}

// Of the tensors in the node's attributes and subgraphs.
int64_t bytes_in(const OnnxNode& node) {
  int64_t bytes = 0;
  for (const auto& attribute : node.attributes) {
    for (const auto& tensor : attribute.tensors) bytes += bytes_of(tensor);
    for (const auto& inner : attribute.graphs) {
      for (const auto& tensor : inner->initializers) bytes += bytes_of(tensor);
      for (const auto& n : inner->nodes) bytes += bytes_in(n);
    }
  }
  return bytes;
}

class RegionMaker {
 public:
  RegionMaker(const OnnxContent& content, const ImportOptions& options, std::vector<bool> chosen)
      : content_(content), graph_(content.model.graph), options_(options), chosen_(std::move(chosen)) {}

  Result<OnnxRegions> run() {
    index();
    HEDDLE_RETURN_IF_ERROR(read_inputs());
    do {
      group();
      HEDDLE_RETURN_IF_ERROR(learn());
    } while (unite_nodes_of_other_values());
    for (const auto& value : outputs_seen_)
      if (known_.at(value).by_run) result_.by_run.emplace_back(value);
    HEDDLE_RETURN_IF_ERROR(write_programs());
    HEDDLE_RETURN_IF_ERROR(write_file());
    return std::move(result_);
  }

 private:
  struct Region {
    std::vector<size_t> nodes;  // ascending
    Views inputs, outputs;      // values, each once
  };

  void index() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      for (const auto output : graph_.nodes[i].outputs)
        if (!output.empty()) producers_.emplace(output, i);
    for (size_t i = 0; i < graph_.initializers.size(); ++i)
      initializers_.emplace(graph_.initializers[i].name, i);
    for (const auto& input : graph_.inputs)
      if (!initializers_.contains(input.name)) inputs_.emplace(input.name, inputs_.size());
    for (const auto& output : graph_.outputs) outputs_.insert(output.name);
    reads_.resize(graph_.nodes.size());
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      Views names;
      add_read_names(graph_.nodes[i], names);
      std::unordered_set<std::string_view> seen;
      for (const auto name : names) {
        const bool outer =
            producers_.contains(name) || initializers_.contains(name) || inputs_.contains(name);
        if (!outer || !seen.insert(name).second) continue;
        reads_[i].push_back(name);
        readers_[name].push_back(i);
      }
    }
  }

  // The inputs with the shapes that the options give them.
  Status read_inputs() {
    ov::ParameterVector parameters;
    std::vector<int> types;
    for (const auto& input : graph_.inputs) {
      if (!inputs_.contains(input.name)) continue;
      const auto type = region_type(static_cast<int>(input.elem_type));
      if (input.kind != OnnxValue::Kind::kTensor || type.is_dynamic())
        return other_type("input", input.name, input.elem_type);
      auto shape = ov::PartialShape::dynamic();
      if (input.has_shape) shape = std::vector<ov::Dimension>(input.dims.begin(), input.dims.end());
      parameters.push_back(std::make_shared<ov::op::v0::Parameter>(type, shape));
      parameters.back()->set_friendly_name(std::string(input.name));
      types.push_back(static_cast<int>(input.elem_type));
    }
    const ov::Model model(ov::ResultVector(), parameters, "inputs");
    HEDDLE_ASSIGN_OR_RETURN(const auto shapes, wanted_shapes(model, options_, &content_.model));
    for (size_t i = 0; i < parameters.size(); ++i) {
      const std::string name = parameters[i]->get_friendly_name();
      input_values_.push_back({name, types[i], parameters[i]->get_partial_shape()});
    }
    for (const auto& [i, shape] : shapes.changes) input_values_[i].shape = shape;
    for (const auto& t : graph_.initializers)
      known_[t.name] = {{std::string(t.name), static_cast<int>(t.data_type),
                         std::vector<ov::Dimension>(t.dims.begin(), t.dims.end())},
                        false};
    for (const auto& input : graph_.inputs)
      if (const auto at = inputs_.find(input.name); at != inputs_.end())
        known_[input.name] = {input_values_[at->second], false};
    return {};
  }

  bool is_constant(std::string_view value) const {
    if (initializers_.contains(value)) return true;
    const auto made = producers_.find(value);
    return made != producers_.end() && graph_.nodes[made->second].op_type == "Constant" &&
           is_standard_domain(graph_.nodes[made->second].domain);
  }

  // Groups the chosen nodes; all others are groups of their own. Groups come in topological order.
  void group() {
    std::vector<std::vector<size_t>> next(graph_.nodes.size());
    for (size_t reader = 0; reader < reads_.size(); ++reader) {
      for (const auto value : reads_[reader]) {
        const auto made = producers_.find(value);
        if (made == producers_.end()) continue;
        next[made->second].push_back(reader);
        if (inner_.contains(value)) next[reader].push_back(made->second);
      }
    }
    auto components = StrongComponents(next).found;
    std::reverse(components.begin(), components.end());
    groups_ = std::move(components);
    regions_.clear();
    outputs_seen_.clear();
    for (const auto& nodes : groups_)
      if (chosen_[nodes.front()]) regions_.push_back(border(nodes));
  }

  Region border(const std::vector<size_t>& nodes) {
    Region region{nodes, {}, {}};
    const auto inside = [&](size_t node) { return std::ranges::binary_search(nodes, node); };
    const auto add_inputs = [&](bool constants) {
      std::set<std::string_view> seen;
      for (const size_t node : nodes) {
        for (const auto value : reads_[node]) {
          const auto made = producers_.find(value);
          if (is_constant(value) != constants || (made != producers_.end() && inside(made->second))) continue;
          if (seen.insert(value).second) region.inputs.push_back(value);
        }
      }
    };
    add_inputs(false);
    // OpenVINO runs an op without inputs once, before its memory is laid out.
    if (region.inputs.empty()) add_inputs(true);
    for (const size_t node : nodes) {
      for (const auto value : graph_.nodes[node].outputs) {
        const auto read = readers_.find(value);
        const bool leaves = outputs_.contains(value) ||
                            (read != readers_.end() && !std::ranges::all_of(read->second, inside));
        if (!value.empty() && leaves) region.outputs.push_back(value);
      }
    }
    outputs_seen_.insert(outputs_seen_.end(), region.outputs.begin(), region.outputs.end());
    return region;
  }

  // Types and sizes of the values at the regions' borders.
  Status learn() {
    std::vector<std::string> wanted;
    for (const auto& region : regions_)
      for (const auto* list : {&region.inputs, &region.outputs})
        for (const auto value : *list)
          if (!known_.contains(value) && std::ranges::find(wanted, value) == wanted.end())
            wanted.emplace_back(value);
    if (wanted.empty()) return {};
    OnnxPart part = empty_part();
    std::vector<RegionValue> reached;
    Views left(wanted.begin(), wanted.end());
    std::unordered_set<std::string_view> seen;
    while (!left.empty()) {
      const auto value = left.back();
      left.pop_back();
      if (!seen.insert(value).second) continue;
      if (const auto input = inputs_.find(value); input != inputs_.end()) {
        reached.push_back(input_values_[input->second]);
        part.inputs.push_back(info_of(reached.back()));
      } else if (const auto kept = initializers_.find(value); kept != initializers_.end()) {
        part.initializers[kept->second] = true;
      } else {
        const size_t node = producers_.at(value);
        part.nodes[node] = true;
        left.insert(left.end(), reads_[node].begin(), reads_[node].end());
      }
    }
    for (const auto& value : wanted) part.outputs.push_back(name_only(value));
    HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, write_part(content_, part));
    HEDDLE_ASSIGN_OR_RETURN(auto found, find_values(bytes, reached, wanted));
    for (auto& value : found) known_.emplace(value_named(value.value.name), std::move(value));
    return {};
  }

  // True if a value at a border can be no tensor of the graph: its nodes then form one region.
  bool unite_nodes_of_other_values() {
    bool changed = false;
    for (const auto& region : regions_) {
      for (const auto* list : {&region.inputs, &region.outputs}) {
        for (const auto value : *list) {
          if (fits(value) || outputs_.contains(value) || !producers_.contains(value)) continue;
          changed |= inner_.insert(value).second;
          chosen_[producers_.at(value)] = true;
          for (const size_t reader : readers_[value]) chosen_[reader] = true;
        }
      }
    }
    return changed;
  }

  bool fits(std::string_view value) const {
    const RegionValue& known = known_.at(value).value;
    return region_type(known.type).is_static() && known.shape.rank().is_static();
  }

  Status write_programs() {
    for (const auto& region : regions_) {
      auto program = std::make_shared<RegionProgram>();
      OnnxPart part = empty_part();
      for (const size_t node : region.nodes) {
        part.nodes[node] = true;
        program->nodes.push_back(node_name(graph_.nodes[node]));
        for (const auto value : reads_[node]) {
          if (!is_constant(value) || std::ranges::find(region.inputs, value) != region.inputs.end()) continue;
          if (const auto kept = initializers_.find(value); kept != initializers_.end())
            part.initializers[kept->second] = true;
          else
            part.nodes[producers_.at(value)] = true;
        }
      }
      for (const auto value : region.inputs) {
        program->inputs.push_back(known_.at(value).value);
        // Without a shape: a branch that is never taken may not fit it, and the library then refuses the node.
        part.inputs.push_back(onnx_value_info(value, program->inputs.back().type, nullptr));
      }
      for (const auto value : region.outputs) {
        if (!fits(value)) return other_type("output", value, known_.at(value).value.type);
        program->outputs.push_back(known_.at(value).value);
        part.outputs.push_back(name_only(value));
      }
      HEDDLE_ASSIGN_OR_RETURN(program->bytes, write_part(content_, part));
      program->what = node_text(graph_.nodes[region.nodes.back()]);
      HEDDLE_RETURN_IF_ERROR(check_exact(region, *program));
      program->weight_bytes = weight_bytes(part);
      program->hash = static_cast<int64_t>(content_hash(program->bytes));
      result_.programs.push_back(std::move(program));
    }
    return {};
  }

  // OpenVINO computes in 32 bits. That changes the last digits of most results, but these operators compare numbers or
  // take them apart.
  Status check_exact(const Region& region, const RegionProgram& program) const {
    for (const size_t i : region.nodes) {
      const OnnxNode& node = graph_.nodes[i];
      const bool bits = node.op_type == "BitCast";
      if (!bits && !node.op_type.starts_with("TreeEnsemble") && node.op_type != "LabelEncoder") continue;
      for (const auto* list : {&program.inputs, &program.outputs})
        for (const auto& value : *list)
          if (const auto type = region_type(value.type);
              type == ov::element::f64 || type == ov::element::u64 || type == ov::element::u32 ||
              (bits && type == ov::element::i64))
            return unsupported(node_text(node) + ": needs all digits of " + quote_text(value.name) + " (" +
                               type.get_type_name() +
                               "), but OpenVINO keeps 32 bits; export the model with f32 or i32 there");
    }
    return {};
  }

  int64_t weight_bytes(const OnnxPart& part) const {
    int64_t bytes = 0;
    for (size_t i = 0; i < part.initializers.size(); ++i)
      if (part.initializers[i]) bytes += bytes_of(graph_.initializers[i]);
    for (size_t i = 0; i < part.nodes.size(); ++i)
      if (part.nodes[i]) bytes += bytes_in(graph_.nodes[i]);
    return bytes;
  }

  Status write_file() {
    HEDDLE_ASSIGN_OR_RETURN(const auto graph, graph_of(content_.bytes));
    HEDDLE_ASSIGN_OR_RETURN(const auto nodes, fields_of(graph, GraphProtoField::kNode));
    WireMessage written;
    size_t region = 0;
    for (const auto& group : groups_) {
      if (chosen_[group.front()])
        written.message(GraphProtoField::kNode, node_for(region++));
      else
        written.text(GraphProtoField::kNode, nodes[group.front()]);
    }
    written.text(GraphProtoField::kName, graph_.name);
    HEDDLE_ASSIGN_OR_RETURN(const auto tensors, fields_of(graph, GraphProtoField::kInitializer));
    for (const auto tensor : tensors) written.text(GraphProtoField::kInitializer, tensor);
    HEDDLE_RETURN_IF_ERROR(write_ends(graph, GraphProtoField::kInput, graph_.inputs, written));
    HEDDLE_RETURN_IF_ERROR(write_ends(graph, GraphProtoField::kOutput, graph_.outputs, written));
    HEDDLE_ASSIGN_OR_RETURN(result_.bytes, with_graph(content_, written));
    return {};
  }

  // Inputs or outputs; those of 8-bit types that OpenVINO does not have are bytes.
  Status write_ends(std::string_view graph, int field, const std::vector<OnnxValue>& values,
                    WireMessage& written) const {
    HEDDLE_ASSIGN_OR_RETURN(const auto messages, fields_of(graph, static_cast<uint32_t>(field)));
    for (size_t i = 0; i < messages.size(); ++i) {
      const OnnxValue& value = values[i];
      const int64_t bytes = onnx_type_of(DType::kU8);
      const bool other =
          value.elem_type != bytes && region_type(static_cast<int>(value.elem_type)) == ov::element::u8;
      if (other)
        written.message(field, onnx_value_info(value.name, bytes, value.has_shape ? &value.dims : nullptr));
      else
        written.text(field, messages[i]);
    }
    return {};
  }

  WireMessage node_for(size_t number) const {
    constexpr int kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kNodeOperator = 4;
    const Region& region = regions_[number];
    WireMessage node;
    for (const auto value : region.inputs) node.text(kNodeInput, value);
    for (const auto value : region.outputs) node.text(kNodeOutput, value);
    node.text(kNodeName, node_name(graph_.nodes[region.nodes.back()]));
    node.text(kNodeOperator, kRegionOperator + std::to_string(number));
    return node;
  }

  OnnxPart empty_part() const {
    OnnxPart part;
    part.nodes.resize(graph_.nodes.size());
    part.initializers.resize(graph_.initializers.size());
    return part;
  }

  static WireMessage name_only(std::string_view value) {
    WireMessage info;
    info.text(1, value);
    return info;
  }

  static WireMessage info_of(const RegionValue& value) {
    if (value.shape.rank().is_dynamic()) return onnx_value_info(value.name, value.type, nullptr);
    const Shape dims = dims_of(value.shape);
    return onnx_value_info(value.name, value.type, &dims);
  }

  // The view of the name in the file.
  std::string_view value_named(const std::string& name) const { return producers_.find(name)->first; }

  const OnnxContent& content_;
  const OnnxGraph& graph_;
  const ImportOptions& options_;
  std::vector<bool> chosen_;
  std::unordered_map<std::string_view, size_t> producers_, initializers_, inputs_;
  std::unordered_set<std::string_view> outputs_, inner_;
  std::vector<Views> reads_;  // by node: values of the graph, those that its subgraphs read among them
  std::unordered_map<std::string_view, std::vector<size_t>> readers_;
  std::vector<RegionValue> input_values_;
  std::unordered_map<std::string_view, FoundValue> known_;
  std::vector<std::vector<size_t>> groups_;
  std::vector<Region> regions_;
  Views outputs_seen_;
  OnnxRegions result_;
};

}  // namespace

Result<OnnxRegions> make_regions(const OnnxContent& content, const ImportOptions& options,
                                 std::vector<bool> chosen) {
  return RegionMaker(content, options, std::move(chosen)).run();
}

}  // namespace heddle::internal
