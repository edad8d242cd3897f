#include "heddle/graph/varying_model.h"

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <openvino/core/model.hpp>

#include "heddle/base/errors.h"
#include "heddle/base/mapped_file.h"
#include "heddle/base/spelling.h"
#include "onnx/model_impl.h"
#include "onnx/openvino_reader.h"

namespace heddle {
namespace {

// Of shapes whose outputs are known: enough for every width of a text line, and no way to fill the memory.
constexpr size_t kMostKnownShapes = 4096;

using ShapesByName = std::map<std::string, Shape>;
using PartialShapes = std::map<ov::Output<ov::Node>, ov::PartialShape>;

Shape shape_or_open(const ov::PartialShape& shape) {
  Shape out;
  for (const auto& d : shape) out.push_back(d.is_static() ? d.get_length() : -1);
  return out;
}

// -1 becomes a range from 1 to the largest size.
ov::PartialShape range_of(const Shape& open, const Shape& largest) {
  ov::PartialShape shape;
  for (size_t i = 0; i < open.size(); ++i)
    shape.push_back(open[i] < 0 ? ov::Dimension(1, largest[i]) : ov::Dimension(open[i]));
  return shape;
}

Result<std::shared_ptr<ov::Model>> read_varying(const std::string& path, const ImportOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const auto file, MappedFile::open(path, options.max_file_bytes));
  if (std::filesystem::path(path).extension() != ".onnx") return internal::read_open(path, nullptr, nullptr);
  HEDDLE_ASSIGN_OR_RETURN(const auto onnx, internal::read_onnx(file.bytes(), options.values));
  return internal::read_open(path, &onnx.model, onnx.rewritten.get());
}

}  // namespace

Result<std::vector<std::string>> onnx_input_names(const std::string& path) {
  if (std::filesystem::path(path).extension() != ".onnx")
    return unsupported(path + ": the names of its inputs are not known before it is imported");
  HEDDLE_ASSIGN_OR_RETURN(const auto file,
                          with_context(MappedFile::open(path, ImportOptions().max_file_bytes), path));
  HEDDLE_ASSIGN_OR_RETURN(const auto onnx, with_context(internal::read_onnx(file.bytes(), {}), path));
  const auto& graph = onnx.model.graph;
  std::vector<std::string> names;
  for (const auto& input : graph.inputs)
    if (std::ranges::none_of(graph.initializers, [&input](const auto& t) { return t.name == input.name; }))
      names.emplace_back(input.name);
  return names;
}

struct VaryingModel::Impl {
  std::shared_ptr<ov::Model> ranges;  // with open dimensions as ranges
  std::shared_ptr<ov::Model> probe;   // reshaped to find output shapes; guarded by `mutex`
  std::vector<std::string> inputs;
  std::mutex mutex;
  std::map<ShapesByName, std::vector<Shape>> known;  // guarded by `mutex`

  Result<std::vector<Shape>> infer(const ShapesByName& shapes) {
    PartialShapes changes;
    for (const auto& p : probe->get_parameters()) {
      const auto it = shapes.find(p->get_friendly_name());
      if (it != shapes.end())
        changes[p->output(0)] =
            ov::PartialShape(std::vector<ov::Dimension>(it->second.begin(), it->second.end()));
    }
    std::vector<Shape> outputs;
    try {
      probe->reshape(changes);
      for (const auto& result : probe->get_results()) {
        const auto& shape = result->get_input_partial_shape(0);
        if (shape.rank().is_dynamic())
          return unsupported("the output " + quote_text(result->get_friendly_name()) + " has no known rank");
        outputs.push_back(shape_or_open(shape));
      }
    } catch (const std::exception& e) {
      return invalid_input(internal::openvino_reason(e.what()));
    }
    return outputs;
  }
};

VaryingModel::VaryingModel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
VaryingModel::~VaryingModel() = default;

Result<std::shared_ptr<const VaryingModel>> VaryingModel::load(const std::string& path,
                                                               const ImportOptions& options,
                                                               const std::map<std::string, Shape>& largest,
                                                               const std::map<std::string, Shape>& open) {
  HEDDLE_ASSIGN_OR_RETURN(auto model, with_context(read_varying(path, options), path));
  auto impl = std::make_unique<Impl>();
  // What does not vary has its one shape.
  ImportOptions at_largest = options;
  for (const auto& [name, shape] : largest) at_largest.shapes[name] = shape;
  HEDDLE_ASSIGN_OR_RETURN(const auto fixed,
                          with_context(internal::wanted_shapes(*model, at_largest, nullptr), path));
  PartialShapes changes;
  for (const auto& [input, shape] : fixed.changes) changes[model->get_parameters()[input]->output(0)] = shape;
  for (const auto& p : model->get_parameters()) {
    impl->inputs.push_back(p->get_friendly_name());
    const auto it = open.find(p->get_friendly_name());
    if (it != open.end()) changes[p->output(0)] = range_of(it->second, largest.at(it->first));
  }
  try {
    model->reshape(changes);
    impl->probe = model->clone();
  } catch (const std::exception& e) {
    return invalid_input("cannot keep its dimensions open: " + internal::openvino_reason(e.what()))
        .with_context(path);
  }
  impl->ranges = std::move(model);
  return std::shared_ptr<const VaryingModel>(new VaryingModel(std::move(impl)));
}

Result<std::vector<Shape>> VaryingModel::output_shapes(const std::map<std::string, Shape>& inputs) const {
  const std::lock_guard lock(impl_->mutex);
  const auto it = impl_->known.find(inputs);
  if (it != impl_->known.end()) return it->second;
  HEDDLE_ASSIGN_OR_RETURN(auto outputs, impl_->infer(inputs));
  if (impl_->known.size() >= kMostKnownShapes) impl_->known.clear();
  impl_->known.emplace(inputs, outputs);
  return outputs;
}

const std::vector<std::string>& VaryingModel::inputs() const { return impl_->inputs; }
const std::shared_ptr<ov::Model>& VaryingModel::model() const { return impl_->ranges; }

}  // namespace heddle
