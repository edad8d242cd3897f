#include "heddle/graph/onnx_cut.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/strong_components.h"
#include "heddle/base/errors.h"
#include "heddle/base/mapped_file.h"
#include "heddle/base/spelling.h"
#include "heddle/graph/model.h"
#include "heddle/graph/model_content.h"
#include "model_impl.h"
#include "onnx_file.h"
#include "onnx_part.h"

namespace heddle {

using internal::OnnxGraph;
using internal::OnnxNode;

struct OnnxParts::File {
  File(const Model& from, MappedFile mapped, internal::OnnxContent read)
      : model(from), file(std::move(mapped)), content(std::move(read)), onnx(content.model) {
    const OnnxGraph& graph = onnx.graph;
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      for (const auto output : graph.nodes[i].outputs)
        if (!output.empty()) producers.emplace(output, i);
    for (size_t i = 0; i < graph.initializers.size(); ++i)
      initializers.emplace(graph.initializers[i].name, i);
    for (const auto& input : graph.inputs) inputs.insert(input.name);
  }

  // The importer names tensors inside nodes, too; those names are not in the file.
  bool has(TensorId tensor) const {
    const std::string& name = model.graph()->tensor(tensor).name;
    return model.find_onnx_tensor(name) == tensor && (producers.contains(name) || inputs.contains(name));
  }

  const Model& model;
  MappedFile file;
  internal::OnnxContent content;
  const internal::OnnxModel& onnx;
  std::unordered_map<std::string_view, size_t> producers, initializers;  // by name of the value
  std::unordered_set<std::string_view> inputs;
};

namespace {

Error has_changed(const std::string& path) {
  return invalid_input(path + ": has changed since it was loaded; try again");
}

class OnnxCutter {
 public:
  explicit OnnxCutter(const OnnxParts::File& file) : model_(file.model), onnx_(file.onnx), index_(file) {
    part_.nodes.resize(onnx_.graph.nodes.size());
    part_.initializers.resize(onnx_.graph.initializers.size());
  }

  Result<OnnxCut> run(std::span<const TensorId> inputs, std::span<const TensorId> outputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!index_.has(inputs[i])) return splits_node("begins", inputs[i]);
      input_index_.emplace(inputs[i], i);
    }
    reached_.assign(inputs.size(), false);
    for (const TensorId output : outputs) {
      if (!index_.has(output)) return splits_node("ends", output);
      const std::string& name = model_.graph()->tensor(output).name;
      cut_.outputs.push_back(name);
      outputs_.push_back(output);
      wanted_.push_back(name);
    }
    HEDDLE_RETURN_IF_ERROR(walk());
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!reached_[i]) return splits_node("begins", inputs[i]);
    HEDDLE_RETURN_IF_ERROR(write());
    return std::move(cut_);
  }

 private:
  Error splits_node(const char* verb, TensorId tensor) const {
    const Graph& graph = *model_.graph();
    const OpId maker = graph.tensor(tensor).producer;
    std::string node;
    if (maker.valid() && !graph.op(maker).onnx_names.empty())
      node = " of node " + quote_text(graph.op(maker).onnx_names.front());
    return unsupported(
        "the segment " + std::string(verb) + " at tensor " + quote_text(graph.tensor(tensor).name) + node +
        ", which is inside a node of the ONNX file; ONNX Runtime runs whole nodes only, so cut "
        "the model between nodes");
  }

  Status walk() {
    std::unordered_set<std::string_view> seen;
    while (!wanted_.empty()) {
      const std::string_view name = wanted_.back();
      wanted_.pop_back();
      if (name.empty() || !seen.insert(name).second) continue;
      const TensorId tensor = model_.find_onnx_tensor(std::string(name));
      if (const auto it = input_index_.find(tensor); tensor.valid() && it != input_index_.end()) {
        reached_[it->second] = true;
        cut_.inputs.push_back({std::string(name), it->second});
      } else if (const auto kept = index_.initializers.find(name); kept != index_.initializers.end()) {
        part_.initializers[kept->second] = true;
      } else if (const auto made = index_.producers.find(name); made != index_.producers.end()) {
        add_node(made->second);
      } else if (tensor.valid()) {
        return splits_node("begins", tensor);
      }
      // Any other name belongs to a subgraph.
    }
    return {};
  }

  void add_node(size_t index) {
    if (part_.nodes[index]) return;
    const OnnxNode& node = onnx_.graph.nodes[index];
    if (replace_shape(node)) return;
    part_.nodes[index] = true;
    internal::add_read_names(node, wanted_);
  }

  // Shapes are static after the import, so a segment need not get a tensor of which it reads only the shape.
  bool replace_shape(const OnnxNode& node) {
    if (node.op_type != "Shape" || !internal::is_standard_domain(node.domain) || node.inputs.size() != 1 ||
        !node.attributes.empty())
      return false;
    const TensorId tensor = model_.find_onnx_tensor(std::string(node.inputs[0]));
    if (!tensor.valid()) return false;
    const Shape& shape = model_.graph()->tensor(tensor).shape;
    part_.constants.push_back(
        internal::onnx_int_tensor(node.outputs[0], {static_cast<int64_t>(shape.size())}, shape));
    return true;
  }

  internal::WireMessage value_info(const std::string& name, TensorId tensor) const {
    const auto& value = model_.graph()->tensor(tensor);
    return internal::onnx_value_info(name, value.dtype, value.shape);
  }

  Status write() {
    for (const auto& input : cut_.inputs)
      part_.inputs.push_back(value_info(input.name, model_.find_onnx_tensor(input.name)));
    for (size_t i = 0; i < outputs_.size(); ++i)
      part_.outputs.push_back(value_info(cut_.outputs[i], outputs_[i]));
    HEDDLE_ASSIGN_OR_RETURN(cut_.bytes, internal::write_part(index_.content, part_));
    return {};
  }

  const Model& model_;
  const internal::OnnxModel& onnx_;
  const OnnxParts::File& index_;
  OnnxCut cut_;
  std::vector<TensorId> outputs_;
  std::unordered_map<TensorId, size_t> input_index_;
  std::vector<std::string_view> wanted_;  // values that the walk has yet to visit
  std::vector<bool> reached_;
  internal::OnnxPart part_;
};

}  // namespace

Result<OnnxParts> OnnxParts::open(const Model& model) {
  const std::string& path = model.path();
  if (!path.ends_with(".onnx")) return unsupported(path + ": ONNX Runtime reads .onnx files only");
  const int64_t most = model.options().max_file_bytes;
  HEDDLE_ASSIGN_OR_RETURN(const ModelContent content, model_content(path, most));
  if (!content.one_file())
    return unsupported(path + ": has weights in other files; ONNX Runtime needs them in the .onnx file");
  if (content.hash != model.file_hash()) return has_changed(path);
  HEDDLE_ASSIGN_OR_RETURN(auto file, with_context(MappedFile::open(path, most), path));
  HEDDLE_ASSIGN_OR_RETURN(auto onnx,
                          with_context(internal::read_onnx(file.bytes(), model.options().values), path));
  return OnnxParts(std::make_shared<const File>(model, std::move(file), std::move(onnx)));
}

Result<const OnnxParts*> Model::onnx_parts() const {
  std::call_once(impl_->read_parts, [&] { impl_->parts = OnnxParts::open(*this); });
  if (!impl_->parts->ok()) return impl_->parts->error();
  return &impl_->parts->value();
}

bool OnnxParts::has(TensorId tensor) const { return file_->has(tensor); }

std::vector<int> OnnxParts::keep_nodes_whole(const Graph& graph, std::span<const int> group) const {
  const int groups = group.empty() ? 0 : *std::ranges::max_element(group) + 1;
  // With an edge back along each tensor inside a node, what must stay together is strongly connected.
  std::vector<std::vector<size_t>> next(static_cast<size_t>(groups));
  const auto of = [&](OpId op) { return static_cast<size_t>(group[op.index()]); };
  for (size_t t = 0; t < graph.num_tensors(); ++t) {
    const Tensor& tensor = graph.tensor(TensorId(t));
    if (!tensor.producer.valid()) continue;
    const bool inside = !has(TensorId(t));
    for (const OpId reader : tensor.consumers) {
      next[of(tensor.producer)].push_back(of(reader));
      if (inside) next[of(reader)].push_back(of(tensor.producer));
    }
  }
  const internal::StrongComponents components(next);
  std::vector<int> united(next.size());
  for (size_t c = 0; c < components.found.size(); ++c)
    for (const size_t member : components.found[c])
      united[member] = static_cast<int>(components.found.size() - 1 - c);
  std::vector<int> result(group.size());
  for (size_t op = 0; op < group.size(); ++op) result[op] = united[static_cast<size_t>(group[op])];
  return result;
}

Result<OnnxCut> OnnxParts::cut(std::span<const TensorId> inputs, std::span<const TensorId> outputs) const {
  const std::string& path = file_->model.path();
  if (!file_->file.is_still(path)) return has_changed(path);
  return OnnxCutter(*file_).run(inputs, outputs);
}

}  // namespace heddle
