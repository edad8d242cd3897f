// Checks of an ONNX file's tensors: types, sizes, external data.
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "heddle/base/spelling.h"
#include "onnx_check.h"

namespace heddle::internal {
namespace {

// The field in which TensorProto keeps a type's elements if they are not raw bytes.
enum class Store { kNone, kFloat, kInt32, kInt64, kUint64, kDouble, kString };

struct ElementType {
  const char* name;
  int bits;  // per element in raw data
  Store store;
  int per_item;    // elements per item of the typed list (packed small types)
  bool supported;  // by OpenVINO
};

// In the order of onnx.TensorProto.DataType.
constexpr std::array<ElementType, 27> kTypes = {{
    {"undefined", 0, Store::kNone, 1, false},
    {"float", 32, Store::kFloat, 1, true},
    {"uint8", 8, Store::kInt32, 1, true},
    {"int8", 8, Store::kInt32, 1, true},
    {"uint16", 16, Store::kInt32, 1, true},
    {"int16", 16, Store::kInt32, 1, true},
    {"int32", 32, Store::kInt32, 1, true},
    {"int64", 64, Store::kInt64, 1, true},
    {"string", 0, Store::kString, 1, true},
    {"bool", 8, Store::kInt32, 1, true},
    {"float16", 16, Store::kInt32, 1, true},
    {"double", 64, Store::kDouble, 1, true},
    {"uint32", 32, Store::kUint64, 1, true},
    {"uint64", 64, Store::kUint64, 1, true},
    {"complex64", 64, Store::kFloat, 1, false},
    {"complex128", 128, Store::kDouble, 1, false},
    {"bfloat16", 16, Store::kInt32, 1, true},
    {"float8e4m3fn", 8, Store::kInt32, 1, true},
    {"float8e4m3fnuz", 8, Store::kInt32, 1, false},
    {"float8e5m2", 8, Store::kInt32, 1, true},
    {"float8e5m2fnuz", 8, Store::kInt32, 1, false},
    {"uint4", 4, Store::kInt32, 2, true},
    {"int4", 4, Store::kInt32, 2, true},
    {"float4e2m1", 4, Store::kInt32, 2, true},
    {"float8e8m0", 8, Store::kInt32, 1, true},
    {"uint2", 2, Store::kInt32, 4, false},
    {"int2", 2, Store::kInt32, 4, false},
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

std::string dims_text(const std::vector<int64_t>& dims) {
  std::string text;
  for (const auto d : dims) text += (text.empty() ? "" : "x") + std::to_string(d);
  return text.empty() ? "scalar" : text;
}

int64_t stored_items(const OnnxTensor& t, Store store) {
  switch (store) {
    case Store::kFloat:
      return t.floats;
    case Store::kInt32:
      return t.int32s;
    case Store::kInt64:
      return t.int64s;
    case Store::kUint64:
      return t.uint64s;
    case Store::kDouble:
      return t.doubles;
    case Store::kString:
      return t.strings;
    case Store::kNone:
      break;
  }
  return 0;
}

// The raw size; the caller has excluded overflow.
int64_t raw_bytes(const ElementType& type, int64_t count) { return (count * type.bits + 7) / 8; }

Status check_data(const OnnxTensor& t, const ElementType& type, int64_t count, const std::string& what) {
  const int64_t all = t.floats + t.int32s + t.strings + t.int64s + t.doubles + t.uint64s;
  const int64_t items = stored_items(t, type.store);
  if (all != items) return invalid_input(what + " keeps its data in a list of another type");
  if (t.has_raw && items > 0) return invalid_input(what + " has its data twice, raw and as a list");
  if (t.has_raw) {
    const int64_t wanted = raw_bytes(type, count);
    if (type.store == Store::kString) return invalid_input(what + " has raw data, which strings cannot be");
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
std::optional<int64_t> parse_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || text[0] == '-' || error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

// The entries of a tensor's external_data; each key at most once.
struct Location {
  std::string path;
  int64_t offset = 0;
  std::optional<int64_t> length;
};

Result<Location> parse_location(const OnnxTensor& t) {
  Location result;
  bool path = false, offset = false, length = false;
  for (const auto& e : t.external_data) {
    bool* seen = e.key == "location" ? &path
                 : e.key == "offset" ? &offset
                 : e.key == "length" ? &length
                                     : nullptr;
    if (seen == nullptr) continue;
    if (*seen) return invalid_input("its external data gives " + quote_text(e.key) + " twice");
    *seen = true;
    if (e.key == "location") {
      result.path = e.value;
      continue;
    }
    const auto number = parse_number(e.value);
    if (!number)
      return invalid_input("its external data has " + std::string(e.key) + " " + quote_text(e.value) +
                           ", expected a whole number of bytes, at least 0");
    if (e.key == "offset")
      result.offset = *number;
    else
      result.length = *number;
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
  for (size_t start = 0; start <= location.size();) {
    const size_t end = std::min(location.find('/', start), location.size());
    if (location.compare(start, end - start, "..") == 0)
      return invalid_input(what + ", which leads out of the model's folder");
    start = end + 1;
  }
  return {};
}

std::optional<std::string> real_path(const std::string& path) {
  char buffer[PATH_MAX];
  if (::realpath(path.c_str(), buffer) == nullptr) return std::nullopt;
  return std::string(buffer);
}

}  // namespace

Status check_element_type(int64_t type) {
  if (type < 0 || type >= static_cast<int64_t>(kTypes.size()) || type == 0)
    return invalid_input("element type " + std::to_string(type) + " does not exist");
  const auto& facts = kTypes[static_cast<size_t>(type)];
  if (!facts.supported)
    return Error(Code::kUnsupported,
                 std::string("element type ") + facts.name + " is not supported by OpenVINO");
  return {};
}

Status check_tensor(const OnnxTensor& t) {
  HEDDLE_RETURN_IF_ERROR(check_element_type(t.data_type));
  const auto& type = kTypes[static_cast<size_t>(t.data_type)];
  for (const auto d : t.dims)
    if (d < 0) return invalid_input("has shape " + dims_text(t.dims) + "; dimensions must be at least 0");
  const auto count = element_count(t.dims);
  int64_t bits = 0;
  if (!count || __builtin_mul_overflow(*count, std::max(type.bits, 64), &bits))
    return invalid_input("has shape " + dims_text(t.dims) + ", more than fits in memory");
  const std::string what = "of type " + std::string(type.name) + " and shape " + dims_text(t.dims);
  if (!t.external) return check_data(t, type, *count, what);
  if (t.has_raw || stored_items(t, type.store) > 0)
    return invalid_input(what + " has its data twice, in the file and in another");
  if (type.store == Store::kString)
    return invalid_input(what + " has external data, which strings cannot have");
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
    return invalid_input("of shape " + dims_text(t.dims) + " needs " + std::to_string(wanted) +
                         " bytes, but its external data has length " + std::to_string(*at.length));
  }
  if (at.offset > size || wanted > size - at.offset) {
    return invalid_input("needs " + std::to_string(wanted) + " bytes at offset " + std::to_string(at.offset) +
                         " of " + quote_text(at.path) + ", which has " + std::to_string(size) + " bytes");
  }
  return {};
}

Result<int64_t> ExternalFiles::file_size(const std::string& location) {
  for (const auto& [path, size] : sizes_)
    if (path == location) return size;
  const std::string what = "its external data " + quote_text(location);
  const auto inside = real_path(folder_ + "/" + location);
  if (!inside) return Error(Code::kNotFound, what + " cannot be read: " + std::strerror(errno));
  if (real_folder_.empty()) real_folder_ = real_path(folder_).value_or("");
  const std::string prefix = real_folder_ == "/" ? "/" : real_folder_ + "/";
  if (inside->compare(0, prefix.size(), prefix) != 0)
    return invalid_input(what + " is a link that leads out of the model's folder");
  struct stat info {};
  if (::stat(inside->c_str(), &info) != 0)
    return Error(Code::kIo, what + " cannot be read: " + std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return invalid_input(what + " is not a regular file");
  sizes_.emplace_back(location, info.st_size);
  return static_cast<int64_t>(info.st_size);
}

int64_t ExternalFiles::total_bytes() const {
  int64_t sum = 0;
  for (const auto& [path, size] : sizes_) sum += size;
  return sum;
}

}  // namespace heddle::internal
