// Applies ImportOptions' shapes and batch to a model's inputs.
#include <algorithm>
#include <map>
#include <openvino/core/model.hpp>

#include "heddle/base/spelling.h"
#include "openvino_reader.h"

namespace heddle::internal {
namespace {

// "?x3x?x?".
std::string partial_text(const ov::PartialShape& shape) {
  if (shape.rank().is_dynamic()) return "of unknown rank";
  std::string text;
  for (const auto& d : shape)
    text += (text.empty() ? "" : "x") + (d.is_static() ? std::to_string(d.get_length()) : std::string("?"));
  return text.empty() ? "scalar" : text;
}

std::string name_of(const ov::op::v0::Parameter& p) { return p.get_friendly_name(); }

using DimNames = std::vector<std::string_view>;

// "x=1,3,224,224" with the known dimensions; each unknown one by its name or a letter.
std::string example(const std::string& name, const ov::PartialShape& shape, const DimNames& names) {
  if (shape.rank().is_dynamic()) return name + "=N,...";
  std::string text = name + "=";
  static constexpr const char* kLetters[] = {"N", "C", "H", "W", "D5", "D6", "D7", "D8"};
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ',';
    text += shape[i].is_static()                    ? std::to_string(shape[i].get_length())
            : i < names.size() && !names[i].empty() ? std::string(names[i])
            : i < std::size(kLetters)               ? kLetters[i]
                                                    : "D" + std::to_string(i + 1);
  }
  return text;
}

// The names of the input's dimensions in the file. Some exporters give one name to all dimensions that they do
// not know, so a name that an input has twice says nothing.
DimNames dim_names(const OnnxModel* onnx, const std::string& input) {
  if (onnx == nullptr) return {};
  for (const auto& value : onnx->graph.inputs) {
    if (value.name != input) continue;
    DimNames names = value.dim_names;
    for (auto& name : names)
      if (std::ranges::count(value.dim_names, name) > 1) name = {};
    return names;
  }
  return {};
}

// Sets each open dimension that has the name of a known one.
class NamedDimensions {
 public:
  void learn(const ov::PartialShape& shape, const DimNames& names) {
    for (size_t i = 0; i < names.size() && i < size_of(shape); ++i)
      if (!names[i].empty() && shape[i].is_static()) known_.emplace(names[i], shape[i]);
  }
  void fill(ov::PartialShape& shape, const DimNames& names) const {
    for (size_t i = 0; i < names.size() && i < size_of(shape); ++i)
      if (const auto it = known_.find(names[i]); it != known_.end() && shape[i].is_dynamic())
        shape[i] = it->second;
  }

 private:
  static size_t size_of(const ov::PartialShape& shape) { return shape.rank().is_static() ? shape.size() : 0; }
  std::map<std::string_view, ov::Dimension> known_;
};

Status set_dimensions(const std::string& name, const Shape& wanted, ov::PartialShape& shape) {
  const std::string what = "input " + quote_text(name) + " has shape " + partial_text(shape) +
                           ", but --shape gives it " + shape_text(wanted);
  for (const auto d : wanted)
    if (d < 1) return invalid_input(what + "; dimensions must be at least 1");
  if (!tensor_bytes(DType::kF64, wanted)) return invalid_input(what + ", more than fits in memory");
  if (shape.rank().is_dynamic()) {
    shape = ov::PartialShape::dynamic(static_cast<int64_t>(wanted.size()));
  } else if (shape.size() != wanted.size()) {
    return invalid_input(what + "; the number of dimensions differs");
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!shape[i].compatible(wanted[i]))
      return invalid_input(what + "; dimension " + std::to_string(i) + " does not fit");
    shape[i] = wanted[i];
  }
  return {};
}

Status check_known_names(const ov::Model& model, const ImportOptions& options) {
  std::vector<std::string> names;
  for (const auto& p : model.get_parameters()) names.push_back(name_of(*p));
  for (const auto& [name, shape] : options.shapes) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return invalid_input("--shape names input " + quote_text(name) + ", which the model does not have" +
                           did_you_mean(name, names) + "; its inputs are " +
                           (names.empty() ? "none" : join_names(names)));
    }
  }
  return {};
}

}  // namespace

Result<InputShapes> wanted_shapes(const ov::Model& model, const ImportOptions& options,
                                  const OnnxModel* onnx) {
  HEDDLE_RETURN_IF_ERROR(check_known_names(model, options));
  if (options.batch && *options.batch < 1)
    return invalid_input("--batch gives " + std::to_string(*options.batch) + ", expected at least 1");
  InputShapes result;
  const auto& parameters = model.get_parameters();
  std::vector<ov::PartialShape> shapes;
  std::vector<DimNames> names;
  NamedDimensions named;
  for (const auto& p : parameters) {
    shapes.push_back(p->get_partial_shape());
    names.push_back(dim_names(onnx, name_of(*p)));
    const auto given = options.shapes.find(name_of(*p));
    if (given == options.shapes.end()) continue;
    HEDDLE_RETURN_IF_ERROR(set_dimensions(given->first, given->second, shapes.back()));
    named.learn(shapes.back(), names.back());
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    auto& shape = shapes[i];
    named.fill(shape, names[i]);
    if (shape.rank().is_dynamic() || shape.size() == 0 || shape[0].is_static()) continue;
    if (!options.batch) result.assumed.push_back(name_of(*parameters[i]));
    shape[0] = options.batch.value_or(1);
    named.learn(shape, names[i]);
  }
  std::string open;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& p = *parameters[i];
    named.fill(shapes[i], names[i]);
    if (shapes[i].is_dynamic()) {
      open += (open.empty() ? "" : "; ") +
              ("input " + quote_text(name_of(p)) + " has shape " + partial_text(p.get_partial_shape()) +
               ": give it with --shape " + example(name_of(p), shapes[i], names[i]));
    }
    if (shapes[i] != p.get_partial_shape()) result.changes.emplace_back(i, shapes[i]);
  }
  if (!open.empty()) return invalid_input(open);
  return result;
}

}  // namespace heddle::internal
