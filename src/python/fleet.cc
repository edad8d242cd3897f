#include <fmt/format.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "background.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/fleet/fleet_check.h"
#include "heddle/fleet/fleet_planner.h"
#include "heddle/fleet/sweep.h"
#include "objects.h"

namespace heddle::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

struct PyFleet {
  std::shared_ptr<const Fleet> fleet;
};

struct PyFleetPlan {
  std::shared_ptr<const Fleet> fleet;
  FleetPlan plan;
};

PyFleet load_fleet(const std::filesystem::path& path) {
  return {std::make_shared<const Fleet>(value_or_raise(read_fleet(path.string())))};
}

PyFleetPlan plan_for(const PyFleet& fleet, const std::string& planner, const std::string& objective,
                     double load_per_s, double time_limit, uint64_t seed, int threads, bool prove,
                     const nb::object& on_progress) {
  FleetPlanOptions options;
  const auto wanted = fleet_objective_named(objective);
  if (!wanted)
    raise(invalid_input("objective " + quote_text(objective) +
                        ": expected \"max-min\", \"cost\", \"power\" or \"goodput\""));
  options.objective = *wanted;
  options.load_per_s = load_per_s;
  options.seed = seed;
  options.threads = threads;
  options.prove = prove;
  time_limit = checked_time_limit(time_limit);
  auto plan = call_in_background(on_progress, Interrupted::kKeepsResult, [&](const Control& control) {
    options.deadline = Deadline::after_seconds(time_limit, control.cancel);
    options.progress = control.progress;
    return plan_fleet(*fleet.fleet, planner, options);
  });
  return {fleet.fleet, std::move(plan)};
}

SimulationResult simulated(const PyFleetPlan& plan, std::optional<double> rate, double load_factor,
                           double seconds, const std::string& traffic, const std::string& scheduler,
                           uint64_t seed) {
  const auto kind = traffic_named(traffic);
  if (!kind || *kind == TrafficKind::kFunctions)
    raise(invalid_input("traffic " + quote_text(traffic) +
                        ": expected \"poisson\", \"diurnal\" or \"bursty\""));
  const auto chosen = scheduler_named(scheduler);
  if (!chosen)
    raise(invalid_input("scheduler " + quote_text(scheduler) +
                        ": expected \"reservation\", \"busy-until\" or \"reactive\""));
  return call_in_background(
      nb::none(), Interrupted::kRaises, [&](const Control& control) -> Result<SimulationResult> {
        HEDDLE_ASSIGN_OR_RETURN(const Deployment deployment, deploy(*plan.fleet, plan.plan));
        double planned = 0;
        for (const auto& model : deployment.models) planned += model.rate_per_s;
        SweepOptions options;
        options.load_factors = {rate ? *rate / planned : load_factor};
        options.traffic.kind = *kind;
        options.duration_s = seconds;
        options.simulation.scheduler = *chosen;
        options.simulation.seed = seed;
        options.simulation.cancel = control.cancel;
        options.threads = 1;
        HEDDLE_ASSIGN_OR_RETURN(auto points, sweep_loads(deployment, options));
        return std::move(points.front().result);
      });
}

nb::list pipelines_of(const PyFleetPlan& plan) {
  nb::list list;
  for (size_t m = 0; m < plan.plan.models.size(); ++m) {
    for (const FleetPipeline& pipeline : plan.plan.models[m].pipelines) {
      nb::list partitions;
      for (const FleetPartition& partition : pipeline.partitions) {
        nb::dict row;
        row["device_class"] = plan.fleet->classes[static_cast<size_t>(partition.device_class)].name;
        row["blocks"] = nb::make_tuple(partition.block_from, partition.block_to);
        row["share"] = partition.share;
        row["count"] = partition.count;
        partitions.append(row);
      }
      nb::dict row;
      row["model"] = plan.fleet->models[m].name;
      row["batch"] = pipeline.batch;
      row["rate_per_s"] = pipeline.rate_per_s;
      row["partitions"] = partitions;
      list.append(row);
    }
  }
  return list;
}

double latency_us(const DurationHistogram& latency, double q) {
  if (!(q >= 0 && q <= 1)) raise(invalid_input("a percentile is given as a share between 0 and 1"));
  return static_cast<double>(latency.percentile(q)) / 1000;
}

template <class Counts>
void bind_counts(nb::class_<Counts>& counted, const RequestCounts Counts::*requests) {
  counted.def_prop_ro("arrivals", [=](const Counts& c) { return (c.*requests).arrivals; })
      .def_prop_ro("in_time", [=](const Counts& c) { return (c.*requests).in_time; })
      .def_prop_ro("late", [=](const Counts& c) { return (c.*requests).late; })
      .def_prop_ro("dropped", [=](const Counts& c) { return (c.*requests).dropped; })
      .def_prop_ro("failed", [=](const Counts& c) { return (c.*requests).failed; })
      .def_prop_ro(
          "attainment", [=](const Counts& c) { return (c.*requests).attainment(); },
          "Share of the requests that were answered in time.");
}

}  // namespace

void bind_fleet(nb::module_& module) {
  auto model =
      nb::class_<ModelStatistics>(module, "ModelStatistics", "Requests of one model in a simulation.");
  bind_counts(model, &ModelStatistics::requests);
  model.def_ro("model", &ModelStatistics::model)
      .def(
          "latency_us", [](const ModelStatistics& s, double q) { return latency_us(s.latency, q); },
          "share"_a,
          "Latency in us that this share of the answered requests does not exceed: 0.99 is the 99th "
          "percentile.");
  auto simulation = nb::class_<SimulationResult>(module, "Simulation",
                                                 "A fleet plan under load; each request has one outcome.");
  bind_counts(simulation, &SimulationResult::total);
  simulation.def_ro("models", &SimulationResult::models)
      .def(
          "latency_us", [](const SimulationResult& s, double q) { return latency_us(s.latency, q); },
          "share"_a, "As ModelStatistics.latency_us(), over all models.")
      .def("__repr__", [](const SimulationResult& s) {
        return fmt::format("<Simulation {} requests, {:.2f} % in time, p99 {}>", s.total.arrivals,
                           100 * s.total.attainment(), format_us(latency_us(s.latency, .99)));
      });
  nb::class_<PyFleetPlan>(module, "FleetPlan",
                          "Pooled pipelines for each model of a fleet; made by Fleet.plan().")
      .def_prop_ro(
          "value", [](const PyFleetPlan& p) { return p.plan.value; },
          "The objective: requests/s for max-min and goodput, else cost per hour or watts.")
      .def_prop_ro(
          "bound", [](const PyFleetPlan& p) { return p.plan.bound; }, "No plan is better.")
      .def_prop_ro(
          "proven", [](const PyFleetPlan& p) { return p.plan.proof.proven(); },
          "True if Heddle's own code proved the bound.")
      .def_prop_ro("claimed_by", [](const PyFleetPlan& p) { return p.plan.proof.claimed_by; })
      .def_prop_ro("gap", [](const PyFleetPlan& p) { return p.plan.gap(); })
      .def_prop_ro("planner", [](const PyFleetPlan& p) { return p.plan.planner; })
      .def_prop_ro("pipelines", &pipelines_of, nb::sig("def pipelines(self) -> list[dict[str, typing.Any]]"),
                   "Model, batch, rate_per_s and partitions (device_class, blocks, share, count) of each.")
      .def("simulate", &simulated, nb::kw_only(), "rate"_a = nb::none(), "load_factor"_a = 1.0,
           "seconds"_a = 30.0, "traffic"_a = "poisson", "scheduler"_a = "reservation", "seed"_a = 1,
           nb::sig(
               "def simulate(self, *, rate: float | None = None, load_factor: float = 1.0, "
               "seconds: float = 30.0, traffic: typing.Literal['poisson', 'diurnal', 'bursty'] = 'poisson', "
               "scheduler: typing.Literal['reservation', 'busy-until', 'reactive'] = 'reservation', "
               "seed: int = 1) -> Simulation"),
           "Simulates `seconds` of requests. `rate`: requests/s of all models, split as planned; without it "
           "the "
           "planned rates times `load_factor`. The result depends on the arguments alone.")
      .def(
          "check", [](const PyFleetPlan& p) { return fleet_plan_problems(*p.fleet, p.plan); },
          "Findings of the independent checker; empty: the plan is valid.")
      .def(
          "save",
          [](const PyFleetPlan& p, const std::filesystem::path& path) {
            ok_or_raise(write_fleet_plan(path.string(), p.plan, *p.fleet));
          },
          "path"_a, nb::sig("def save(self, path: str | os.PathLike[str]) -> None"),
          "Writes a fleet plan: YAML if the name ends in .yaml, else JSON.")
      .def("__repr__", [](const PyFleetPlan& p) {
        return fmt::format("<FleetPlan of {} by {}: {} {:.6g}, bound {:.6g} ({}), gap {:.2f} %>",
                           p.plan.fleet, p.plan.planner, fleet_objective_name(p.plan.objective), p.plan.value,
                           p.plan.bound, p.plan.proof.text(), 100 * p.plan.gap());
      });
  nb::class_<PyFleet>(module, "Fleet",
                      "Devices of a few classes and the models that share them, with times and deadlines.")
      .def_static("load", &load_fleet, "path"_a, nb::sig("def load(path: str | os.PathLike[str]) -> Fleet"),
                  "Reads a fleet file, YAML or JSON (docs/fleet.md). InvalidInputError names the place.")
      .def_prop_ro("name", [](const PyFleet& f) { return f.fleet->name; })
      .def_prop_ro(
          "devices", [](const PyFleet& f) { return f.fleet->devices(); }, "Number of devices.")
      .def_prop_ro("models",
                   [](const PyFleet& f) {
                     std::vector<std::string> names;
                     for (const auto& m : f.fleet->models) names.push_back(m.name);
                     return names;
                   })
      .def(
          "plan", &plan_for, nb::kw_only(), "planner"_a = "auto", "objective"_a = "max-min", "load"_a = 0.0,
          "time_limit"_a = 10.0, "seed"_a = 1, "threads"_a = 1, "prove"_a = false,
          "on_progress"_a = nb::none(),
          nb::sig("def plan(self, *, planner: str = 'auto', "
                  "objective: typing.Literal['max-min', 'cost', 'power', 'goodput'] = 'max-min', "
                  "load: float = 0.0, time_limit: float = 10.0, seed: int = 1, threads: int = 1, "
                  "prove: bool = False, "
                  "on_progress: collections.abc.Callable[[Progress], object] | None = None) -> FleetPlan"),
          "Plans pools and pipelines. `load`: requests/s of all models; required except for max-min. "
          "`prove`: "
          "spends the rest of the time limit (seconds) on a better bound. Ctrl-C gives the best plan so far. "
          "InfeasibleError names the model that nothing serves in time.")
      .def("__repr__", [](const PyFleet& f) {
        return "<Fleet " + f.fleet->name + ": " +
               counted(static_cast<uint64_t>(f.fleet->devices()), "device") + ", " +
               counted(f.fleet->models.size(), "model") + ">";
      });
}

}  // namespace heddle::python
