// Times of ops on devices, measured where the devices are here.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <filesystem>

#include "background.h"
#include "heddle/base/spelling.h"
#include "heddle/graph/op_named.h"
#include "objects.h"

namespace heddle::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

struct Cell {
  std::string op, device;
  Cost cost;
};

Cell cell(const Problem& problem, OpId op, DeviceId device) {
  return {problem.graph->op(op).name, problem.cluster->device(device).name, problem.costs->at(op, device)};
}

std::vector<Cell> cells(const PyCosts& costs) {
  const Problem& problem = costs.session.problem;
  std::vector<Cell> list;
  for (size_t op = 0; op < problem.graph->num_ops(); ++op)
    for (const DeviceId device : problem.usable_devices()) list.push_back(cell(problem, OpId(op), device));
  return list;
}

nb::dict row(const Cell& cell) {
  nb::dict row;
  row["op"] = cell.op;
  row["device"] = cell.device;
  row["us"] = cell.cost.us;
  row["origin"] = origin_name(cell.cost.origin);
  row["relative_spread"] = cell.cost.rel_spread;
  return row;
}

Coarsening coarsening_named(const std::string& name) {
  constexpr const char* kNames[] = {"usual", "light", "none", "gcof"};
  const auto found = enum_named<Coarsening>(kNames, name);
  if (!found)
    raise(invalid_input("coarsening " + quote_text(name) +
                        ": expected \"usual\", \"light\", \"none\" or \"gcof\""));
  return *found;
}

std::shared_ptr<PyCosts> profile(
    std::shared_ptr<const PyModel> model, const std::optional<std::shared_ptr<PyCluster>>& cluster,
    const std::vector<std::string>& devices, const std::vector<std::string>& engines,
    const std::vector<std::string>& precisions, const std::optional<ErrorBudget>& budget,
    const std::filesystem::path& calibration, const std::string& coarsening, size_t units, bool measure,
    const std::string& store, const nb::object& on_progress) {
  auto costs = std::make_shared<PyCosts>();
  costs->model = std::move(model);
  ProblemSettings& settings = costs->settings;
  if (cluster && *cluster) settings.cluster = (*cluster)->cluster;
  settings.devices = devices;
  settings.variants = {engines, precisions, budget};
  settings.calibration.folder = calibration.string();
  settings.coarsening = coarsening_named(coarsening);
  settings.units = units;
  settings.measure = measure;
  settings.store = store;
  costs->session = call_in_background(on_progress, Interrupted::kRaises, [&](const Control& control) {
    return open_session(costs->model->source, costs->model->loaded, settings, control);
  });
  return costs;
}

}  // namespace

void bind_costs(nb::module_& module) {
  nb::enum_<Origin>(module, "Origin", nb::is_str(), "The source of a time, the most trusted first.")
      .str_value("MEASURED", Origin::kMeasured, "measured", "On this class of device, on this machine.")
      .str_value("GIVEN", Origin::kGiven, "given", "It came with the graph.")
      .str_value("INTERPOLATED", Origin::kInterpolated, "interpolated",
                 "Between measured batch sizes or shares.")
      .str_value("SCALED", Origin::kScaled, "scaled", "Measured elsewhere and scaled to this device.")
      .str_value("ESTIMATED", Origin::kEstimated, "estimated", "By a roofline model.");
  nb::class_<Cell>(module, "CostCell", "The time of one op on one device.")
      .def_ro("op", &Cell::op)
      .def_ro("device", &Cell::device)
      .def_prop_ro(
          "us", [](const Cell& c) { return c.cost.us; }, "In us; infinite if the device cannot run it.")
      .def_prop_ro("origin", [](const Cell& c) { return c.cost.origin; })
      .def_prop_ro(
          "relative_spread", [](const Cell& c) { return c.cost.rel_spread; },
          "Half the interquartile range over the median; 0 if it was not measured.")
      .def("__repr__", [](const Cell& c) {
        return "<CostCell " + c.op + " on " + c.device + ": " + std::to_string(c.cost.us) + " us, " +
               origin_name(c.cost.origin) + ">";
      });
  nb::class_<PyCosts>(module, "Costs", "Times of a model's units on a cluster's devices; made by profile().")
      .def_prop_ro("cells", &cells, "Every unit on every device.")
      .def_prop_ro(
          "units", [](const PyCosts& c) { return c.session.problem.graph->num_ops(); },
          "Ops are grouped into this many units, which are placed as a whole.")
      .def_prop_ro(
          "measured", [](const PyCosts& c) { return c.session.profiled.measured; },
          "Times measured by this call; the others come from the profile store, the file or a model.")
      .def("__len__",
           [](const PyCosts& c) {
             return c.session.problem.graph->num_ops() * c.session.problem.usable_devices().size();
           })
      .def(
          "__getitem__",
          [](const PyCosts& c, const std::pair<std::string, std::string>& key) {
            const Problem& problem = c.session.problem;
            return cell(problem, value_or_raise(op_named(*problem.graph, key.first)),
                        value_or_raise(device_named(*problem.cluster, key.second)));
          },
          "key"_a, "costs[\"conv1\", \"gpu0\"]: the unit with that op or ONNX node, on that device.")
      .def(
          "to_pandas",
          [](const PyCosts& c) {
            nb::list rows;
            for (const Cell& one : cells(c)) rows.append(row(one));
            return data_frame(rows);
          },
          nb::sig("def to_pandas(self) -> typing.Any"),
          "A DataFrame with the columns op, device, us, origin, relative_spread; needs pandas.")
      .def("__repr__", [](const PyCosts& c) {
        const Problem& problem = c.session.problem;
        return "<Costs of " + c.session.loaded.name + " on " + problem.cluster->name() + ": " +
               counted(problem.graph->num_ops(), "unit") + " on " +
               counted(problem.usable_devices().size(), "device") + ">";
      });
  module.def(
      "profile", &profile, "model"_a, "cluster"_a = nb::none(), nb::kw_only(),
      "devices"_a = std::vector<std::string>(), "engines"_a = std::vector<std::string>(),
      "precisions"_a = std::vector<std::string>(), "budget"_a = nb::none(), "calibration"_a = "",
      "coarsening"_a = "usual", "units"_a = 0, "measure"_a = true, "store"_a = "",
      "on_progress"_a = nb::none(),
      nb::sig("def profile(model: Model, cluster: Cluster | None = None, *, "
              "devices: collections.abc.Sequence[str] = (), engines: collections.abc.Sequence[str] = (), "
              "precisions: collections.abc.Sequence[str] = (), budget: ErrorBudget | None = None, "
              "calibration: str | os.PathLike[str] = '', "
              "coarsening: typing.Literal['usual', 'light', 'none', 'gcof'] = 'usual', units: int = 0, "
              "measure: bool = True, store: str = '', "
              "on_progress: collections.abc.Callable[[Progress], object] | None = None) -> Costs"),
      "Groups the model's ops into units and finds their times. They are measured on the devices of this "
      "machine, which takes about 0.1 s for each unit and kind of device, and estimated for others.\n\n"
      "Measured times are kept in the profile store, so the next call is fast. `cluster`: this machine if "
      "it is None. `devices`: only those. `engines` and `precisions`: choices for each device, among which "
      "a plan chooses; without precisions each engine takes its own (\"auto\"). `budget`: plans choose among "
      "all types, so that the outputs keep to it. `calibration`: a folder of samples for that (\"\": "
      "reference "
      "inputs beside the model, and random ones). `units`: at most this many; 0: 24 if they are measured, "
      "else "
      "2000. `store`: the "
      "file of the profile store; \"\": the user's own.");
}

}  // namespace heddle::python
