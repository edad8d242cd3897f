// Keeps ONNX names through the import: value names on tensors, node names on ops. OpenVINO splits some nodes
// into several ops and drops others (Identity, Dropout); the file's own structure tells which is which.
#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "model_impl.h"

namespace heddle::internal {
namespace {

struct NodeOutput {
  const ov::Node* node = nullptr;
  size_t index = 0;
};

class Namer {
 public:
  Namer(const ov::Model& model, const std::vector<std::shared_ptr<ov::Node>>& ops, const OnnxModel* onnx)
      : model_(model), ops_(ops), onnx_(onnx) {}

  ModelNames run() {
    collect_outputs();
    if (onnx_ != nullptr) {
      index_file();
      complete_aliases();
    }
    name_tensors();
    if (onnx_ != nullptr) find_owners();
    name_ops();
    return std::move(names_);
  }

 private:
  void collect_outputs() {
    const auto add = [&](const std::shared_ptr<ov::Node>& node) {
      auto& lists = names_.aliases[node.get()];
      lists.resize(node->get_output_size());
      for (size_t i = 0; i < lists.size(); ++i) {
        const auto& known = node->output(i).get_names();
        lists[i].assign(known.begin(), known.end());
        std::sort(lists[i].begin(), lists[i].end());
        for (const auto& name : lists[i]) outputs_.emplace(name, NodeOutput{node.get(), i});
      }
    };
    for (const auto& p : model_.get_parameters()) add(p);
    for (const auto& node : ops_) add(node);
  }

  void index_file() {
    const auto& g = onnx_->graph;
    for (size_t i = 0; i < g.nodes.size(); ++i)
      for (const auto& o : g.nodes[i].outputs)
        if (!o.empty()) producer_.emplace(o, i);
    for (size_t i = 0; i < g.outputs.size(); ++i) output_rank_.emplace(g.outputs[i].name, i);
  }

  void alias(std::string_view name, const NodeOutput& output) {
    if (!outputs_.emplace(std::string(name), output).second) return;
    auto& list = names_.aliases[output.node][output.index];
    if (std::find(list.begin(), list.end(), name) == list.end()) list.emplace_back(name);
  }

  // Identity and Dropout: both value names lead to one tensor, whichever name the importer kept.
  void complete_aliases() {
    const auto& nodes = onnx_->graph.nodes;
    const auto visit = [&](const OnnxNode& n) {
      if ((n.op_type != "Identity" && n.op_type != "Dropout") || n.inputs.empty() || n.outputs.empty())
        return;
      if (n.inputs[0].empty() || n.outputs[0].empty()) return;
      const auto in = outputs_.find(std::string(n.inputs[0])), out = outputs_.find(std::string(n.outputs[0]));
      if (in == outputs_.end() && out != outputs_.end()) alias(n.inputs[0], NodeOutput(out->second));
      if (out == outputs_.end() && in != outputs_.end()) alias(n.outputs[0], NodeOutput(in->second));
    };
    for (const auto& n : nodes) visit(n);
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) visit(*it);
  }

  // A model input keeps its name; otherwise prefer a model output's name, then the first name produced.
  std::string choose(const ov::Node& node, const std::vector<std::string>& aliases) const {
    if (ov::is_type<ov::op::v0::Parameter>(&node)) return node.get_friendly_name();
    const std::string* best = nullptr;
    auto rank = [&](const std::string& name) {
      const auto out = output_rank_.find(name);
      const auto made = producer_.find(name);
      return std::pair(out == output_rank_.end() ? SIZE_MAX : out->second,
                       made == producer_.end() ? SIZE_MAX : made->second);
    };
    for (const auto& name : aliases)
      if (best == nullptr || rank(name) < rank(*best)) best = &name;
    return best == nullptr ? "" : *best;
  }

  void name_tensors() {
    for (const auto& [node, lists] : names_.aliases) {
      auto& chosen = names_.tensors[node];
      for (const auto& list : lists) chosen.push_back(choose(*node, list));
    }
  }

  // The ONNX nodes that an op stands for: those whose outputs it produces. If a node became several ops, an
  // op without such outputs gets the owner of the next op downstream that has one.
  void find_owners() {
    for (auto it = ops_.rbegin(); it != ops_.rend(); ++it) {
      const auto* node = it->get();
      std::vector<size_t> own;
      for (const auto& list : names_.aliases[node])
        for (const auto& name : list)
          if (const auto made = producer_.find(name); made != producer_.end()) own.push_back(made->second);
      std::sort(own.begin(), own.end());
      own.erase(std::unique(own.begin(), own.end()), own.end());
      if (own.empty()) {
        if (const auto* next = first_reader(*node)) own = owners_[next];
      } else {
        final_.insert(node);
      }
      for (const auto i : own) names_.onnx_nodes[node].push_back(node_name(onnx_->graph.nodes[i]));
      owners_[node] = std::move(own);
    }
  }

  // The first reader in topological order among those with an owner.
  const ov::Node* first_reader(const ov::Node& node) {
    if (place_.empty())
      for (size_t i = 0; i < ops_.size(); ++i) place_[ops_[i].get()] = i;
    const ov::Node* best = nullptr;
    for (const auto& output : node.outputs()) {
      for (const auto& input : output.get_target_inputs()) {
        const auto* reader = input.get_node();
        if (!place_.contains(reader) || owners_[reader].empty()) continue;
        if (best == nullptr || place_[reader] < place_[best]) best = reader;
      }
    }
    return best;
  }

  void name_ops() {
    UniqueNames unique;
    // Name whole nodes first: they take precedence for their own names.
    for (const auto& node : ops_)
      if (final_.contains(node.get()))
        names_.ops[node.get()] = unique.make(names_.onnx_nodes[node.get()].back());
    for (const auto& node : ops_) {
      if (final_.contains(node.get())) continue;
      const auto& owners = names_.onnx_nodes[node.get()];
      const bool own_name = onnx_ == nullptr && node->get_friendly_name() != node->get_name();
      std::string wanted = node->get_type_name();
      if (own_name)
        wanted = node->get_friendly_name();
      else if (!owners.empty())
        wanted = owners.front() + "/" + wanted;
      names_.ops[node.get()] = unique.make(wanted);
    }
  }

  const ov::Model& model_;
  const std::vector<std::shared_ptr<ov::Node>>& ops_;
  const OnnxModel* onnx_;
  ModelNames names_;
  std::unordered_map<std::string, NodeOutput> outputs_;
  std::unordered_map<std::string_view, size_t> producer_, output_rank_;
  std::unordered_map<const ov::Node*, std::vector<size_t>> owners_;
  std::unordered_map<const ov::Node*, size_t> place_;
  std::unordered_set<const ov::Node*> final_;
};

}  // namespace

ModelNames name_model(const ov::Model& model, const std::vector<std::shared_ptr<ov::Node>>& ops,
                      const OnnxModel* onnx) {
  return Namer(model, ops, onnx).run();
}

}  // namespace heddle::internal
