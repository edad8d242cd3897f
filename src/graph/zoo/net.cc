#include "net.h"

#include <algorithm>

#include "heddle/base/spelling.h"

namespace heddle::zoo {
namespace {

constexpr size_t kMaxNodes = 500'000;
// Larger than any machine's memory; below it, sums over kMaxNodes nodes cannot overflow.
constexpr int64_t kMaxTensorBytes = int64_t{1} << 38;

Shape without_overflow(const Shape& shape) { return Shape(shape.size(), 1); }

template <class Key>
Val find_constant(const std::vector<std::pair<Key, Val>>& known, const Key& key) {
  const auto it = std::find_if(known.begin(), known.end(), [&](const auto& e) { return e.first == key; });
  return it == known.end() ? -1 : it->second;
}

}  // namespace

void Net::fail(const std::string& name, const std::string& message) {
  if (status_.ok()) status_ = Error(Code::kInvalidInput, "'" + name + "': " + message);
}

Val Net::push(Value value) {
  const auto bytes = tensor_bytes(value.dtype, value.shape);
  if (!bytes || *bytes > kMaxTensorBytes) {
    fail(value.name, "the tensor " + shape_text(value.shape) + " is too large; give smaller parameters");
    value.shape = without_overflow(value.shape);
  }
  values_.push_back(std::move(value));
  return static_cast<Val>(values_.size()) - 1;
}

int64_t Net::elements(const Shape& shape) const {
  int64_t count = 1;
  for (const int64_t d : shape)
    if (__builtin_mul_overflow(count, d, &count)) return 0;
  return count;
}

Val Net::input(const std::string& name, DType dtype, Shape shape) {
  Value value;
  value.name = name;
  value.dtype = dtype;
  value.shape = std::move(shape);
  inputs_.push_back(push(std::move(value)));
  return inputs_.back();
}

Val Net::weight(const std::string& name, Weight weight) {
  Value value;
  value.name = name;
  value.dtype = float_type_;
  value.shape = weight.shape;
  value.kind = ValueKind::kWeight;
  value.weight = std::move(weight);
  if (value.weight.trained < 0) value.weight.trained = elements(value.shape);
  return push(std::move(value));
}

Val Net::ints(std::vector<int64_t> values) {
  if (const Val known = find_constant(int_constants_, values); known >= 0) return known;
  Value value;
  value.name = "ints_" + std::to_string(int_constants_.size());
  value.dtype = DType::kI64;
  value.shape = {static_cast<int64_t>(values.size())};
  value.kind = ValueKind::kConstant;
  value.ints = values;
  int_constants_.emplace_back(std::move(values), push(std::move(value)));
  return int_constants_.back().second;
}

Val Net::index(int64_t number) {
  if (const Val known = find_constant(indices_, number); known >= 0) return known;
  Value value;
  value.name = "index_" + std::to_string(indices_.size());
  value.dtype = DType::kI64;
  value.kind = ValueKind::kConstant;
  value.ints = {number};
  indices_.emplace_back(number, push(std::move(value)));
  return indices_.back().second;
}

Val Net::scalar(float number) {
  if (const Val known = find_constant(scalars_, number); known >= 0) return known;
  Value value;
  value.name = "scalar_" + std::to_string(scalars_.size());
  value.dtype = float_type_;
  value.kind = ValueKind::kConstant;
  value.floats = {number};
  scalars_.emplace_back(number, push(std::move(value)));
  return scalars_.back().second;
}

std::vector<Val> Net::add(Node node, const std::vector<Shape>& shapes) {
  if (nodes_.size() >= kMaxNodes)
    fail(node.name, "the model has more than " + std::to_string(kMaxNodes) + " nodes");
  const bool keep = status_.ok();
  for (size_t i = 0; i < shapes.size(); ++i) {
    Value value;
    value.name = shapes.size() == 1 ? node.name : node.name + "." + std::to_string(i);
    value.dtype = float_type_;
    value.shape = shapes[i];
    value.producer = static_cast<int>(nodes_.size());
    node.outputs.push_back(push(std::move(value)));
  }
  auto outputs = node.outputs;
  if (keep) nodes_.push_back(std::move(node));
  return outputs;
}

Val Net::add(Node node, Shape shape) { return add(std::move(node), std::vector<Shape>{std::move(shape)})[0]; }

}  // namespace heddle::zoo
