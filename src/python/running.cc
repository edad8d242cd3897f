// Plan.compile(), Plan.measure() and what they return.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "background.h"
#include "heddle/base/units.h"
#include "heddle/report/timeline_view.h"
#include "heddle/runtime/run.h"
#include "objects.h"

namespace heddle::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

// A step, predicted and measured.
struct ComparedStep {
  std::string name, kind, where;
  double predicted_start_us = 0, predicted_us = 0, measured_start_us = 0, measured_us = 0;

  double error() const { return predicted_us > 0 ? measured_us / predicted_us - 1 : 0; }
};

struct StepTable {
  double predicted_us = 0, measured_us = 0;  // of the whole request
  std::vector<ComparedStep> steps;
};

StepTable compare_steps(const PyPlan& plan, const RunRecord& record) {
  const PlanResult& r = plan.result;
  if (record.steps.size() != r.plan.steps.size())
    raise(invalid_input("the run is of another plan: it has " + std::to_string(record.steps.size()) +
                        " steps, the plan " + std::to_string(r.plan.steps.size())));
  StepTable table{.predicted_us = record.predicted_us, .measured_us = record.measured_us, .steps = {}};
  const auto view = make_timeline_view(plan.problem(), r.plan, r.timeline, r.bound, r.planner, &record);
  for (const TimelineBar& bar : view.bars) {
    const MeasuredStep& step = record.steps[bar.step.index()];
    table.steps.push_back({bar.name, step_kind_name(bar.kind), bar.track, bar.predicted_start_us,
                           bar.predicted_finish_us - bar.predicted_start_us, step.start_us, step.median_us});
  }
  return table;
}

nb::list rows_of(const StepTable& table) {
  nb::list rows;
  for (const ComparedStep& step : table.steps) {
    nb::dict row;
    row["step"] = step.name;
    row["kind"] = step.kind;
    row["where"] = step.where;
    row["predicted_start_us"] = step.predicted_start_us;
    row["predicted_us"] = step.predicted_us;
    row["measured_start_us"] = step.measured_start_us;
    row["measured_us"] = step.measured_us;
    row["error"] = step.error();
    rows.append(row);
  }
  return rows;
}

std::shared_ptr<PyCompiled> compile(const std::shared_ptr<PyPlan>& plan, const nb::object& on_progress) {
  auto compiled = std::make_shared<PyCompiled>();
  compiled->plan = plan;
  compiled->compiled = call_in_background(
      on_progress, Interrupted::kRaises,
      [&](const Control& control) -> Result<std::shared_ptr<CompiledPlan>> {
        HEDDLE_ASSIGN_OR_RETURN(compiled->model, model_of(*plan));
        HEDDLE_ASSIGN_OR_RETURN(
            auto made, CompiledPlan::create(plan->problem(), plan->result.plan, compiled->model, control));
        return std::shared_ptr<CompiledPlan>(std::move(made));
      });
  return compiled;
}

nb::dict outputs_of(const PyRun& run) {
  nb::dict outputs;
  const Graph& graph = *run.plan->problem().graph;
  for (size_t i = 0; i < run.outputs.size(); ++i)
    outputs[graph.tensor(graph.outputs()[i]).name.c_str()] = to_array(run.outputs[i]);
  return outputs;
}

struct Measurement {
  std::shared_ptr<const PyPlan> plan;
  RunRecord record;
};

Measurement measure(const std::shared_ptr<PyPlan>& plan, int repeats, int warmups, int in_flight,
                    uint64_t seed, const nb::object& on_progress) {
  auto record =
      call_in_background(on_progress, Interrupted::kRaises, [&](const Control& control) -> Result<RunRecord> {
        HEDDLE_ASSIGN_OR_RETURN(const auto model, model_of(*plan));
        RunOptions options;
        options.warmups = warmups;
        options.repeats = repeats;
        options.in_flight = in_flight;
        options.inputs.seed = seed;
        options.deadline = control.deadline();
        options.progress = control.progress;
        return run_plan(plan->problem(), plan->result.plan, model, options);
      });
  return {plan, std::move(record)};
}

void bind_tables(nb::module_& module) {
  nb::class_<ComparedStep>(module, "ComparedStep", "A step of a plan, predicted and measured; times in us.")
      .def_ro("name", &ComparedStep::name, "The segment's or tensor's name.")
      .def_ro("kind", &ComparedStep::kind, "\"run\", \"transfer\" or \"load\".")
      .def_ro("where", &ComparedStep::where, "\"device cpu0\", \"transfer cpu0 -> gpu0\".")
      .def_ro("predicted_start_us", &ComparedStep::predicted_start_us, "From the request's start.")
      .def_ro("predicted_us", &ComparedStep::predicted_us, "Its duration.")
      .def_ro("measured_start_us", &ComparedStep::measured_start_us)
      .def_ro("measured_us", &ComparedStep::measured_us)
      .def_prop_ro("error", &ComparedStep::error, "measured / predicted - 1.");
  nb::class_<StepTable>(module, "Comparison", "A plan's predicted times beside those of a run.")
      .def_ro("predicted_us", &StepTable::predicted_us, "Of the whole request, or per request.")
      .def_ro("measured_us", &StepTable::measured_us)
      .def_prop_ro(
          "error", [](const StepTable& t) { return t.measured_us / t.predicted_us - 1; },
          "measured / predicted - 1.")
      .def_ro("steps", &StepTable::steps)
      .def(
          "to_pandas", [](const StepTable& t) { return data_frame(rows_of(t)); },
          nb::sig("def to_pandas(self) -> typing.Any"),
          "A DataFrame with one row for each step; needs pandas.")
      .def("__repr__", [](const StepTable& t) {
        return fmt::format("<Comparison predicted {}, measured {} ({:+.1f} %)>", format_us(t.predicted_us),
                           format_us(t.measured_us), 100 * (t.measured_us / t.predicted_us - 1));
      });
}

}  // namespace

std::shared_ptr<PyRun> run_request(const PyCompiled& compiled, const nb::object& inputs) {
  const auto plan = compiled.compiled;
  if (plan == nullptr) raise(invalid_input("the compiled plan is closed; compile() the plan again"));
  nb::list keep;
  const auto views = plan->moves_data() ? to_views(*compiled.plan->problem().graph, inputs, keep)
                                        : std::vector<TensorView>();
  auto result = [&] {
    // Short and without progress: no thread of its own.
    const nb::gil_scoped_release release;
    return plan->run(views, {});
  }();
  auto value = value_or_raise(std::move(result));
  return std::make_shared<PyRun>(PyRun{compiled.plan, std::move(value.record), std::move(value.outputs)});
}

Result<std::shared_ptr<const Model>> model_of(const PyPlan& plan) {
  if (plan.session.loaded.model != nullptr) return plan.session.loaded.model;
  auto& later = *plan.later;
  const std::lock_guard lock(later.mutex);
  if (later.model == nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(later.model, load_model_of(plan.problem(), "the plan"));
  }
  return later.model;
}

void bind_running(nb::module_& module) {
  bind_tables(module);
  nb::class_<PyRun>(module, "Run", "One request of a compiled plan.")
      .def_prop_ro(
          "outputs", &outputs_of, nb::sig("def outputs(self) -> dict[str, typing.Any]"),
          "NumPy arrays by the outputs' names; bfloat16 as an object with DLPack. Empty if the devices "
          "are emulated.")
      .def_prop_ro("latency_us", [](const PyRun& r) { return r.record.measured_us; })
      .def(
          "compare", [](const PyRun& r, const PyPlan& plan) { return compare_steps(plan, r.record); },
          "plan"_a, "Each step's predicted and measured time.");
  nb::class_<Measurement>(module, "Measurement",
                          "Many requests of a plan, and whether its outputs are right.")
      .def_prop_ro(
          "measured_us", [](const Measurement& m) { return m.record.measured_us; },
          "Median latency; with several requests in flight the time per request.")
      .def_prop_ro("predicted_us", [](const Measurement& m) { return m.record.predicted_us; })
      .def_prop_ro("latencies_us", [](const Measurement& m) { return m.record.latencies_us; })
      .def_prop_ro(
          "verified", [](const Measurement& m) { return m.record.verified; },
          "The outputs were compared with the unsplit model's.")
      .def_prop_ro(
          "outputs_equal", [](const Measurement& m) { return m.record.outputs_equal; },
          "In float32, within a relative 1e-3 and an absolute 1e-5.")
      .def_prop_ro(
          "error",
          [](const Measurement& m) -> std::optional<OutputError> {
            return m.record.precision ? std::optional(m.record.precision->plan) : std::nullopt;
          },
          "The error of the plan's types against float32; None if it computes in float32.")
      .def_prop_ro(
          "unsplit_error",
          [](const Measurement& m) -> std::optional<OutputError> {
            const bool measured = m.record.precision && m.record.precision->unsplit.samples > 0;
            return measured ? std::optional(m.record.precision->unsplit) : std::nullopt;
          },
          "The same of the unsplit model in the plan's narrowest type; None if it was not measured.")
      .def_prop_ro(
          "right", [](const Measurement& m) { return m.record.right(); },
          "The outputs are equal in float32, and rounding explains what the plan's types change.")
      .def_prop_ro("max_abs_error", [](const Measurement& m) { return m.record.max_abs_error; })
      .def(
          "compare", [](const Measurement& m, const PyPlan& plan) { return compare_steps(plan, m.record); },
          "plan"_a)
      .def("__repr__", [](const Measurement& m) {
        return fmt::format("<Measurement {} (predicted {}), {}>", format_us(m.record.measured_us),
                           format_us(m.record.predicted_us),
                           !m.record.verified ? "outputs not compared"
                           : m.record.right() ? "outputs right"
                                              : "outputs DIFFER");
      });
  nb::class_<PyCompiled>(
      module, "CompiledPlan",
      "A plan with every segment compiled on its device; made by Plan.compile(). Any thread "
      "may call run(); requests run one after the other.")
      .def(
          "run", &run_request, "inputs"_a,
          nb::sig("def run(self, inputs: collections.abc.Mapping[str, typing.Any] | typing.Any) -> Run"),
          "Runs one request. `inputs`: arrays by the inputs' names, or one array for a model with one input. "
          "Each is NumPy's or anything with DLPack in the host's memory, of exactly the model's type and "
          "shape. "
          "InvalidInputError names the input that does not fit.")
      .def(
          "close", [](PyCompiled& c) { c.compiled.reset(); }, "Gives memory and threads back.")
      .def("__enter__", [](const std::shared_ptr<PyCompiled>& c) { return c; })
      .def(
          "__exit__",
          [](PyCompiled& c, const nb::object&, const nb::object&, const nb::object&) { c.compiled.reset(); },
          nb::arg().none(), nb::arg().none(), nb::arg().none());
  auto plan = nb::borrow<nb::class_<PyPlan>>(module.attr("Plan"));
  plan.def(
      "compile", &compile, nb::kw_only(), "on_progress"_a = nb::none(),
      nb::sig("def compile(self, *, on_progress: collections.abc.Callable[[Progress], object] | None = None) "
              "-> CompiledPlan"),
      "Compiles every segment on its device. UnsupportedError names segment and device if one does not "
      "compile.");
  plan.def(
      "measure", &measure, nb::kw_only(), "repeats"_a = 20, "warmups"_a = 3, "in_flight"_a = 1, "seed"_a = 1,
      "on_progress"_a = nb::none(),
      nb::sig("def measure(self, *, repeats: int = 20, warmups: int = 3, in_flight: int = 1, seed: int = 1, "
              "on_progress: collections.abc.Callable[[Progress], object] | None = None) -> Measurement"),
      "Runs requests with random inputs that depend on `seed` alone, and compares the outputs with the "
      "unsplit "
      "model's. `in_flight` above 1: pipelined, for throughput.");
}

}  // namespace heddle::python
