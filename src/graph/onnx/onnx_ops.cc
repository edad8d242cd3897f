// Schemas of the standard operators, each valid from its opset on.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>
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
#include "onnx_schemas.inc"
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
      return invalid_input("operator " + quote_text(name) + " came with opset " + std::to_string(s.since) +
                           ", but the file imports opset " + std::to_string(opset));
    }
    if (names.empty() || names.back() != s.name) names.emplace_back(s.name);
  }
  return unsupported("there is no standard operator " + quote_text(name) +
                     did_you_mean(name.substr(0, 64), names));
}

std::string range_text(int64_t least, int64_t most) {
  if (least == most) return std::to_string(least);
  if (most == 2147483647) return "at least " + std::to_string(least);
  return std::to_string(least) + " to " + std::to_string(most);
}

// OpenVINO's importer also reads attributes of other versions, so only those that every version requires are
// checked.
Status check_attributes(const OnnxNode& node, std::string_view required) {
  std::istringstream names{std::string(required)};
  for (std::string name; names >> name;) {
    if (node.attribute(name) == nullptr) return invalid_input("the attribute '" + name + "' is missing");
  }
  return {};
}

}  // namespace

bool same_operator(std::string_view name, int64_t opset, int64_t other) {
  return find_schema(name, opset) == find_schema(name, other);
}

int64_t newest_standard_opset() { return std::ranges::max(kSchemas, {}, &Schema::since).since; }

Status check_operator(const OnnxNode& node, int64_t opset) {
  const Schema* schema = find_schema(node.op_type, opset);
  if (schema == nullptr) return unknown_operator(node.op_type, opset);
  const auto check_count = [&](const char* what, size_t count, int64_t least, int64_t most) -> Status {
    if (static_cast<int64_t>(count) >= least && static_cast<int64_t>(count) <= most) return {};
    return invalid_input(
        fmt::format("has {} {}, but opset {} expects {}", count, what, opset, range_text(least, most)));
  };
  HEDDLE_RETURN_IF_ERROR(check_count("inputs", node.inputs.size(), schema->min_inputs, schema->max_inputs));
  HEDDLE_RETURN_IF_ERROR(
      check_count("outputs", node.outputs.size(), schema->min_outputs, schema->max_outputs));
  for (size_t i = 0; i < std::min<size_t>(node.inputs.size(), 32); ++i) {
    if ((schema->required_inputs >> i & 1) != 0 && node.inputs[i].empty())
      return invalid_input("input " + std::to_string(i) + " is left out, but is required");
  }
  return check_attributes(node, schema->required_attributes);
}

}  // namespace heddle::internal
