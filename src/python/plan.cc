// The class Plan: what it takes, why, and how it is drawn.
#include <fmt/format.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "background.h"
#include "heddle/base/spelling.h"
#include "heddle/base/units.h"
#include "heddle/graph/op_named.h"
#include "heddle/plan/checker.h"
#include "heddle/plan/robustness.h"
#include "heddle/report/explain.h"
#include "heddle/report/moves.h"
#include "heddle/report/text_table.h"
#include "heddle/report/timeline_view.h"
#include "objects.h"

namespace heddle::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

constexpr double kWhyNotSeconds = 10;

TimelineView view_of(const PyPlan& plan) {
  const PlanResult& r = plan.result;
  return make_timeline_view(plan.problem(), r.plan, r.timeline, r.bound, r.planner);
}

Explanation explanation_of(const PyPlan& plan) {
  const PlanResult& r = plan.result;
  return explain(plan.problem(), r.plan, r.timeline, r.bound);
}

std::string text_of(const PyPlan& plan) {
  const PlanResult& r = plan.result;
  const Problem& problem = plan.problem();
  std::string text =
      fmt::format("{} on {}: {} {}\n  bound {} ({}), gap {:.1f} %; planner {}, {:.2f} s, {}; checked\n",
                  plan.session.loaded.name, problem.cluster->name(), objective_name(problem.objective),
                  format_us(r.value_us), format_us(r.bound.us), r.bound.proof.text(), 100 * r.gap, r.planner,
                  r.planning_s, stop_reason_name(r.stop));
  TextTable table({{"device"},
                   {"segments", TextTable::Align::kRight},
                   {"busy", TextTable::Align::kRight},
                   {"share", TextTable::Align::kRight}});
  for (size_t d = 0; d < problem.cluster->num_devices(); ++d) {
    const auto segments =
        std::count_if(r.plan.segments.begin(), r.plan.segments.end(),
                      [&](const Segment& segment) { return segment.device == DeviceId(d); });
    if (segments == 0) continue;
    const double busy = r.timeline.device_busy_us[d];
    table.add_row({problem.cluster->device(DeviceId(d)).name, std::to_string(segments), format_us(busy),
                   percent(r.value_us > 0 ? busy / r.value_us : 0)});
  }
  return text + table.to_string();
}

nb::dict robustness_of(const PyPlan& plan) {
  const Robustness r = value_or_raise(robustness(plan.problem(), plan.result.plan));
  nb::dict values;
  for (const auto& loss : r.losses) {
    const std::string what = loss.worst.what + " -" + std::to_string(std::lround(100 * loss.share)) + " %";
    values[what.c_str()] = loss.worst.value_us;
  }
  if (r.core) values[(r.core->what + " taken").c_str()] = r.core->value_us;
  return values;
}

nb::tuple worst_case(const PyPlan& plan, double lost) {
  if (!(lost >= 0 && lost < 1))
    raise(invalid_input("a device loses a share of its speed from 0 up to below 1"));
  const WorstLoss worst = value_or_raise(worst_loss(plan.problem(), plan.result.plan, lost));
  return nb::make_tuple(plan.problem().cluster->device(worst.device).name, worst.value_us);
}

struct PlacedSegment {
  std::string name, device;
  std::vector<std::string> ops;
  double start_us = 0, finish_us = 0;
};

std::vector<PlacedSegment> segments_of(const PyPlan& plan) {
  const Problem& problem = plan.problem();
  std::vector<PlacedSegment> list;
  for (const Segment& segment : plan.result.plan.segments) {
    PlacedSegment placed{segment.name, problem.cluster->device(segment.device).name, {}};
    for (const OpId op : segment.ops) placed.ops.push_back(problem.graph->op(op).name);
    list.push_back(std::move(placed));
  }
  const auto& steps = plan.result.plan.steps;
  for (size_t s = 0; s < steps.size(); ++s) {
    if (steps[s].kind != StepKind::kRun) continue;
    list[steps[s].segment.index()].start_us = plan.result.timeline.start_us[s];
    list[steps[s].segment.index()].finish_us = plan.result.timeline.finish_us[s];
  }
  return list;
}

nb::dict placement(const PyPlan& plan) {
  nb::dict devices;
  for (const PlacedSegment& segment : segments_of(plan))
    for (const auto& op : segment.ops) devices[op.c_str()] = segment.device;
  return devices;
}

// A Move with the names in it.
struct NamedMove {
  std::string device;
  std::vector<std::string> ops;
  Move move;
};

NamedMove named(const Problem& problem, Move move) {
  NamedMove result{problem.cluster->device(move.device).name, {}, std::move(move)};
  for (const OpId op : result.move.ops) result.ops.push_back(problem.graph->op(op).name);
  return result;
}

std::vector<NamedMove> why(const PyPlan& plan, const std::string& name) {
  const OpId op = value_or_raise(op_named(*plan.problem().graph, name));
  auto moves = call_in_background(nb::none(), Interrupted::kRaises, [&](const Control&) {
    return moves_of(plan.problem(), plan.result.plan, op);
  });
  std::vector<NamedMove> list;
  for (Move& move : moves) list.push_back(named(plan.problem(), std::move(move)));
  return list;
}

std::optional<NamedMove> why_not(const PyPlan& plan, const std::string& name) {
  const DeviceId device = value_or_raise(device_named(*plan.problem().cluster, name));
  auto best = call_in_background(nb::none(), Interrupted::kRaises, [&](const Control& control) {
    return best_use(plan.problem(), plan.result.plan, device,
                    Deadline::after_seconds(kWhyNotSeconds, control.cancel));
  });
  if (!best.move) return std::nullopt;
  return named(plan.problem(), std::move(*best.move));
}

nb::dict verify(const PyPlan& plan) {
  const PlanResult& r = plan.result;
  const CheckReport report = check(plan.problem(), r.plan, r.timeline, r.bound.us);
  nb::list findings;
  for (const Finding& finding : report.findings)
    findings.append(nb::make_tuple(violation_name(finding.kind), finding.message));
  nb::dict answer;
  answer["verified"] = report.ok();
  answer["findings"] = findings;
  return answer;
}

void bind_parts(nb::module_& module) {
  nb::enum_<Objective>(module, "Objective", nb::is_str(), "The quantity that a plan minimises.")
      .str_value("LATENCY", Objective::kLatency, "latency",
                 "The time of one request, parameters on the devices.")
      .str_value("COLD_LATENCY", Objective::kColdLatency, "cold-latency",
                 "The time of the first request, loading included.")
      .str_value("THROUGHPUT", Objective::kThroughput, "throughput",
                 "The time per request in the steady state.");
  nb::enum_<StopReason>(module, "Termination", nb::is_str(), "Why planning ended.")
      .str_value("OPTIMAL", StopReason::kOptimal, "optimal", "No plan is better, as the bound shows.")
      .str_value("FINISHED", StopReason::kFinished, "finished", "The planner had no more to try.")
      .str_value("TIME_LIMIT", StopReason::kTimeLimit, "time-limit")
      .str_value("CANCELLED", StopReason::kCancelled, "cancelled",
                 "Interrupted; the plan is the best so far.");
  nb::class_<Bound>(module, "Bound", "No plan of the problem has a smaller value than this.")
      .def_ro("us", &Bound::us, "In us.")
      .def_prop_ro(
          "proven", [](const Bound& b) { return b.proof.proven(); },
          "True if Heddle's own code proved it, False if a solver claims it.")
      .def_prop_ro(
          "claimed_by", [](const Bound& b) { return b.proof.claimed_by; },
          "The solver and its version; \"\" if it is proven.")
      .def_prop_ro(
          "reason", [](const Bound& b) { return b.proof.reason; }, "\"critical path\", \"area\", ...")
      .def("__float__", [](const Bound& b) { return b.us; })
      .def("__repr__",
           [](const Bound& b) { return "<Bound " + format_us(b.us) + ", " + b.proof.text() + ">"; });
  nb::class_<PlacedSegment>(module, "Segment", "Units that run as one compiled piece on one device.")
      .def_ro("name", &PlacedSegment::name)
      .def_ro("device", &PlacedSegment::device)
      .def_ro("ops", &PlacedSegment::ops, "Its units.")
      .def_ro("start_us", &PlacedSegment::start_us, "Predicted, from the request's start.")
      .def_ro("finish_us", &PlacedSegment::finish_us)
      .def("__repr__", [](const PlacedSegment& s) {
        return "<Segment " + s.name + " on " + s.device + ": " + counted(s.ops.size(), "unit") + ">";
      });
  nb::class_<NamedMove>(module, "Move", "The plan with some units on another device and all else as it is.")
      .def_ro("device", &NamedMove::device)
      .def_ro("ops", &NamedMove::ops, "The units that move.")
      .def_prop_ro(
          "ops_us", [](const NamedMove& m) { return m.move.ops_us; },
          "Their time there, one by one, in us; infinite if the device cannot run them.")
      .def_prop_ro("origin", [](const NamedMove& m) { return m.move.origin; })
      .def_prop_ro(
          "planned", [](const NamedMove& m) { return m.move.planned; }, "This is the plan itself.")
      .def_prop_ro(
          "value_us", [](const NamedMove& m) { return m.move.value_us; },
          "The objective after the move, in us; None if there is no valid plan.")
      .def_prop_ro(
          "refused", [](const NamedMove& m) { return m.move.refused; }, "Then: why.")
      .def("__repr__", [](const NamedMove& m) {
        return "<Move to " + m.device + ": " +
               (m.move.value_us ? format_us(*m.move.value_us) : "refused, " + m.move.refused) +
               (m.move.planned ? ", as planned>" : ">");
      });
}

}  // namespace

void bind_plan(nb::module_& module) {
  bind_parts(module);
  nb::class_<PyPlan>(module, "Plan",
                     "Place and time of every unit, as checked and timed by Heddle. Made by plan() or "
                     "Plan.load(). Times are predictions in us. In a notebook it shows its timeline.")
      .def_prop_ro(
          "value_us", [](const PyPlan& p) { return p.result.value_us; },
          "The objective: the time of one request, or for throughput the time per request.")
      .def_prop_ro(
          "rate_per_s", [](const PyPlan& p) { return kUsPerSecond / p.result.value_us * p.problem().batch; },
          "Requests a second if they follow each other (throughput: in the steady state).")
      .def_prop_ro("objective", [](const PyPlan& p) { return p.problem().objective; })
      .def_prop_ro("bound", [](const PyPlan& p) { return p.result.bound; })
      .def_prop_ro(
          "gap", [](const PyPlan& p) { return p.result.gap; }, "(value - bound) / bound.")
      .def_prop_ro(
          "robustness", &robustness_of, nb::sig("def robustness(self) -> dict[str, float]"),
          "The objective in us on a busy machine. The named device loses part of its speed (\"cpu0 -50 %\"), "
          "or another process takes the named core (\"core 1 taken\"). Of each kind the one that costs most. "
          "The slowdown without a core is measured by profile(), else by a rule.")
      .def("worst_case", &worst_case, "lost"_a,
           nb::sig("def worst_case(self, lost: float) -> tuple[str, float]"),
           "The device of the plan whose loss of that share of its speed costs most, and the objective in us "
           "then.")
      .def_prop_ro("termination", [](const PyPlan& p) { return p.result.stop; })
      .def_prop_ro("planner", [](const PyPlan& p) { return p.result.planner; })
      .def_prop_ro("planning_s", [](const PyPlan& p) { return p.result.planning_s; })
      .def_prop_ro("cluster", [](const PyPlan& p) { return PyCluster{p.problem().cluster}; })
      .def_prop_ro("segments", &segments_of)
      .def_prop_ro("placement", &placement, nb::sig("def placement(self) -> dict[str, str]"),
                   "Device of each unit, by name.")
      .def("why", &why, "op"_a,
           "The plan's value with this op (a unit or an ONNX node) on each device. NotFoundError if there is "
           "no "
           "such op.")
      .def("why_not", &why_not, "device"_a,
           "The best plan in which the device takes over one segment or unit; None if it can take none. "
           "Takes at "
           "most 10 s.")
      .def(
          "explain", [](const PyPlan& p) { return explanation_text(explanation_of(p)); },
          "Devices, critical path, bound and helpful changes, as text.")
      .def("verify", &verify, nb::sig("def verify(self) -> dict[str, typing.Any]"),
           "Checks the plan again: {\"verified\": bool, \"findings\": [(kind, message)]}.")
      .def(
          "save",
          [](const PyPlan& p, const std::filesystem::path& path) {
            ok_or_raise(write_plan_file(path.string(), plan_file(p.problem(), p.result, p.search.seed)));
          },
          "path"_a, nb::sig("def save(self, path: str | os.PathLike[str]) -> None"),
          "Writes a plan file, which `heddle verify`, `run`, `serve` and Plan.load() read.")
      .def(
          "_repr_svg_", [](const PyPlan& p) { return timeline_svg(view_of(p)); }, "The timeline.")
      .def(
          "to_html", [](const PyPlan& p) { return timeline_html(view_of(p), explanation_of(p)); },
          "A page with the timeline, zoom and explanation; it needs no network.")
      .def(
          "to_trace", [](const PyPlan& p) { return timeline_trace_json(view_of(p)); },
          "A trace for Chrome and Perfetto.")
      .def("__repr__", &text_of);
}

}  // namespace heddle::python
