// Model outputs whose size depends on data: padded to the largest size, with the true size beside them.
#include <algorithm>
#include <openvino/core/model.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/convert.hpp>
#include <openvino/op/pad.hpp>
#include <openvino/op/reshape.hpp>
#include <openvino/op/result.hpp>
#include <openvino/op/shape_of.hpp>
#include <openvino/op/subtract.hpp>

#include "model_impl.h"
#include "openvino_reader.h"

namespace heddle::internal {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 30;  // of a padded output

using Output = ov::Output<ov::Node>;
using ov::op::v0::Constant;

// The largest shape; nothing if a dimension has no limit or the tensor would be too large.
std::optional<ov::Shape> largest_shape(const Output& output) {
  const auto& shape = output.get_partial_shape();
  if (shape.is_static() || shape.rank().is_dynamic()) return std::nullopt;
  const DType dtype = dtype_of(output.get_element_type());
  if (dtype == DType::kString || dtype == DType::kUndefined || output.get_element_type().bitwidth() < 8)
    return std::nullopt;
  Shape largest;
  for (const auto& dimension : shape) largest.push_back(dimension.get_max_length());
  if (std::ranges::any_of(largest, [](int64_t d) { return d < 1; })) return std::nullopt;
  const auto bytes = tensor_bytes(dtype, largest);
  if (!bytes || *bytes > kMostBytes) return std::nullopt;
  return ov::Shape(largest.begin(), largest.end());
}

Shape open_shape(const ov::PartialShape& shape) {
  Shape open;
  for (const auto& dimension : shape) open.push_back(dimension.is_static() ? dimension.get_length() : -1);
  return open;
}

// `value` in the front corner of a tensor of the shape `largest`, zeros in the rest.
Output pad(const Output& value, const Output& size, const ov::Shape& largest) {
  const size_t rank = largest.size();
  const auto limits =
      Constant::create(ov::element::i64, {rank}, std::vector<int64_t>(largest.begin(), largest.end()));
  const auto begin = Constant::create(ov::element::i64, {rank}, std::vector<int64_t>(rank, 0));
  const auto end = std::make_shared<ov::op::v1::Subtract>(limits, size);
  const auto type = value.get_element_type();
  const auto zero = Constant::create(type, {}, {0});
  const auto padded = std::make_shared<ov::op::v1::Pad>(value, begin, end, zero, ov::op::PadMode::CONSTANT);
  // Tells shape inference the result's size.
  return std::make_shared<ov::op::v1::Reshape>(padded, limits, false)->output(0);
}

}  // namespace

std::vector<SizedOutput> size_outputs(ov::Model& model) {
  std::vector<SizedOutput> sized;
  const auto results = model.get_results();
  for (size_t i = 0; i < results.size(); ++i) {
    const auto value = results[i]->input_value(0);
    const auto largest = largest_shape(value);
    if (!largest) continue;
    // Copies: both change below.
    const auto open = value.get_partial_shape();  // NOLINT(performance-unnecessary-copy-initialization)
    const auto names = value.get_names();         // NOLINT(performance-unnecessary-copy-initialization)
    const std::string name = results[i]->get_friendly_name();
    const auto size = std::make_shared<ov::op::v3::ShapeOf>(value, ov::element::i64);
    const auto padded = pad(value, size->output(0), *largest);
    value.get_tensor().set_names({});
    padded.get_tensor().set_names(names);
    padded.get_node()->set_friendly_name(value.get_node()->get_friendly_name() + ".padded");
    const std::string base = names.empty() ? name : *std::min_element(names.begin(), names.end());
    size->set_friendly_name(base + ".shape");
    size->output(0).get_tensor().set_names({base + ".shape"});
    results[i]->input(0).replace_source_output(padded);
    results[i]->validate_and_infer_types();
    sized.push_back({i, model.get_results().size(), open_shape(open)});
    model.add_results({std::make_shared<ov::op::v0::Result>(size)});
  }
  return sized;
}

}  // namespace heddle::internal
