// plan(), Plan.load() and Plan.whatif().
#include <fmt/format.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>

#include "background.h"
#include "heddle/base/errors.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/session/grade.h"
#include "heddle/session/hardware_changes.h"
#include "heddle/session/robust.h"
#include "objects.h"

namespace heddle::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

Objective objective_of(const std::string& name) {
  const auto found = objective_from_name(name);
  if (!found)
    raise(invalid_input("objective " + quote_text(name) +
                        ": expected \"latency\", \"cold-latency\" or \"throughput\""));
  return *found;
}

// The settings under which the costs were found, or the usual ones.
ProblemSettings settings_of(const PyModel& model, const std::optional<std::shared_ptr<PyCluster>>& cluster,
                            const std::optional<std::shared_ptr<PyCosts>>& costs) {
  ProblemSettings settings;
  if (!costs || !*costs) {
    if (cluster && *cluster) settings.cluster = (*cluster)->cluster;
    return settings;
  }
  const PyCosts& known = **costs;
  if (known.model->loaded.graph != model.loaded.graph)
    raise(invalid_input("the costs are of " + known.model->loaded.name + ", not of this model"));
  if (cluster && *cluster && known.session.cluster != (*cluster)->cluster &&
      known.settings.cluster != (*cluster)->cluster)
    raise(invalid_input("the costs are of cluster " + known.session.cluster->name() +
                        ", not of this one; profile the model on it"));
  settings = known.settings;
  if (settings.cluster == nullptr) settings.cluster = known.session.cluster;
  return settings;
}

using InputValues = std::map<std::string, std::vector<double>>;

// The model with more inputs as constants, which is another model.
std::shared_ptr<const PyModel> with_values(std::shared_ptr<const PyModel> model, const InputValues& values,
                                           const nb::object& on_progress) {
  auto fixed = std::make_shared<PyModel>();
  fixed->source = model->source;
  for (const auto& [name, value] : values) fixed->source.import.values[name] = value;
  if (fixed->source.import.values == model->source.import.values) return model;
  fixed->loaded = call_in_background(on_progress, Interrupted::kRaises,
                                     [&](const Control&) { return load_model(fixed->source); });
  return fixed;
}

std::shared_ptr<PyPlan> plan_model(std::shared_ptr<const PyModel> model,
                                   const std::optional<std::shared_ptr<PyCluster>>& cluster,
                                   const std::optional<std::shared_ptr<PyCosts>>& costs,
                                   const InputValues& values, const std::string& objective,
                                   const std::string& planner, double time_limit, uint64_t seed, int threads,
                                   double robust, const nb::object& on_progress) {
  model = with_values(std::move(model), values, on_progress);
  auto made = std::make_shared<PyPlan>();
  made->search = {.time_limit_s = checked_time_limit(time_limit), .seed = seed, .threads = threads};
  made->settings = settings_of(*model, cluster, costs);
  made->settings.objective = objective_of(objective);
  made->result = call_in_background(
      on_progress, Interrupted::kKeepsResult, [&](const Control& control) -> Result<PlanResult> {
        HEDDLE_ASSIGN_OR_RETURN([[maybe_unused]] const auto* known, planner_named(planner));
        HEDDLE_ASSIGN_OR_RETURN(made->session,
                                open_session(model->source, model->loaded, made->settings, control));
        if (robust == 0) return make_plan(made->session, planner, made->search, control);
        HEDDLE_ASSIGN_OR_RETURN(auto made_robust,
                                make_robust_plan(made->session, planner, made->search, robust, control));
        return std::move(made_robust.result);
      });
  return made;
}

std::shared_ptr<PyPlan> load_plan(const std::filesystem::path& path) {
  auto plan = std::make_shared<PyPlan>();
  plan->result =
      call_in_background(nb::none(), Interrupted::kRaises, [&](const Control&) -> Result<PlanResult> {
        HEDDLE_ASSIGN_OR_RETURN(auto file, read_plan_file(path.string()));
        plan->settings.objective = file.problem.objective;
        // Its times are the file's: what the hardware would do otherwise is asked of these.
        plan->session = session_of(std::move(file.problem));
        plan->search.seed = file.seed;
        PlannerOutput output;
        output.plan = std::move(file.plan);
        output.bound = file.bound;
        return verified_result(file.planner, plan->problem(), std::move(output), file.planning_s);
      });
  return plan;
}

struct Whatif {
  std::string what;
  std::shared_ptr<PyPlan> before, after;
};

std::shared_ptr<PyPlan> planned(const PyPlan& from, Replanned row) {
  auto plan = std::make_shared<PyPlan>(from);
  plan->session.cluster = row.problem.cluster;
  plan->settings.cluster = row.problem.cluster;
  plan->session.problem = std::move(row.problem);
  plan->result = std::move(row.result);
  return plan;
}

Whatif whatif(const PyPlan& plan, const std::map<std::string, int>& add,
              const std::map<std::string, int>& remove, const std::map<std::string, double>& scale,
              const std::string& planner, double time_limit, const nb::object& on_progress) {
  HardwareChange all;
  const auto include = [&](Result<HardwareChange> change) {
    const auto made = value_or_raise(std::move(change));
    all.what += (all.what.empty() ? "" : ", ") + made.what;
    all.edits.insert(all.edits.end(), made.edits.begin(), made.edits.end());
  };
  for (const auto& [name, count] : add)
    include(with_context(more_devices(plan.problem(), name, count), "add " + name));
  for (const auto& [name, count] : remove)
    include(with_context(fewer_devices(plan.problem(), name, count), "remove " + name));
  for (const auto& [name, factor] : scale)
    include(with_context(scaled_hardware(plan.problem(), name, factor), "scale " + name));
  if (all.edits.empty()) raise(invalid_input("whatif() needs a change: add, remove or scale"));
  SearchSettings search = plan.search;
  search.time_limit_s = checked_time_limit(time_limit);
  using Rows = std::vector<Replanned>;
  auto rows =
      call_in_background(on_progress, Interrupted::kKeepsResult, [&](const Control& control) -> Result<Rows> {
        HEDDLE_ASSIGN_OR_RETURN(auto planned,
                                replan(plan.session, {all}, plan.settings, planner, search, control));
        if (planned.size() < 2)
          return cancelled_error("planning was cancelled before there was a second plan");
        return planned;
      });
  return {all.what, planned(plan, std::move(rows[0])), planned(plan, std::move(rows[1]))};
}

PlacementFormat format_of(const std::string& name) {
  if (const auto format = placement_format_named(name)) return *format;
  raise(invalid_input("format " + quote_text(name) + ": expected " + join_names(placement_format_names())));
}

struct PyGrade {
  std::shared_ptr<PyPlan> graded, best;
  std::string format;
};

PyGrade grade_placement(const std::shared_ptr<const PyModel>& model,
                        const std::optional<std::shared_ptr<PyCluster>>& cluster,
                        const std::optional<std::shared_ptr<PyCosts>>& costs, const nb::object& placement,
                        const std::optional<std::string>& format, const std::string& objective,
                        const std::string& planner, double time_limit, uint64_t seed, int threads,
                        const nb::object& on_progress) {
  const nb::object given = placement.is_none() ? nb::object(nb::dict()) : placement;
  const std::string text =
      utf8_of(nb::isinstance<nb::str>(given) ? given : nb::module_::import_("json").attr("dumps")(given));
  const auto wanted = format ? std::optional(format_of(*format)) : std::nullopt;
  PyPlan plan;
  plan.settings = settings_of(*model, cluster, costs);
  plan.settings.objective = objective_of(objective);
  plan.search = {.time_limit_s = checked_time_limit(time_limit), .seed = seed, .threads = threads};
  Grade graded = call_in_background(on_progress, Interrupted::kKeepsResult, [&](const Control& control) {
    return grade(model->source, &model->loaded, text, wanted, plan.settings, planner, plan.search, control);
  });
  plan.session = std::move(graded.session);
  PyGrade result{std::make_shared<PyPlan>(plan), std::make_shared<PyPlan>(plan),
                 placement_format_name(graded.placement.format)};
  result.graded->result = std::move(graded.graded);
  result.best->result = std::move(graded.best);
  return result;
}

std::string exported(PyPlan& plan, const std::string& to) {
  const PlacementFormat format = format_of(to);
  // Other tools know the model's own nodes.
  const auto model = value_or_raise(model_of(plan));
  const Graph& graph = model != nullptr ? *model->graph() : *plan.session.loaded.graph;
  return value_or_raise(
      placement_text(plan_file(plan.problem(), plan.result, plan.search.seed), graph, format));
}

}  // namespace

void bind_grade(nb::module_& module) {
  nb::class_<PyGrade>(module, "Grade", "A placement beside what Heddle would do.")
      .def_ro("plan", &PyGrade::graded, "The best plan found that keeps every op on its device.")
      .def_ro("best", &PyGrade::best, "The best plan found with any placement; never worse.")
      .def_ro("format", &PyGrade::format, "How the placement was read.")
      .def_prop_ro(
          "gap", [](const PyGrade& g) { return g.graded->result.gap; },
          "Of the placement's plan to the bound of any plan.")
      .def_prop_ro(
          "ratio", [](const PyGrade& g) { return g.graded->result.value_us / g.best->result.value_us; },
          "Value as placed over the best value; 1: nothing better was found.")
      .def("__repr__", [](const PyGrade& g) {
        return fmt::format("<Grade {} as placed, {} by Heddle, gap {:.1f} %>",
                           format_us(g.graded->result.value_us), format_us(g.best->result.value_us),
                           100 * g.graded->result.gap);
      });
  module.def(
      "grade", &grade_placement, "model"_a, "cluster"_a = nb::none(), "costs"_a = nb::none(),
      "placement"_a = nb::none(), nb::kw_only(), "format"_a = nb::none(), "objective"_a = "latency",
      "planner"_a = "auto", "time_limit"_a = 10.0, "seed"_a = 1, "threads"_a = 1,
      "on_progress"_a = nb::none(),
      nb::sig("def grade(model: Model, cluster: Cluster | None = None, costs: Costs | None = None, "
              "placement: collections.abc.Mapping[str, typing.Any] | collections.abc.Sequence[float] "
              "| str | None = "
              "None, *, format: str | None = None, "
              "objective: typing.Literal['latency', 'cold-latency', 'throughput'] = 'latency', "
              "planner: str = 'auto', time_limit: float = 10.0, seed: int = 1, threads: int = 1, "
              "on_progress: collections.abc.Callable[[Progress], object] | None = None) -> Grade"),
      "Times any placement, checked, beside the best plan that Heddle finds.\n\n"
      "`placement`: names of ops or ONNX nodes, or prefixes of them, and devices ({\"/backbone\": "
      "\"gpu0\", \"\": \"gpu1\"}). It can be another tool's (docs/grade.md), as an object or its "
      "text. `format`: as for export(); found out if it is None. `time_limit`: seconds for each of the "
      "two plans. InvalidInputError names an op without a device, an unknown op or device, or a device "
      "that cannot run its ops. InfeasibleError names a memory that is too small.");
  auto plan = nb::borrow<nb::class_<PyPlan>>(module.attr("Plan"));
  plan.def("export", &exported, "to"_a, nb::sig("def export(self, to: str) -> str"),
           "The placement as text for another tool: \"device-map\", \"openvino\", \"cuts\", \"llama.cpp\", "
           "\"vllm\" or "
           "\"json\". UnsupportedError says what the format cannot say.");
}

void bind_planning(nb::module_& module) {
  module.def(
      "plan", &plan_model, "model"_a, "cluster"_a = nb::none(), "costs"_a = nb::none(), nb::kw_only(),
      "values"_a = InputValues(), "objective"_a = "latency", "planner"_a = "auto", "time_limit"_a = 10.0,
      "seed"_a = 1, "threads"_a = 1, "robust"_a = 0.0, "on_progress"_a = nb::none(),
      nb::sig("def plan(model: Model, cluster: Cluster | None = None, costs: Costs | None = None, *, "
              "values: collections.abc.Mapping[str, collections.abc.Sequence[float]] = {}, "
              "objective: typing.Literal['latency', 'cold-latency', 'throughput'] = 'latency', "
              "planner: str = 'auto', time_limit: float = 10.0, seed: int = 1, threads: int = 1, "
              "robust: float = 0.0, "
              "on_progress: collections.abc.Callable[[Progress], object] | None = None) -> Plan"),
      "Plans the model on the cluster: places units, orders them, and adds transfers and loads.\n\n"
      "`costs`: as profile() found them, with its settings; else they are found with its usual settings. "
      "`values` makes inputs of an .onnx file constants of the plan, as Model(values=...) does; costs must "
      "be "
      "of a model with these values. "
      "`planner`: one of planners(). `time_limit`: seconds of planning; measuring comes on top. `threads`: "
      "of the "
      "search, which uses no others. `robust`: plan for the loss of this share (0 to 0.9) of any one "
      "device's "
      "speed: the plan whose worst case is best; see Plan.worst_case(). `on_progress` is called on this "
      "thread, at most ten times a second. "
      "Ctrl-C "
      "gives the best plan so far, with termination CANCELLED, and KeyboardInterrupt if there is none yet. "
      "Raises "
      "InfeasibleError if no plan fits the memory. Deterministic for a seed and a number of threads, except "
      "for "
      "what the time limit ends.");
  module.def(
      "planners",
      [] {
        std::vector<std::string> names;
        for (const PlannerEntry& entry : planner_registry()) names.push_back(entry.info.name);
        return names;
      },
      "Names of the planners; `heddle planners` describes them.");
  auto plan = nb::borrow<nb::class_<PyPlan>>(module.attr("Plan"));
  plan.def_static("load", &load_plan, "path"_a, nb::sig("def load(path: str | os.PathLike[str]) -> Plan"),
                  "Reads a plan file and checks it. InvalidInputError names the place of a mistake, "
                  "VerificationError what does not hold.");
  plan.def(
      "whatif", &whatif, nb::kw_only(), "add"_a = std::map<std::string, int>(),
      "remove"_a = std::map<std::string, int>(), "scale"_a = std::map<std::string, double>(),
      "planner"_a = "auto", "time_limit"_a = 10.0, "on_progress"_a = nb::none(),
      nb::sig("def whatif(self, *, add: collections.abc.Mapping[str, int] = {}, "
              "remove: collections.abc.Mapping[str, int] = {}, "
              "scale: collections.abc.Mapping[str, float] = {}, planner: str = 'auto', "
              "time_limit: float = 10.0, "
              "on_progress: collections.abc.Callable[[Progress], object] | None = None) -> Whatif"),
      "Plans again for other hardware, all changes together. `add` and `remove` take numbers of devices by "
      "name or class, `scale` takes factors for devices, classes, links, \"memory\" and \"transfers\". "
      "Nothing is measured. `time_limit`: seconds for each of the two plans.");
  nb::class_<Whatif>(module, "Whatif", "The best known plans before and after a change of the hardware.")
      .def_ro("what", &Whatif::what, "The change in words.")
      .def_ro("before", &Whatif::before)
      .def_ro("after", &Whatif::after)
      .def_prop_ro(
          "speedup", [](const Whatif& w) { return w.before->result.value_us / w.after->result.value_us; },
          "Value before over value after.")
      .def("__repr__", [](const Whatif& w) {
        return fmt::format("<Whatif {}: {} instead of {}>", w.what, format_us(w.after->result.value_us),
                           format_us(w.before->result.value_us));
      });
}

}  // namespace heddle::python
