// ImportOptions::split_bytes: splits a matrix product with a large constant into several and a concatenation.
#include <algorithm>
#include <openvino/core/model.hpp>
#include <openvino/op/broadcast.hpp>
#include <openvino/op/concat.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/matmul.hpp>
#include <openvino/op/slice.hpp>
#include <openvino/op/util/broadcast_base.hpp>

#include "model_impl.h"

namespace heddle::internal {
namespace {

using ov::op::v0::Constant;
using ov::op::v0::MatMul;

// Pieces end at multiples of this many columns, so that kernels have full vectors except at the very end.
constexpr int64_t kColumns = 64;

std::shared_ptr<Constant> index(int64_t value) {
  return Constant::create(ov::element::i64, ov::Shape{1}, {value});
}

// Rows [from, to), sharing the constant's memory.
ov::Output<ov::Node> rows_of(const std::shared_ptr<Constant>& weights, int64_t from, int64_t to) {
  const ov::Shape& shape = weights->get_shape();
  const size_t row = weights->get_byte_size() / shape[0];
  const auto* data = static_cast<const std::byte*>(weights->get_data_ptr());
  return std::make_shared<Constant>(weights->get_element_type(),
                                    ov::Shape{static_cast<size_t>(to - from), shape[1]},
                                    data + row * static_cast<size_t>(from), weights);
}

// Output columns [from, to) of a product's weights. `axis`: of the columns; 0 if transposed.
ov::Output<ov::Node> columns_of(const ov::Output<ov::Node>& weights, int64_t axis, int64_t from, int64_t to) {
  const auto node = weights.get_node_shared_ptr();
  if (const auto constant = ov::as_type_ptr<Constant>(node)) {
    if (axis == 0) return rows_of(constant, from, to);
    return std::make_shared<ov::op::v8::Slice>(constant, index(from), index(to), index(1), index(axis));
  }
  // A broadcast scalar.
  ov::Shape shape = weights.get_shape();
  shape[static_cast<size_t>(axis)] = static_cast<size_t>(to - from);
  const auto target = Constant::create(ov::element::i64, ov::Shape{shape.size()},
                                       std::vector<int64_t>(shape.begin(), shape.end()));
  return std::make_shared<ov::op::v3::Broadcast>(node->input_value(0), target);
}

// True if columns can be taken without materialising the whole matrix.
bool divisible(const ov::Output<ov::Node>& weights) {
  const auto node = weights.get_node_shared_ptr();
  if (const auto constant = ov::as_type_ptr<Constant>(node)) {
    const size_t bits = constant->get_element_type().bitwidth();
    return bits >= 8 && constant->get_element_type() != ov::element::string && constant->get_byte_size() > 0;
  }
  if (std::dynamic_pointer_cast<ov::op::util::BroadcastBase>(node) == nullptr) return false;
  const auto value = ov::as_type_ptr<Constant>(node->get_input_node_shared_ptr(0));
  return value != nullptr && ov::shape_size(value->get_shape()) == 1;
}

void split(const std::shared_ptr<MatMul>& product, int64_t bytes) {
  const auto weights = product->input_value(1);
  const auto& output = product->get_output_partial_shape(0);
  if (weights.get_partial_shape().is_dynamic() || weights.get_shape().size() != 2 || !divisible(weights) ||
      output.is_dynamic() || output.size() < 2)
    return;
  const int64_t axis = product->get_transpose_b() ? 0 : 1;
  const auto columns = static_cast<int64_t>(weights.get_shape()[static_cast<size_t>(axis)]);
  const size_t size = weights.get_element_type().bitwidth() / 8 * ov::shape_size(weights.get_shape());
  const int64_t wanted = (static_cast<int64_t>(size) + bytes - 1) / bytes;
  const int64_t blocks = (columns + kColumns - 1) / kColumns;
  int64_t pieces = std::min(wanted, blocks);
  if (pieces < 2) return;
  // The first column of a piece. Whole blocks are dealt out, so with as many pieces as wanted one may be too large.
  const auto begin = [&](int64_t i) { return std::min(columns, blocks * i / pieces * kColumns); };
  const int64_t column_bytes = static_cast<int64_t>(size) / columns;
  const auto fit = [&] {
    for (int64_t i = 0; i < pieces; ++i)
      if ((begin(i + 1) - begin(i)) * column_bytes > bytes) return false;
    return true;
  };
  while (pieces < blocks && !fit()) ++pieces;
  ov::OutputVector parts;
  for (int64_t i = 0; i < pieces; ++i) {
    const int64_t from = begin(i), to = begin(i + 1);
    parts.push_back(std::make_shared<MatMul>(product->input_value(0), columns_of(weights, axis, from, to),
                                             product->get_transpose_a(), product->get_transpose_b()));
  }
  const auto whole = std::make_shared<ov::op::v0::Concat>(parts, -1);
  whole->set_friendly_name(product->get_friendly_name());
  product->output(0).replace(whole->output(0));
}

}  // namespace

void split_weights(ov::Model& model, int64_t bytes) {
  for (const auto& node : model.get_ordered_ops()) {
    if (const auto product = ov::as_type_ptr<MatMul>(node)) split(product, bytes);
  }
}

}  // namespace heddle::internal
