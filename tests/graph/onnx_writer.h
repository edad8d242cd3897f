// A few lines of protobuf that write ONNX models for tests, both valid and invalid.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::onnx_writer {

inline std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
inline std::string number(int field, int64_t value) {
  return varint(static_cast<uint64_t>(field) << 3) + varint(static_cast<uint64_t>(value));
}
inline std::string bytes(int field, std::string_view value) {
  return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(value.size()) + std::string(value);
}

inline constexpr int kFloat = 1, kInt64 = 7, kString = 8, kBool = 9;

// ValueInfoProto. -1 is written as a dim_param; other negative dimensions are written as they are.
inline std::string value(std::string_view name, const std::vector<int64_t>& dims, int type = kFloat) {
  std::string shape;
  for (const auto d : dims) shape += bytes(1, d == -1 ? bytes(2, "d") : number(1, d));
  return bytes(1, name) + bytes(2, bytes(1, number(1, type) + bytes(2, shape)));
}

// Dimensions as text: a number, or a name.
inline std::string named_value(std::string_view name, const std::vector<std::string>& dims,
                               int type = kFloat) {
  std::string shape;
  for (const auto& d : dims)
    shape += bytes(
        1, d.find_first_not_of("0123456789") == std::string::npos ? number(1, std::stoll(d)) : bytes(2, d));
  return bytes(1, name) + bytes(2, bytes(1, number(1, type) + bytes(2, shape)));
}

inline std::string tensor_head(std::string_view name, const std::vector<int64_t>& dims, int type = kFloat) {
  std::string out;
  for (const auto d : dims) out += number(1, d);
  return out + number(2, type) + bytes(8, name);
}
inline std::string raw_tensor(std::string_view name, const std::vector<int64_t>& dims, std::string_view raw,
                              int type = kFloat) {
  return tensor_head(name, dims, type) + bytes(9, raw);
}
template <class T>
std::string raw_of(const std::vector<T>& values) {
  std::string out(values.size() * sizeof(T), '\0');
  std::memcpy(out.data(), values.data(), out.size());
  return out;
}
inline std::string float_tensor(std::string_view name, const std::vector<int64_t>& dims,
                                const std::vector<float>& values) {
  return raw_tensor(name, dims, raw_of(values));
}
inline std::string int_tensor(std::string_view name, const std::vector<int64_t>& dims,
                              const std::vector<int64_t>& values) {
  return raw_tensor(name, dims, raw_of(values), kInt64);
}
inline std::string external_tensor(std::string_view name, const std::vector<int64_t>& dims,
                                   const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string out = tensor_head(name, dims);
  for (const auto& [key, text] : entries) out += bytes(13, bytes(1, key) + bytes(2, text));
  return out + number(14, 1);
}

inline std::string attribute_int(std::string_view name, int64_t v) {
  return bytes(1, name) + number(3, v) + number(20, 2);
}
inline std::string attribute_ints(std::string_view name, const std::vector<int64_t>& values) {
  std::string out = bytes(1, name);
  for (const auto v : values) out += number(8, v);
  return out + number(20, 7);
}
// The value of the attribute that the function is called with.
inline std::string attribute_reference(std::string_view name, std::string_view of, int type) {
  return bytes(1, name) + number(20, type) + bytes(21, of);
}
inline std::string attribute_graph(std::string_view name, const std::string& graph) {
  return bytes(1, name) + bytes(6, graph) + number(20, 5);
}
inline std::string attribute_tensor(std::string_view name, const std::string& tensor) {
  return bytes(1, name) + bytes(5, tensor) + number(20, 4);
}

inline std::string node(std::string_view type, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, std::string_view name = "",
                        const std::vector<std::string>& attributes = {}, std::string_view domain = "") {
  std::string out;
  for (const auto& i : inputs) out += bytes(1, i);
  for (const auto& o : outputs) out += bytes(2, o);
  if (!name.empty()) out += bytes(3, name);
  out += bytes(4, type);
  for (const auto& a : attributes) out += bytes(5, a);
  return domain.empty() ? out : out + bytes(7, domain);
}

struct GraphParts {
  std::vector<std::string> nodes, inputs, outputs, initializers;
};
inline std::string graph(const GraphParts& parts, std::string_view name = "g") {
  std::string out;
  for (const auto& n : parts.nodes) out += bytes(1, n);
  out += bytes(2, name);
  for (const auto& t : parts.initializers) out += bytes(5, t);
  for (const auto& v : parts.inputs) out += bytes(11, v);
  for (const auto& v : parts.outputs) out += bytes(12, v);
  return out;
}
// FunctionProto of the domain "own", from a to b.
inline std::string function(std::string_view name, const std::vector<std::string>& nodes,
                            const std::vector<std::string>& defaults = {}, int64_t opset = 17) {
  std::string out = bytes(1, name) + bytes(4, "a") + bytes(5, "b");
  for (const auto& n : nodes) out += bytes(7, n);
  out += bytes(9, number(2, opset)) + bytes(10, "own");
  for (const auto& d : defaults) out += bytes(11, d);
  return out;
}
inline std::string model(const std::string& graph, int64_t opset = 17) {
  return number(1, 8) + bytes(7, graph) + bytes(8, number(2, opset));
}
inline std::string model(const GraphParts& parts, int64_t opset = 17) { return model(graph(parts), opset); }

}  // namespace heddle::onnx_writer
