// Variables of a model, which keep values from one run to the next: each becomes an input and an output.
#include <algorithm>
#include <cstring>
#include <map>
#include <openvino/core/model.hpp>
#include <openvino/op/broadcast.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/convert.hpp>
#include <openvino/op/parameter.hpp>
#include <openvino/op/reshape.hpp>
#include <openvino/op/result.hpp>
#include <openvino/op/util/assign_base.hpp>
#include <openvino/op/util/read_value_base.hpp>
#include <set>

#include "heddle/base/spelling.h"
#include "openvino_reader.h"

namespace heddle::internal {
namespace {

using ov::op::util::AssignBase;
using ov::op::util::ReadValueBase;

struct Variable {
  std::vector<std::shared_ptr<ReadValueBase>> reads;
  std::vector<std::shared_ptr<AssignBase>> writes;
};

Error bad_variable(const std::string& id, const std::string& what) {
  return unsupported("the variable " + quote_text(id) + ", which keeps state between runs, " + what);
}

std::span<const std::byte> bytes_of(const ov::op::v0::Constant& constant) {
  return {static_cast<const std::byte*>(constant.get_data_ptr()), constant.get_byte_size()};
}

// Zeros of a size that depends on the batch are a zero that is broadcast.
bool is_zero(const ov::Output<ov::Node>& value) {
  const ov::Node* node = value.get_node();
  while (ov::is_type<ov::op::util::BroadcastBase>(node) || ov::is_type<ov::op::v0::Convert>(node) ||
         ov::is_type<ov::op::v1::Reshape>(node))
    node = node->get_input_node_ptr(0);
  const auto* constant = ov::as_type<const ov::op::v0::Constant>(node);
  return constant != nullptr &&
         std::ranges::all_of(bytes_of(*constant), [](std::byte b) { return b == std::byte{0}; });
}

// What the variable holds before the first run; empty: zeros.
Result<std::vector<std::byte>> initial_value(const std::string& id, const ReadValueBase& read) {
  if (read.get_input_size() == 0 || is_zero(read.input_value(0))) return std::vector<std::byte>();
  const auto* constant = ov::as_type<const ov::op::v0::Constant>(read.get_input_node_ptr(0));
  if (constant == nullptr)
    return bad_variable(id, "begins with a value that is computed; expected a constant");
  const auto& shape = read.get_output_partial_shape(0);
  if (!shape.is_static() || shape.to_shape() != constant->get_shape() ||
      constant->get_element_type() != read.get_output_element_type(0) ||
      constant->get_element_type().bitwidth() < 8)
    return bad_variable(id, "begins with a constant of another shape or type than its own");
  const auto bytes = bytes_of(*constant);
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

std::set<std::string> names_of_ends(const ov::Model& model) {
  std::set<std::string> names;
  const auto add = [&names](const ov::Output<ov::Node>& output) {
    names.insert(output.get_node()->get_friendly_name());
    names.insert(output.get_names().begin(), output.get_names().end());
  };
  for (const auto& input : model.get_parameters()) add(input->output(0));
  for (const auto& result : model.get_results()) add(result->input_value(0));
  return names;
}

}  // namespace

Result<std::vector<ReadState>> states_as_inputs(ov::Model& model) {
  std::map<std::string, Variable> variables;
  for (const auto& node : model.get_ordered_ops()) {
    if (const auto read = std::dynamic_pointer_cast<ReadValueBase>(node))
      variables[read->get_variable_id()].reads.push_back(read);
    if (const auto write = std::dynamic_pointer_cast<AssignBase>(node))
      variables[write->get_variable_id()].writes.push_back(write);
  }
  std::vector<ReadState> states;
  if (variables.empty()) return states;
  const auto taken = names_of_ends(model);
  for (const auto& [id, variable] : variables) {
    if (variable.writes.size() != 1 || variable.reads.empty())
      return bad_variable(id, "is read " + counted(variable.reads.size(), "time") + " and assigned " +
                                  counted(variable.writes.size(), "time") +
                                  "; expected one assignment and at least one read");
    HEDDLE_ASSIGN_OR_RETURN(auto initial, initial_value(id, *variable.reads.front()));
    const std::string name = taken.contains(id) ? id + ".state" : id;
    const auto& first = variable.reads.front();
    const auto input = std::make_shared<ov::op::v0::Parameter>(first->get_output_element_type(0),
                                                               first->get_output_partial_shape(0));
    input->set_friendly_name(name);
    input->output(0).get_tensor().add_names({name});
    for (const auto& read : variable.reads) read->output(0).replace(input->output(0));
    const auto value = variable.writes.front()->input_value(0);
    if (value.get_names().empty()) value.get_tensor().add_names({name + ".next"});
    const auto output = std::make_shared<ov::op::v0::Result>(value);
    output->set_friendly_name(name + ".next");
    model.remove_sink(variable.writes.front());
    states.push_back({model.get_parameters().size(), model.get_results().size(), std::move(initial)});
    model.add_parameters({input});
    model.add_results({output});
  }
  for (const auto& variable : ov::op::util::VariableVector(model.get_variables()))
    model.remove_variable(variable);
  return states;
}

}  // namespace heddle::internal

namespace heddle {
namespace {

const Tensor* tensor_named(const Graph& graph, std::span<const TensorId> ids, const std::string& name) {
  for (const TensorId id : ids)
    if (graph.tensor(id).name == name) return &graph.tensor(id);
  return nullptr;
}

Error no_such(const Graph& graph, std::span<const TensorId> ids, const std::string& name,
              const std::string& what) {
  std::vector<std::string> names;
  for (const TensorId id : ids) names.push_back(graph.tensor(id).name);
  return invalid_input("the model has no " + what + " " + quote_text(name) + " to keep as state" +
                       did_you_mean(name, names) + "; its " + what + "s are " + join_names(names, 40));
}

std::string kind_text(const Tensor& tensor) {
  return std::string(dtype_name(tensor.dtype)) + " of shape " + shape_text(tensor.shape);
}

}  // namespace

Result<std::vector<ModelState>> states_with(const Model& model,
                                            std::span<const std::pair<std::string, std::string>> pairs) {
  const Graph& graph = *model.graph();
  std::vector<ModelState> states = model.states();
  for (const auto& [input, output] : pairs) {
    if (tensor_named(graph, graph.inputs(), input) == nullptr)
      return no_such(graph, graph.inputs(), input, "input");
    if (tensor_named(graph, graph.outputs(), output) == nullptr)
      return no_such(graph, graph.outputs(), output, "output");
    if (std::ranges::find(states, input, &ModelState::input) != states.end())
      return invalid_input("the input " + quote_text(input) + " is kept as state twice");
    states.push_back({input, output, {}});
  }
  for (const auto& s : states) {
    const Tensor& in = *tensor_named(graph, graph.inputs(), s.input);
    const Tensor& out = *tensor_named(graph, graph.outputs(), s.output);
    if (in.dtype != out.dtype || in.shape != out.shape)
      return invalid_input("the state " + quote_text(s.input) + " is " + kind_text(in) + ", and the output " +
                           quote_text(s.output) + " is " + kind_text(out) +
                           "; expected equal ones, so that it can be the next request's input");
    for (const auto& sized : model.sized_outputs())
      if (graph.tensor(graph.outputs()[sized.output]).name == s.output)
        return invalid_input("the size of the output " + quote_text(s.output) +
                             " depends on data, so it cannot be kept as state");
  }
  return states;
}

}  // namespace heddle
