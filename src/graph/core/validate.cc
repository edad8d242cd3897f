#include "validate.h"

#include <algorithm>
#include <cmath>

namespace heddle::internal {
namespace {

std::string text(auto number) { return std::to_string(number); }

size_t common_prefix_length(std::span<const std::string_view> names) {
  if (names.empty()) return 0;
  size_t length = names[0].size();
  for (const std::string_view name : names) {
    length = std::min(length, name.size());
    while (name.substr(0, length) != names[0].substr(0, length)) --length;
  }
  return length;
}

// The first eight bytes, zero-padded, as a big-endian number, so that numbers compare like texts.
uint64_t leading_bytes(std::string_view text) {
  uint64_t key = 0;
  for (size_t i = 0; i < 8; ++i) key = key << 8 | (i < text.size() ? static_cast<unsigned char>(text[i]) : 0);
  return key;
}

Error op_error(const Op& op, std::string message) {
  return invalid_input(std::move(message)).with_context("op '" + op.name + "'");
}

// Adds to a running total; false if it would exceed kMaxGraphBytes.
bool add_bytes(int64_t bytes, int64_t& total) {
  if (bytes > kMaxGraphBytes - total) return false;
  total += bytes;
  return true;
}

Status check_sizes(std::span<const Tensor> tensors, std::span<const Param> params) {
  const Error too_large = invalid_input("tensors and parameters add up to more than 2^60 bytes");
  int64_t total = 0;
  for (const Tensor& tensor : tensors) {
    if (!tensor_bytes(tensor.dtype, tensor.shape))
      return invalid_input(
          "tensor '" + tensor.name + "': shape " + shape_text(tensor.shape) +
          " has a negative dimension or 2^60 bytes or more; all dimensions must be known and >= 0");
    if (tensor.bytes < 0)
      return invalid_input("tensor '" + tensor.name + "': bytes is " + text(tensor.bytes) +
                           ", expected >= 0");
    if (!add_bytes(tensor.bytes, total)) return Error(too_large).with_context("tensor '" + tensor.name + "'");
  }
  for (const Param& param : params) {
    if (param.bytes < 0)
      return invalid_input("parameter '" + param.name + "': bytes is " + text(param.bytes) +
                           ", expected >= 0");
    if (!add_bytes(param.bytes, total))
      return Error(too_large).with_context("parameter '" + param.name + "'");
  }
  return {};
}

Status check_numbers(const Op& op) {
  if (!std::isfinite(op.flops) || op.flops < 0)
    return op_error(op, "flops is " + text(op.flops) + ", expected a finite number >= 0");
  if (op.bytes_accessed < 0)
    return op_error(op, "bytes_accessed is " + text(op.bytes_accessed) + ", expected >= 0");
  if (!(op.utilization > 0 && op.utilization <= 1))
    return op_error(op, "utilization is " + text(op.utilization) + ", expected above 0 and at most 1");
  std::vector<std::string_view> classes;
  for (const GivenTime& time : op.given_times) {
    if (time.device_class.empty())
      return op_error(op, "a given time has an empty device class; use \"*\" for all");
    if (!(time.us >= 0 && time.us <= kMaxGivenUs))
      return op_error(op, "the given time for device class '" + time.device_class + "' is " + text(time.us) +
                              " us, expected between 0 and 1e15");
    classes.push_back(time.device_class);
  }
  std::sort(classes.begin(), classes.end());
  const auto twice = std::adjacent_find(classes.begin(), classes.end());
  if (twice != classes.end())
    return op_error(op, "device class '" + std::string(*twice) + "' has two given times");
  return {};
}

Status check_ids(const Op& op, size_t num_tensors, size_t num_params) {
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    if (!op.inputs[i].valid() || op.inputs[i].index() >= num_tensors)
      return op_error(op, "input " + text(i) + " is tensor " + text(op.inputs[i].value) +
                              ", but the graph has " + text(num_tensors) + " tensors");
  }
  for (size_t i = 0; i < op.params.size(); ++i) {
    if (!op.params[i].valid() || op.params[i].index() >= num_params)
      return op_error(op, "parameter " + text(i) + " is number " + text(op.params[i].value) +
                              ", but the graph has " + text(num_params) + " parameters");
  }
  std::vector<ParamId> sorted = op.params;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    return op_error(op, "a parameter is listed twice; list each once");
  return {};
}

// Members of each op must ascend, and no finer op may be a member of two ops.
Status check_members(std::span<const Op> ops) {
  std::vector<OpId> all;
  for (const Op& op : ops) {
    for (size_t i = 0; i < op.members.size(); ++i) {
      if (!op.members[i].valid() || (i > 0 && op.members[i] <= op.members[i - 1]))
        return op_error(op, "members must be op numbers >= 0 in ascending order");
    }
    all.insert(all.end(), op.members.begin(), op.members.end());
  }
  std::sort(all.begin(), all.end());
  const auto twice = std::adjacent_find(all.begin(), all.end());
  if (twice != all.end())
    return invalid_input("op " + text(twice->value) + " of the finer graph is a member of two ops");
  return {};
}

}  // namespace

Result<std::vector<uint32_t>> index_names(std::span<const std::string_view> names, const char* what) {
  // Names of one model mostly share a prefix. After it, eight bytes decide nearly every comparison without
  // touching the text: several times faster than a plain sort.
  const size_t prefix = common_prefix_length(names);
  struct Entry {
    uint64_t key;
    uint32_t index;
  };
  std::vector<Entry> entries;
  entries.reserve(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty())
      return invalid_input(std::string(what) + " number " + text(i) + " has an empty name");
    entries.push_back({leading_bytes(names[i].substr(prefix)), static_cast<uint32_t>(i)});
  }
  std::sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
    if (a.key != b.key) return a.key < b.key;
    const int order = names[a.index].compare(names[b.index]);
    return order != 0 ? order < 0 : a.index < b.index;
  });
  std::vector<uint32_t> by_name;
  by_name.reserve(names.size());
  for (const Entry& entry : entries) {
    if (!by_name.empty() && names[by_name.back()] == names[entry.index])
      return invalid_input("two " + std::string(what) + "s are named '" + std::string(names[entry.index]) +
                           "' (numbers " + text(by_name.back()) + " and " + text(entry.index) +
                           "); names must be unique");
    by_name.push_back(entry.index);
  }
  return by_name;
}

Status check_parts(std::span<const Op> ops, std::span<const Tensor> tensors, std::span<const Param> params,
                   std::span<const TensorId> outputs) {
  HEDDLE_RETURN_IF_ERROR(check_sizes(tensors, params));
  double flops = 0;
  int64_t accessed = 0;
  for (const Op& op : ops) {
    HEDDLE_RETURN_IF_ERROR(check_ids(op, tensors.size(), params.size()));
    HEDDLE_RETURN_IF_ERROR(check_numbers(op));
    flops += op.flops;
    if (!add_bytes(op.bytes_accessed, accessed))
      return op_error(op, "bytes_accessed of all ops exceeds 2^60 bytes");
    if (flops > kMaxGraphFlops) return op_error(op, "flops of all ops exceeds 1e30");
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].valid() || outputs[i].index() >= tensors.size())
      return invalid_input("graph output " + text(i) + " is tensor " + text(outputs[i].value) +
                           ", but the graph has " + text(tensors.size()) + " tensors");
  }
  return check_members(ops);
}

}  // namespace heddle::internal
