// Schemas of the standard operators, each valid from its opset on.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "heddle/base/spelling.h"
#include "onnx_check.h"

namespace heddle::internal {
namespace {

struct Schema {
  std::string_view name;
  int64_t since;
  int64_t min_inputs, max_inputs, min_outputs, max_outputs;
  uint32_t required_inputs;              // bit i: input i is required
  std::string_view required_attributes;  // separated by spaces
};

constexpr Schema kSchemas[] = {
#include "onnx_ops.inc"
};

// The newest schema in `opset`; null if the operator is newer or unknown. Sorted by (name, since).
const Schema* find_schema(std::string_view name, int64_t opset) {
  const auto* at = std::lower_bound(std::begin(kSchemas), std::end(kSchemas), name,
                                    [](const Schema& s, std::string_view n) { return s.name < n; });
  const Schema* found = nullptr;
  for (; at != std::end(kSchemas) && at->name == name && at->since <= opset; ++at) found = at;
  return found;
}

Error unknown_operator(std::string_view name, int64_t opset) {
  std::vector<std::string> names;
  for (const auto& s : kSchemas) {
    if (s.name == name) {
      return Error(Code::kInvalidInput, "operator " + quote_text(name) + " came with opset " +
                                            std::to_string(s.since) + ", but the file imports opset " +
                                            std::to_string(opset));
    }
    if (names.empty() || names.back() != s.name) names.emplace_back(s.name);
  }
  return Error(Code::kUnsupported,
               "there is no standard operator " + quote_text(name) + did_you_mean(name.substr(0, 64), names));
}

std::string range_text(int64_t least, int64_t most) {
  if (least == most) return std::to_string(least);
  if (most == 2147483647) return "at least " + std::to_string(least);
  return std::to_string(least) + " to " + std::to_string(most);
}

// OpenVINO's importer also reads attributes of other versions, so only those that every version requires are
// checked.
Status check_attributes(const OnnxNode& node, std::string_view required) {
  while (!required.empty()) {
    const size_t end = std::min(required.find(' '), required.size());
    const std::string_view name = required.substr(0, end);
    required.remove_prefix(std::min(end + 1, required.size()));
    if (node.attribute(name) == nullptr)
      return Error(Code::kInvalidInput, "the attribute '" + std::string(name) + "' is missing");
  }
  return {};
}

}  // namespace

int64_t newest_standard_opset() {
  static const int64_t newest = [] {
    int64_t most = 0;
    for (const auto& s : kSchemas) most = std::max(most, s.since);
    return most;
  }();
  return newest;
}

Status check_operator(const OnnxNode& node, int64_t opset) {
  const Schema* schema = find_schema(node.op_type, opset);
  if (schema == nullptr) return unknown_operator(node.op_type, opset);
  const auto inputs = static_cast<int64_t>(node.inputs.size()),
             outputs = static_cast<int64_t>(node.outputs.size());
  if (inputs < schema->min_inputs || inputs > schema->max_inputs) {
    return Error(Code::kInvalidInput, "takes " + range_text(schema->min_inputs, schema->max_inputs) +
                                          " inputs in opset " + std::to_string(opset) + ", but has " +
                                          std::to_string(inputs));
  }
  if (outputs < schema->min_outputs || outputs > schema->max_outputs) {
    return Error(Code::kInvalidInput, "makes " + range_text(schema->min_outputs, schema->max_outputs) +
                                          " outputs in opset " + std::to_string(opset) + ", but has " +
                                          std::to_string(outputs));
  }
  for (size_t i = 0; i < std::min<size_t>(node.inputs.size(), 32); ++i) {
    if ((schema->required_inputs >> i & 1) != 0 && node.inputs[i].empty())
      return Error(Code::kInvalidInput, "input " + std::to_string(i) + " is left out, but is required");
  }
  return check_attributes(node, schema->required_attributes);
}

}  // namespace heddle::internal
