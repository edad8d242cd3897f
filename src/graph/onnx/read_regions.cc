// Reads a model by OpenVINO, with regions for the nodes that it does not convert.
#include <algorithm>
#include <optional>

#include "onnx_check.h"
#include "openvino_reader.h"

namespace heddle::internal {
namespace {

// Each conversion names at least one more node; after these, all of the operators that were named are taken.
constexpr int kRoundsByNode = 4;

bool has_node(const OnnxGraph& graph, const std::string& name);

// The node, or one in its subgraphs, has this name or makes a value of this name.
bool is_or_has(const OnnxNode& node, const std::string& name) {
  if (node.name == name || std::ranges::find(node.outputs, name) != node.outputs.end()) return true;
  return std::ranges::any_of(node.attributes, [&](const auto& attribute) {
    return std::ranges::any_of(attribute.graphs, [&](const auto& inner) { return has_node(*inner, name); });
  });
}

bool has_node(const OnnxGraph& graph, const std::string& name) {
  return std::ranges::any_of(graph.nodes, [&](const OnnxNode& node) { return is_or_has(node, name); });
}

bool has_operator(const OnnxNode& node, const std::string& type) {
  if (node.op_type == type) return true;
  return std::ranges::any_of(node.attributes, [&](const auto& attribute) {
    return std::ranges::any_of(attribute.graphs, [&](const auto& inner) {
      return std::ranges::any_of(inner->nodes, [&](const OnnxNode& n) { return has_operator(n, type); });
    });
  });
}

// Of a Resize: its scales and sizes are known without running the model.
bool has_constant_size(const OnnxNode& node, const OnnxGraph& graph) {
  const auto is_constant = [&graph](std::string_view name) {
    const auto makes = [name](const OnnxNode& n) {
      return n.op_type == "Constant" && std::ranges::find(n.outputs, name) != n.outputs.end();
    };
    return name.empty() ||
           std::ranges::find(graph.initializers, name, &OnnxTensor::name) != graph.initializers.end() ||
           std::ranges::any_of(graph.nodes, makes);
  };
  return std::all_of(node.inputs.begin() + std::min<std::ptrdiff_t>(2, std::ssize(node.inputs)),
                     node.inputs.end(), is_constant);
}

class Chooser {
 public:
  explicit Chooser(const OnnxGraph& graph) : graph_(graph), chosen_(graph.nodes.size(), false) {}

  const std::vector<bool>& chosen() const { return chosen_; }
  bool any() const { return std::ranges::find(chosen_, true) != chosen_.end(); }
  bool choose_all() {
    return choose([](const OnnxNode& node) { return node.op_type != "Constant"; });
  }

  template <class Predicate>
  bool choose(const Predicate& wanted) {
    bool changed = false;
    for (size_t i = 0; i < chosen_.size(); ++i) {
      if (chosen_[i] || !wanted(graph_.nodes[i])) continue;
      chosen_[i] = changed = true;
    }
    return changed;
  }

  // Adds the nodes that were named, or all if none of them is new. False if all were chosen before.
  bool add(const Unconverted& unconverted, bool by_operator) {
    std::vector<std::string> operators = unconverted.operators;
    bool changed = choose([&](const OnnxNode& node) {
      const bool named =
          std::ranges::any_of(unconverted.nodes, [&](const auto& n) { return is_or_has(node, n); });
      if (named && by_operator) operators.emplace_back(node.op_type);
      return named;
    });
    changed |= choose([&](const OnnxNode& node) {
      return std::ranges::any_of(operators, [&](const auto& type) { return has_operator(node, type); });
    });
    return changed || choose_all();
  }

 private:
  const OnnxGraph& graph_;
  std::vector<bool> chosen_;
};

// What neither engine computes as ONNX defines it (the corpus's reference outputs show it): a Resize with aligned
// corners if the size is rounded, and a MaxUnpool with a size of its own, which only ONNX Runtime has.
Status check_standard(const OnnxGraph& graph, const InputValues& values) {
  for (const OnnxNode& node : graph.nodes) {
    if (node.op_type == "MaxUnpool" && node.inputs.size() > 2 && !node.inputs[2].empty())
      return unsupported(
          node_text(node) +
          ": OpenVINO does not have it, and ONNX Runtime computes output_shape otherwise than ONNX "
          "defines it; export the model without it");
    const OnnxAttribute* mode = node.attribute("coordinate_transformation_mode");
    if (node.op_type != "Resize" || mode == nullptr || mode->s != "align_corners" || node.inputs.size() < 3)
      continue;
    const auto scales = values.find(std::string(node.inputs[2]));
    if (scales != values.end() && std::ranges::any_of(scales->second, [](double s) { return s < 1; }))
      return unsupported(
          node_text(node) +
          ": OpenVINO and ONNX Runtime compute align_corners with scales below 1 otherwise than "
          "ONNX defines it; export the model with sizes");
  }
  return {};
}

Error by_neither(const Error& openvino, const Error& onnxruntime) {
  return Error(openvino.code(),
               openvino.message() + "; as a part that ONNX Runtime runs: " + onnxruntime.message());
}

}  // namespace

Result<ReadModel> read_with_regions(const ReadSource& source, const ImportOptions& options,
                                    const OnnxContent* content, bool one_file) {
  Unconverted unconverted;
  std::optional<Error> first;
  std::optional<Chooser> chooser;
  if (content != nullptr) {
    chooser.emplace(content->model.graph);
    if (const Status types = check_openvino_types(content->model.graph); !types.ok()) {
      first = types.error();
      chooser->choose_all();
    }
    HEDDLE_RETURN_IF_ERROR(check_standard(content->model.graph, options.values));
    const bool given = !options.values.empty();
    const auto& graph = content->model.graph;
    chooser->choose([&](const OnnxNode& node) {
      return is_other_resize(node, given) && (given || has_constant_size(node, graph));
    });
  }
  if (!chooser || !chooser->any()) {
    auto read = read_openvino(source, options, unconverted);
    if (read || !unconverted.failed || !chooser) return read;
    first = read.error();
    chooser->add(unconverted, false);
  }
  // ONNX Runtime needs the weights in the file.
  if (!one_file)
    return first
               ? *first
               : unsupported(
                     "has a Resize that OpenVINO computes otherwise than ONNX defines it, and weights in "
                     "other files, "
                     "without which ONNX Runtime cannot compute it; save the model with its weights inside");
  for (int round = 1;; ++round) {
    auto regions = make_regions(*content, options, chooser->chosen());
    if (!regions && !first) return regions.error();
    if (!regions) return by_neither(*first, regions.error());
    auto read =
        read_openvino({source.path, source.onnx, &regions->bytes, regions->programs}, options, unconverted);
    if (read) {
      read->by_run = std::move(regions->by_run);
      return read;
    }
    if (!first) first = read.error();
    if (!unconverted.failed || !chooser->add(unconverted, round > kRoundsByNode)) return read.error();
  }
}

}  // namespace heddle::internal
