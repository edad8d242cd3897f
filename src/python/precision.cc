// Types narrower than float32: budgets, what they cost, and what a budget decided.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "heddle/runtime/precision_error.h"
#include "objects.h"

namespace heddle::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

// A unit that a budget keeps out of a type.
struct KeptUnit {
  std::string unit, type;
  double mean = 0, agreement = 1;
};

struct PyChoice {
  PrecisionChoice choice;
  std::vector<KeptUnit> kept;
};

std::optional<PyChoice> choice_of(const PyPlan& plan) {
  const Problem& problem = plan.problem();
  if (!problem.precision) return std::nullopt;
  PyChoice made{*problem.precision, {}};
  for (const auto& unit : made.choice.units)
    if (!unit.allowed)
      made.kept.push_back(
          {problem.graph->op(unit.op).name, precision_name(unit.type), unit.mean, unit.agreement});
  return made;
}

}  // namespace

void bind_precision(nb::module_& module) {
  nb::class_<ErrorBudget>(module, "ErrorBudget",
                          "How much of the outputs narrower types may change, against float32.")
      .def(
          "__init__",
          [](ErrorBudget* budget, double agreement, double mean) {
            new (budget) ErrorBudget{agreement, mean};
          },
          nb::kw_only(), "agreement"_a = ErrorBudget().agreement, "mean"_a = ErrorBudget().mean,
          "`agreement`: least share of equal decisions, 0 to 1. `mean`: largest mean error of an output, as "
          "a "
          "part of its range.")
      .def_ro("agreement", &ErrorBudget::agreement)
      .def_ro("mean", &ErrorBudget::mean)
      .def("__repr__", [](const ErrorBudget& b) {
        return fmt::format("<ErrorBudget agreement {:g}, mean {:g}>", b.agreement, b.mean);
      });
  nb::class_<OutputError>(
      module, "OutputError",
      "Outputs against those of the same model in float32, over samples; of the worst output.")
      .def_ro("samples", &OutputError::samples)
      .def_prop_ro("largest", &OutputError::largest, "Of an element, as a part of the output's range.")
      .def_prop_ro("mean", &OutputError::mean, "Over elements and samples, as a part of the output's range.")
      .def_prop_ro("cosine", &OutputError::cosine,
                   "Between the outputs as vectors; the smallest of all samples.")
      .def_prop_ro("decisions", &OutputError::decisions, "How many decisions were compared.")
      .def_prop_ro("agreement", &OutputError::agreement, "The share of equal decisions; 1 without any.")
      .def("__repr__", [](const OutputError& e) {
        return fmt::format("<OutputError mean {:.2g}, largest {:.2g}, {:.4g} % of {} decisions>", e.mean(),
                           e.largest(), 100 * e.agreement(), e.decisions());
      });
  nb::class_<KeptUnit>(module, "KeptUnit", "A unit that a budget keeps out of a type.")
      .def_ro("unit", &KeptUnit::unit)
      .def_ro("type", &KeptUnit::type)
      .def_ro("mean", &KeptUnit::mean, "The outputs' mean error if this unit alone has the type.")
      .def_ro("agreement", &KeptUnit::agreement, "The share of equal decisions then.");
  nb::class_<PyChoice>(module, "PrecisionChoice",
                       "The decision under a budget, and the plan's measured error.")
      .def_prop_ro("samples", [](const PyChoice& c) { return c.choice.samples; })
      .def_prop_ro("agreement", [](const PyChoice& c) { return c.choice.agreement; })
      .def_prop_ro("mean", [](const PyChoice& c) { return c.choice.mean; })
      .def_prop_ro("largest", [](const PyChoice& c) { return c.choice.largest; })
      .def_ro("kept", &PyChoice::kept, "Units that do not have a type, with what it would have cost.");
  auto plan = nb::borrow<nb::class_<PyPlan>>(module.attr("Plan"));
  plan.def_prop_ro("precision", &choice_of, "With a budget: what it decided; else None.");
}

}  // namespace heddle::python
