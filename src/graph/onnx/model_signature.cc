// Model::signature(): a hash of what a segment compiles to.
//
// Each op gets a colour from its own kind: type, attributes, shapes, and values of constants that affect the
// program. Two passes, along and against the edges, mix in the ops before and after it. Then the ops are
// written in a topological order that prefers the smaller colour, with inputs numbered in that order, and the
// text is hashed. Ids affect the order only between ops of equal colour, so the same block elsewhere in a
// model hashes the same. O(n log n + m).
#include <algorithm>
#include <openvino/core/attribute_visitor.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/util/multi_subgraph_base.hpp>
#include <openvino/op/util/op_types.hpp>
#include <queue>
#include <unordered_map>

#include "heddle/base/hash.h"
#include "model_impl.h"

namespace heddle {
namespace {

// Integer constants up to this size are axes, shapes, pads and the like: they affect the program.
constexpr size_t kSteeringElements = 64;

template <class Output>  // of a node or a constant node
void hash_type(Hasher& h, const Output& output) {
  h.number(static_cast<uint64_t>(static_cast<ov::element::Type_t>(output.get_element_type())));
  const auto& shape = output.get_partial_shape();
  if (shape.rank().is_dynamic()) {
    h.number(UINT64_MAX);
    return;
  }
  h.number(shape.size());
  for (const auto& d : shape) h.number(d.is_static() ? static_cast<uint64_t>(d.get_length()) : UINT64_MAX);
}

void hash_model(Hasher& h, const ov::Model& body);

// Hashes all attributes except names.
class AttributeHasher final : public ov::AttributeVisitor {
 public:
  explicit AttributeHasher(Hasher& hasher) : h_(hasher) {}

  using Name = const std::string&;
  template <class T>
  using Value = ov::ValueAccessor<T>;

  void on_adapter(Name name, Value<void>& adapter) override {
    h_.text(name);
    // Port maps of subgraph ops: hash their numbers.
    using Multi = ov::op::util::MultiSubGraphOp;
    if (auto* in = ov::as_type<ov::AttributeAdapter<Multi::MultiSubgraphInputDescriptionVector>>(&adapter))
      inputs(in->get());
    else if (auto* out =
                 ov::as_type<ov::AttributeAdapter<Multi::MultiSubgraphOutputDescriptionVector>>(&adapter))
      outputs(out->get());
    else if (auto* shape = ov::as_type<ov::AttributeAdapter<ov::PartialShape>>(&adapter))
      h_.text(shape->get().to_string());
  }
  void on_adapter(Name name, Value<std::string>& a) override { h_.text(name).text(a.get()); }
  void on_adapter(Name name, Value<bool>& a) override { h_.text(name).number(a.get() ? 1 : 0); }
  void on_adapter(Name name, Value<int64_t>& a) override {
    h_.text(name).number(static_cast<uint64_t>(a.get()));
  }
  void on_adapter(Name name, Value<double>& a) override {
    const double value = a.get();
    h_.text(name).bytes(&value, sizeof value);
  }
  void on_adapter(Name name, Value<std::vector<int64_t>>& a) override { list(name, a.get()); }
  void on_adapter(Name name, Value<std::vector<uint64_t>>& a) override { list(name, a.get()); }
  void on_adapter(Name name, Value<std::vector<float>>& a) override { list(name, a.get()); }
  void on_adapter(Name name, Value<std::vector<double>>& a) override { list(name, a.get()); }
  void on_adapter(Name name, Value<std::vector<std::string>>& a) override {
    h_.text(name).number(a.get().size());
    for (const auto& s : a.get()) h_.text(s);
  }
  void on_adapter(Name name, Value<std::shared_ptr<ov::Model>>& a) override {
    h_.text(name);
    if (a.get()) hash_model(h_, *a.get());
  }

 private:
  template <class T>
  void list(Name name, const std::vector<T>& values) {
    h_.text(name).number(values.size()).bytes(values.data(), values.size() * sizeof(T));
  }
  template <class List>
  void inputs(const List& list) {
    for (const auto& d : list)
      h_.text(d->get_type_info().name).number(d->m_input_index).number(d->m_body_parameter_index);
  }
  template <class List>
  void outputs(const List& list) {
    for (const auto& d : list)
      h_.text(d->get_type_info().name).number(d->m_output_index).number(d->m_body_value_index);
  }
  Hasher& h_;
};

bool is_steering(const ov::op::v0::Constant& c, bool exponent) {
  const auto& type = c.get_element_type();
  const bool integral = type.is_integral() && type.bitwidth() >= 8;
  return (integral || exponent) && ov::shape_size(c.get_shape()) <= kSteeringElements &&
         c.get_byte_size() > 0;
}

// Of constants: operators and types, for engines fold it or keep weights packed as it says, such as in 4 bits.
void hash_expression(Hasher& h, const ov::Node& top) {
  constexpr size_t kMostNodes = 64;
  h.text("expression");
  std::vector<const ov::Node*> nodes = {&top};
  for (size_t i = 0; i < nodes.size(); ++i) {
    h.text(nodes[i]->get_type_name());
    for (const auto& output : nodes[i]->outputs()) hash_type(h, output);
    for (const auto& input : nodes[i]->input_values()) {
      const auto known = std::find(nodes.begin(), nodes.end(), input.get_node());
      h.number(static_cast<uint64_t>(known - nodes.begin())).number(input.get_index());
      if (known == nodes.end() && nodes.size() < kMostNodes) nodes.push_back(input.get_node());
    }
  }
}

void hash_constant(Hasher& h, const ov::Output<ov::Node>& output, bool exponent) {
  hash_type(h, output);
  const auto* c = dynamic_cast<const ov::op::v0::Constant*>(output.get_node());
  if (c == nullptr)
    hash_expression(h, *output.get_node());
  else if (is_steering(*c, exponent))
    h.bytes(c->get_data_ptr(), c->get_byte_size());
}

// visit_attributes() is declared for writing too; this visitor only reads.
void hash_attributes(Hasher& h, ov::Node& node) {
  AttributeHasher visitor(h);
  node.visit_attributes(visitor);
}

// A body is hashed in its own order, which is the file's.
void hash_model(Hasher& h, const ov::Model& body) {
  std::unordered_map<const ov::Node*, uint64_t> number;
  for (const auto& node : body.get_ordered_ops()) {
    number.emplace(node.get(), number.size());
    h.text(node->get_type_name());
    if (ov::op::util::is_constant(node)) {
      hash_constant(h, node->output(0), false);
      continue;
    }
    hash_attributes(h, *node);
    for (const auto& input : node->input_values())
      h.number(number[input.get_node()]).number(input.get_index());
    for (const auto& output : node->outputs()) hash_type(h, output);
  }
}

class Signer {
 public:
  Signer(const Graph& graph, const Model::Impl& impl, std::vector<OpId> ops)
      : graph_(graph), impl_(impl), ops_(std::move(ops)) {}

  uint64_t run() {
    std::sort(ops_.begin(), ops_.end(), [&](OpId a, OpId b) {
      return graph_.topological_position(a) < graph_.topological_position(b);
    });
    ops_.erase(std::unique(ops_.begin(), ops_.end()), ops_.end());
    for (size_t i = 0; i < ops_.size(); ++i) place_.emplace(ops_[i], i);
    own_.reserve(ops_.size());
    for (const auto op : ops_) own_.push_back(own_hash(op));
    color_forward();
    color_backward();
    return write();
  }

 private:
  // Position in ops_ of the op that produces a tensor; -1 if it comes from outside.
  int64_t maker(TensorId tensor) const {
    const auto it = place_.find(graph_.tensor(tensor).producer);
    return it == place_.end() ? -1 : static_cast<int64_t>(it->second);
  }
  uint64_t port(TensorId tensor) const { return impl_.outputs[tensor.index()].get_index(); }

  uint64_t own_hash(OpId op) const {
    const auto nodes = impl_.nodes_of(op);
    if (nodes.size() == 1) return own_hash(*nodes.front(), {});
    // A region: its nodes in order, with their wiring, and which of their values leave it.
    Hasher h;
    std::unordered_map<const ov::Node*, uint64_t> numbers;
    for (const auto& node : nodes) {
      h.number(own_hash(*node, numbers));
      numbers.emplace(node.get(), numbers.size());
    }
    for (const auto tensor : graph_.op(op).outputs)
      h.number(numbers.at(impl_.outputs[tensor.index()].get_node())).number(port(tensor));
    return h.value();
  }

  // `region`: numbers of the nodes before it in its region.
  uint64_t own_hash(ov::Node& node, const std::unordered_map<const ov::Node*, uint64_t>& region) const {
    Hasher h;
    h.text(node.get_type_name())
        .text(node.get_type_info().version_id != nullptr ? node.get_type_info().version_id : "");
    if (ov::op::util::is_constant(&node)) {
      hash_constant(h, node.output(0), false);
      return h.value();
    }
    hash_attributes(h, node);
    const bool power = std::string_view(node.get_type_name()) == "Power";
    for (const auto& input : node.input_values()) {
      if (const auto inner = region.find(input.get_node()); inner != region.end()) {
        h.number(3).number(inner->second).number(input.get_index());
      } else if (impl_.tensor_of(input).valid()) {
        h.number(1);
        hash_type(h, input);
      } else {
        h.number(2);
        hash_constant(h, input, power);
      }
    }
    for (const auto& output : node.outputs()) hash_type(h, output);
    return h.value();
  }

  void color_forward() {
    forward_ = own_;
    for (size_t i = 0; i < ops_.size(); ++i) {
      Hasher h;
      h.number(own_[i]);
      for (const auto tensor : graph_.op(ops_[i]).inputs) {
        const int64_t m = maker(tensor);
        h.number(m < 0 ? 0 : forward_[static_cast<size_t>(m)]).number(m < 0 ? 0 : port(tensor));
      }
      forward_[i] = h.value();
    }
  }

  // Readers are mixed in by a sum, because they have no order.
  void color_backward() {
    backward_.assign(ops_.size(), 0);
    for (size_t i = ops_.size(); i-- > 0;) {
      Hasher h;
      backward_[i] = h.number(forward_[i]).number(backward_[i]).number(leaving(ops_[i])).value();
      const auto& inputs = graph_.op(ops_[i]).inputs;
      for (size_t k = 0; k < inputs.size(); ++k) {
        const int64_t m = maker(inputs[k]);
        if (m >= 0)
          backward_[static_cast<size_t>(m)] +=
              Hasher().number(backward_[i]).number(k).number(port(inputs[k])).value();
      }
    }
  }

  // Hash of which outputs leave the segment.
  uint64_t leaving(OpId op) const {
    Hasher h;
    for (const auto tensor : graph_.op(op).outputs) {
      bool leaves =
          std::find(graph_.outputs().begin(), graph_.outputs().end(), tensor) != graph_.outputs().end();
      for (const auto consumer : graph_.tensor(tensor).consumers)
        leaves = leaves || !place_.contains(consumer);
      h.number(leaves ? 1 : 0);
    }
    return h.value();
  }

  uint64_t write() const {
    std::vector<size_t> waiting(ops_.size(), 0);
    std::vector<std::vector<size_t>> readers(ops_.size());
    for (size_t i = 0; i < ops_.size(); ++i) {
      for (const auto tensor : graph_.op(ops_[i]).inputs) {
        if (const int64_t m = maker(tensor); m >= 0) {
          readers[static_cast<size_t>(m)].push_back(i);
          ++waiting[i];
        }
      }
    }
    using Item = std::pair<uint64_t, size_t>;
    std::priority_queue<Item, std::vector<Item>, std::greater<>> ready;
    for (size_t i = 0; i < ops_.size(); ++i)
      if (waiting[i] == 0) ready.emplace(backward_[i], i);
    Hasher h;
    std::unordered_map<TensorId, uint64_t> numbers;
    while (!ready.empty()) {
      const size_t i = ready.top().second;
      ready.pop();
      h.number(own_[i]).number(leaving(ops_[i]));
      for (const auto tensor : graph_.op(ops_[i]).inputs)
        h.number(numbers.emplace(tensor, numbers.size()).first->second);
      for (const auto tensor : graph_.op(ops_[i]).outputs) numbers.emplace(tensor, numbers.size());
      for (const size_t r : readers[i])
        if (--waiting[r] == 0) ready.emplace(backward_[r], r);
    }
    return h.value();
  }

  const Graph& graph_;
  const Model::Impl& impl_;
  std::vector<OpId> ops_;
  std::unordered_map<OpId, size_t> place_;
  std::vector<uint64_t> own_, forward_, backward_;
};

}  // namespace

uint64_t Model::signature(std::span<const OpId> ops) const {
  return Signer(*graph_, *impl_, std::vector<OpId>(ops.begin(), ops.end())).run();
}

}  // namespace heddle
