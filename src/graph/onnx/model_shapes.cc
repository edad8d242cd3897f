// Applies ImportOptions' shapes and batch to a model's inputs.
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

// "x=1,3,224,224" with the known dimensions, and a letter for each unknown one.
std::string example(const std::string& name, const ov::PartialShape& shape) {
  if (shape.rank().is_dynamic()) return name + "=N,...";
  std::string text = name + "=";
  static constexpr const char* kLetters[] = {"N", "C", "H", "W", "D5", "D6", "D7", "D8"};
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ",";
    text += shape[i].is_static()      ? std::to_string(shape[i].get_length())
            : i < std::size(kLetters) ? kLetters[i]
                                      : "D" + std::to_string(i + 1);
  }
  return text;
}

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

Result<InputShapes> wanted_shapes(const ov::Model& model, const ImportOptions& options) {
  HEDDLE_RETURN_IF_ERROR(check_known_names(model, options));
  if (options.batch && *options.batch < 1)
    return invalid_input("--batch gives " + std::to_string(*options.batch) + ", expected at least 1");
  InputShapes result;
  std::string open;
  const auto& parameters = model.get_parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& p = *parameters[i];
    ov::PartialShape shape = p.get_partial_shape();
    const auto given = options.shapes.find(name_of(p));
    if (given != options.shapes.end())
      HEDDLE_RETURN_IF_ERROR(set_dimensions(given->first, given->second, shape));
    if (shape.rank().is_static() && shape.size() > 0 && shape[0].is_dynamic()) {
      if (!options.batch) result.assumed.push_back(name_of(p));
      shape[0] = options.batch.value_or(1);
    }
    if (shape.is_dynamic()) {
      open += (open.empty() ? "" : "; ") +
              ("input " + quote_text(name_of(p)) + " has shape " + partial_text(p.get_partial_shape()) +
               ": give it with --shape " + example(name_of(p), shape));
    }
    if (shape != p.get_partial_shape()) result.changes.emplace_back(i, shape);
  }
  if (!open.empty()) return invalid_input(open);
  return result;
}

}  // namespace heddle::internal
