#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "background.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "objects.h"

namespace heddle::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

const nb::sig kSignature(
    "def __init__(self, path: str | os.PathLike[str], *, batch: int | None = None, "
    "shapes: collections.abc.Mapping[str, collections.abc.Sequence[int]] = {}, "
    "values: collections.abc.Mapping[str, collections.abc.Sequence[float]] = {}, "
    "on_progress: collections.abc.Callable[[Progress], object] | None = None) -> None");

PyModel open_model(const std::filesystem::path& path, std::optional<int64_t> batch,
                   const std::map<std::string, Shape>& shapes,
                   const std::map<std::string, std::vector<double>>& values, const nb::object& on_progress) {
  PyModel model;
  model.source.path = path.string();
  model.source.import.batch = batch;
  model.source.import.shapes = shapes;
  model.source.import.values = values;
  model.loaded = call_in_background(on_progress, Interrupted::kRaises,
                                    [&](const Control&) { return load_model(model.source); });
  if (model.loaded.model != nullptr)
    for (const std::string& note : model.loaded.model->notes())
      if (PyErr_WarnEx(PyExc_UserWarning, (model.loaded.name + ": " + note).c_str(), 1) != 0)
        throw nb::python_error();
  return model;
}

nb::tuple row(const Tensor& tensor, const Shape& shape) {
  nb::list sizes;
  for (const int64_t dimension : shape) sizes.append(dimension);
  return nb::make_tuple(tensor.name, dtype_name(tensor.dtype), nb::tuple(sizes));
}

// [(name, dtype, shape)]
nb::list tensors(const Graph& graph, std::span<const TensorId> ids) {
  nb::list list;
  for (const TensorId id : ids) list.append(row(graph.tensor(id), graph.tensor(id).shape));
  return list;
}

// The file's, without the shapes of those whose size depends on data.
nb::list outputs(const LoadedModel& loaded) {
  const Graph& graph = *loaded.graph;
  if (loaded.model == nullptr || loaded.model->sized_outputs().empty())
    return tensors(graph, graph.outputs());
  const auto& sized = loaded.model->sized_outputs();
  nb::list list = tensors(graph, graph.outputs().first(graph.outputs().size() - sized.size()));
  for (const SizedOutput& s : sized) list[s.output] = row(graph.tensor(graph.outputs()[s.output]), s.open);
  return list;
}

std::string description(const PyModel& model) {
  const Graph& graph = *model.loaded.graph;
  return "Model " + model.loaded.name + ": " + counted(graph.num_ops(), "op") + ", " +
         format_bytes(graph.total_param_bytes()) + " of parameters";
}

}  // namespace

void bind_model(nb::module_& module) {
  nb::class_<PyModel>(
      module, "Model",
      "A model that can be planned: an ONNX file or another format that OpenVINO reads, a "
      "graph (.json), or a "
      "network of the zoo (\"zoo:resnet-50\").\n\n"
      "`batch` sets the first dimension of every input whose first dimension is open; "
      "without it that is 1, and "
      "a UserWarning says so. `shapes` sets an input's whole shape. `values` makes an input of an .onnx "
      "file a constant, so that requests do not give it. Raises NotFoundError if "
      "there is no such file. Raises InvalidInputError if it is malformed or a "
      "dimension stays open. The message names the file and the place. The file is read in a "
      "process of its own "
      "first, so a hostile file cannot end this one.")
      .def(
          "__init__",
          [](PyModel* self, const std::filesystem::path& path, std::optional<int64_t> batch,
             const std::map<std::string, Shape>& shapes,
             const std::map<std::string, std::vector<double>>& values, const nb::object& on_progress) {
            new (self) PyModel(open_model(path, batch, shapes, values, on_progress));
          },
          "path"_a, nb::kw_only(), "batch"_a = nb::none(), "shapes"_a = std::map<std::string, Shape>(),
          "values"_a = std::map<std::string, std::vector<double>>(), "on_progress"_a = nb::none(), kSignature)
      .def_prop_ro(
          "name", [](const PyModel& m) { return m.loaded.name; }, "The file's name without its suffix.")
      .def_prop_ro(
          "path", [](const PyModel& m) { return m.source.path; }, "As given.")
      .def_prop_ro(
          "inputs", [](const PyModel& m) { return tensors(*m.loaded.graph, m.loaded.graph->inputs()); },
          nb::sig("def inputs(self) -> list[tuple[str, str, tuple[int, ...]]]"),
          "Name, element type (\"f32\") and shape of each input.")
      .def_prop_ro(
          "outputs", [](const PyModel& m) { return outputs(m.loaded); },
          nb::sig("def outputs(self) -> list[tuple[str, str, tuple[int, ...]]]"),
          "Name, element type and shape of each output; -1 for dimensions that depend on data.")
      .def_prop_ro(
          "ops",
          [](const PyModel& m) {
            std::vector<std::string> names;
            for (const Op& op : m.loaded.graph->ops()) names.push_back(op.name);
            return names;
          },
          "Names of the ops, before they are grouped into units.")
      .def_prop_ro(
          "flops", [](const PyModel& m) { return m.loaded.graph->total_flops(); },
          "Floating-point operations of one request.")
      .def_prop_ro(
          "param_bytes", [](const PyModel& m) { return m.loaded.graph->total_param_bytes(); },
          "Bytes of all parameters, shared ones counted once.")
      .def("__repr__", [](const PyModel& m) { return "<" + description(m) + ">"; });
}

}  // namespace heddle::python
