// Checks of an ONNX file's tensors: types, sizes, external data.
#include <array>
#include <filesystem>
#include <optional>
#include <set>

#include "heddle/base/errors.h"
#include "heddle/base/numbers.h"
#include "heddle/base/spelling.h"
#include "onnx_check.h"

namespace heddle::internal {
namespace {

// Number of elements in the list in which TensorProto keeps a type's elements if they are not raw bytes.
using List = int64_t OnnxTensor::*;
constexpr List kFloats = &OnnxTensor::floats, kInt32s = &OnnxTensor::int32s, kInt64s = &OnnxTensor::int64s,
               kUint64s = &OnnxTensor::uint64s, kDoubles = &OnnxTensor::doubles,
               kStrings = &OnnxTensor::strings;

struct ElementType {
  const char* name;
  int bits;  // per element in raw data
  List list;
  int per_item;    // elements per item of the typed list (packed small types)
  bool supported;  // by OpenVINO
};

// In the order of onnx.TensorProto.DataType.
constexpr std::array<ElementType, 27> kTypes = {{
    {"undefined", 0, nullptr, 1, false},
    {"float", 32, kFloats, 1, true},
    {"uint8", 8, kInt32s, 1, true},
    {"int8", 8, kInt32s, 1, true},
    {"uint16", 16, kInt32s, 1, true},
    {"int16", 16, kInt32s, 1, true},
    {"int32", 32, kInt32s, 1, true},
    {"int64", 64, kInt64s, 1, true},
    {"string", 0, kStrings, 1, true},
    {"bool", 8, kInt32s, 1, true},
    {"float16", 16, kInt32s, 1, true},
    {"double", 64, kDoubles, 1, true},
    {"uint32", 32, kUint64s, 1, true},
    {"uint64", 64, kUint64s, 1, true},
    {"complex64", 64, kFloats, 1, false},
    {"complex128", 128, kDoubles, 1, false},
    {"bfloat16", 16, kInt32s, 1, true},
    {"float8e4m3fn", 8, kInt32s, 1, true},
    {"float8e4m3fnuz", 8, kInt32s, 1, false},
    {"float8e5m2", 8, kInt32s, 1, true},
    {"float8e5m2fnuz", 8, kInt32s, 1, false},
    {"uint4", 4, kInt32s, 2, true},
    {"int4", 4, kInt32s, 2, true},
    {"float4e2m1", 4, kInt32s, 2, true},
    {"float8e8m0", 8, kInt32s, 1, true},
    {"uint2", 2, kInt32s, 4, false},
    {"int2", 2, kInt32s, 4, false},
}};

// nullopt on overflow. All dimensions are known to be at least 0.
std::optional<int64_t> element_count(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const auto d : dims)
    if (d == 0) return 0;
  for (const auto d : dims)
    if (__builtin_mul_overflow(count, d, &count)) return std::nullopt;
  return count;
}

// The raw size; the caller has excluded overflow.
int64_t raw_bytes(const ElementType& type, int64_t count) { return (count * type.bits + 7) / 8; }

Status check_data(const OnnxTensor& t, const ElementType& type, int64_t count, const std::string& what) {
  const int64_t all = t.floats + t.int32s + t.strings + t.int64s + t.doubles + t.uint64s;
  const int64_t items = t.*type.list;
  if (all != items) return invalid_input(what + " keeps its data in a list of another type");
  if (t.has_raw && items > 0) return invalid_input(what + " has its data twice, raw and as a list");
  if (t.has_raw) {
    const int64_t wanted = raw_bytes(type, count);
    if (type.list == kStrings) return invalid_input(what + " has raw data, which strings cannot be");
    if (static_cast<int64_t>(t.raw.size()) == wanted) return {};
    return invalid_input(what + " needs " + std::to_string(wanted) + " bytes, but has " +
                         std::to_string(t.raw.size()));
  }
  const int64_t wanted = (count + type.per_item - 1) / type.per_item;
  if (items == wanted) return {};
  return invalid_input(what + " needs " + std::to_string(wanted) + " numbers, but has " +
                       std::to_string(items));
}

// Decimal digits only, because importers differ in what else they accept.
std::optional<int64_t> parse_digits(std::string_view text) {
  return text.starts_with('-') ? std::nullopt : parse_number<int64_t>(text);
}

// The entries of a tensor's external_data; each key at most once.
struct Location {
  std::string path;
  int64_t offset = 0;
  std::optional<int64_t> length;
};

Result<Location> parse_location(const OnnxTensor& t) {
  Location result;
  std::set<std::string_view> seen;
  for (const auto& e : t.external_data) {
    if (e.key != "location" && e.key != "offset" && e.key != "length") continue;
    if (!seen.insert(e.key).second)
      return invalid_input("its external data gives " + quote_text(e.key) + " twice");
    if (e.key == "location") {
      result.path = e.value;
      continue;
    }
    const auto number = parse_digits(e.value);
    if (!number)
      return invalid_input("its external data has " + std::string(e.key) + " " + quote_text(e.value) +
                           ", expected a whole number of bytes, at least 0");
    (e.key == "offset" ? result.offset : result.length.emplace()) = *number;
  }
  if (result.path.empty())
    return invalid_input("its external data names no file (the key 'location' is missing)");
  return result;
}

// Checks the text before any file is touched. OpenVINO and ONNX Runtime use "*/_ORT_MEM_ADDR_/*" to say "the
// offset is a memory address"; a file must never contain it.
Status check_location_text(const std::string& location) {
  const std::string what = "its external data lies in " + quote_text(location);
  if (location.find('\0') != std::string::npos) return invalid_input(what + ", which is no file name");
  if (location[0] == '/' || location.find('\\') != std::string::npos ||
      (location.size() > 1 && location[1] == ':'))
    return invalid_input(what + ", expected a path relative to the model's folder");
  if (location.find("_ORT_MEM_ADDR_") != std::string::npos)
    return invalid_input(what + ", which is not a file but a place in memory");
  for (const auto& part : std::filesystem::path(location))
    if (part == "..") return invalid_input(what + ", which leads out of the model's folder");
  return {};
}

}  // namespace

Status check_element_type(int64_t type) {
  if (type < 0 || type >= static_cast<int64_t>(kTypes.size()) || type == 0)
    return invalid_input("element type " + std::to_string(type) + " does not exist");
  return {};
}

std::string element_type_name(int64_t type) {
  return check_element_type(type).ok() ? kTypes[static_cast<size_t>(type)].name : std::to_string(type);
}

Status check_openvino_types(const OnnxGraph& graph) {
  const auto check = [](const auto& list, const char* what, auto type_of) -> Status {
    for (const auto& item : list) {
      const int64_t type = type_of(item);
      if (type > 0 && type < static_cast<int64_t>(kTypes.size()) &&
          !kTypes[static_cast<size_t>(type)].supported)
        return unsupported(std::string(what) + " " + quote_text(item.name) + ": element type " +
                           element_type_name(type) + " is not supported by OpenVINO");
    }
    return {};
  };
  const auto of_value = [](const OnnxValue& v) { return v.elem_type; };
  const auto of_tensor = [](const OnnxTensor& t) { return t.data_type; };
  HEDDLE_RETURN_IF_ERROR(check(graph.inputs, "input", of_value));
  HEDDLE_RETURN_IF_ERROR(check(graph.outputs, "output", of_value));
  HEDDLE_RETURN_IF_ERROR(check(graph.values, "value", of_value));
  HEDDLE_RETURN_IF_ERROR(check(graph.initializers, "initializer", of_tensor));
  for (const auto& node : graph.nodes) {
    for (const auto& attribute : node.attributes) {
      HEDDLE_RETURN_IF_ERROR(with_context(check(attribute.tensors, "tensor", of_tensor), node_text(node)));
      for (const auto& inner : attribute.graphs)
        HEDDLE_RETURN_IF_ERROR(with_context(check_openvino_types(*inner), node_text(node)));
    }
  }
  return {};
}

Status check_tensor(const OnnxTensor& t) {
  HEDDLE_RETURN_IF_ERROR(check_element_type(t.data_type));
  const auto& type = kTypes[static_cast<size_t>(t.data_type)];
  for (const auto d : t.dims)
    if (d < 0) return invalid_input("has shape " + shape_text(t.dims) + "; dimensions must be at least 0");
  const auto count = element_count(t.dims);
  int64_t bits = 0;
  if (!count || __builtin_mul_overflow(*count, std::max(type.bits, 64), &bits))
    return invalid_input("has shape " + shape_text(t.dims) + ", more than fits in memory");
  const std::string what = "of type " + std::string(type.name) + " and shape " + shape_text(t.dims);
  if (!t.external) return check_data(t, type, *count, what);
  if (t.has_raw || t.*type.list > 0)
    return invalid_input(what + " has its data twice, in the file and in another");
  if (type.list == kStrings) return invalid_input(what + " has external data, which strings cannot have");
  return {};
}

Status ExternalFiles::check(const OnnxTensor& t) {
  if (!t.external) return {};
  HEDDLE_ASSIGN_OR_RETURN(const Location at, parse_location(t));
  HEDDLE_RETURN_IF_ERROR(check_location_text(at.path));
  HEDDLE_ASSIGN_OR_RETURN(const int64_t size, file_size(at.path));
  const int64_t wanted =
      raw_bytes(kTypes[static_cast<size_t>(t.data_type)], element_count(t.dims).value_or(0));
  if (at.length && *at.length != wanted) {
    return invalid_input("of shape " + shape_text(t.dims) + " needs " + std::to_string(wanted) +
                         " bytes, but its external data has length " + std::to_string(*at.length));
  }
  if (at.offset > size || wanted > size - at.offset) {
    return invalid_input("needs " + std::to_string(wanted) + " bytes at offset " + std::to_string(at.offset) +
                         " of " + quote_text(at.path) + ", which has " + std::to_string(size) + " bytes");
  }
  return {};
}

Result<int64_t> ExternalFiles::file_size(const std::string& location) {
  namespace fs = std::filesystem;
  if (const auto known = sizes_.find(location); known != sizes_.end()) return known->second;
  const std::string what = "its external data " + quote_text(location);
  std::error_code error;
  const fs::path file = fs::canonical(fs::path(folder_) / location, error);
  if (error) return not_found(what + " cannot be read: " + error.message());
  const fs::path inside = file.lexically_relative(fs::canonical(folder_, error));
  if (inside.empty() || *inside.begin() == "..")
    return invalid_input(what + " is a link that leads out of the model's folder");
  if (!fs::is_regular_file(file, error)) return invalid_input(what + " is not a regular file");
  const auto size = static_cast<int64_t>(fs::file_size(file, error));
  if (error) return io_error(what + " cannot be read: " + error.message());
  return sizes_[location] = size;
}

}  // namespace heddle::internal
