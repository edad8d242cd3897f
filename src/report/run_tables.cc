#include "heddle/report/run_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "heddle/base/gap.h"
#include "heddle/base/json.h"
#include "heddle/base/spelling.h"
#include "heddle/base/terminal.h"
#include "heddle/base/units.h"
#include "heddle/report/text_table.h"

namespace heddle {
namespace {

double relative(double measured, double predicted) {
  return predicted > 0 ? (measured - predicted) / predicted : 0;
}

std::string step_name(const Problem& problem, const Plan& plan, const Step& step) {
  const auto& segment = plan.segments[step.segment.index()];
  switch (step.kind) {
    case StepKind::kRun:
      return "run " + segment.name;
    case StepKind::kTransfer:
      return "send " + problem.graph->tensor(step.tensor).name;
    case StepKind::kLoad:
      return "load " + segment.name;
  }
  return "";
}

std::string step_place(const Problem& problem, const Step& step, const Segment& segment) {
  const auto& cluster = *problem.cluster;
  if (step.kind == StepKind::kRun) return cluster.device(segment.device).name;
  if (step.kind == StepKind::kLoad) return cluster.device(step.to).name;
  return cluster.device(step.from).name + " > " + cluster.device(step.to).name;
}

// Predictions from measured times are within this factor.
constexpr double kUsualBand = 1.1;

// The error band of the step's predicted time.
double error_band(const Problem& problem, const Plan& plan, const Step& step) {
  if (step.kind != StepKind::kRun) return kUsualBand;
  const auto& segment = plan.segments[step.segment.index()];
  return std::max(kUsualBand, problem.costs->segment(segment.ops, segment.device).error_factor());
}

// Yellow outside the band, red far outside.
std::string error_cell(double measured, double predicted, double band) {
  auto text = signed_percent(relative(measured, predicted));
  if (!(measured > 0) || !(predicted > 0)) return text;
  const double off = std::max(measured / predicted, predicted / measured);
  if (off <= band) return text;
  return painted(off <= band * band ? Ink::kYellow : Ink::kRed, text);
}

}  // namespace

Json run_json(const PlanFile& file, const Timeline& timeline, const RunRecord& run) {
  Json steps = Json::array();
  for (size_t i = 0; i < file.plan.steps.size(); ++i) {
    const auto& step = file.plan.steps[i];
    const double predicted = timeline.finish_us[i] - timeline.start_us[i];
    const double measured = run.steps[i].median_us;
    steps.push_back({{"step", step_name(file.problem, file.plan, step)},
                     {"where", step_place(file.problem, step, file.plan.segments[step.segment.index()])},
                     {"predicted_us", predicted},
                     {"measured_us", measured},
                     {"error", relative(measured, predicted)},
                     {"spread", run.steps[i].rel_spread}});
  }
  return {{"planner", file.planner},
          {"objective", objective_name(file.problem.objective)},
          {"outputs_compared", run.verified},
          {"outputs_equal", run.verified ? Json(run.outputs_equal) : Json()},
          {"max_rel_error", run.max_rel_error},
          {"max_abs_error", run.max_abs_error},
          {"precision_error", run.precision ? precision_error_json(*run.precision) : Json()},
          {"rtol", run.rtol},
          {"atol", run.atol},
          {"predicted_us", run.predicted_us},
          {"measured_us", run.measured_us},
          {"error", relative(run.measured_us, run.predicted_us)},
          {"bound", file.bound.us},
          {"repeats", run.repeats},
          {"warmups", run.warmups},
          {"in_flight", run.requests_in_flight},
          {"steps", std::move(steps)}};
}

std::string run_text(const PlanFile& file, const Timeline& timeline, const RunRecord& run) {
  constexpr size_t kMostRows = 40;
  TextTable table({{"step"},
                   {"where"},
                   {"predicted", TextTable::Align::kRight},
                   {"measured", TextTable::Align::kRight},
                   {"error", TextTable::Align::kRight},
                   {"spread", TextTable::Align::kRight}});
  double widest = kUsualBand;
  for (const auto& step : file.plan.steps)
    widest = std::max(widest, error_band(file.problem, file.plan, step));
  for (size_t i = 0; i < file.plan.steps.size() && i < kMostRows; ++i) {
    const auto& step = file.plan.steps[i];
    const double predicted = timeline.finish_us[i] - timeline.start_us[i];
    const auto& m = run.steps[i];
    table.add_row({step_name(file.problem, file.plan, step),
                   step_place(file.problem, step, file.plan.segments[step.segment.index()]),
                   format_us(predicted), format_us(m.median_us),
                   error_cell(m.median_us, predicted, error_band(file.problem, file.plan, step)),
                   percent(m.rel_spread)});
  }
  table.add_rule();
  table.add_row({file.problem.objective == Objective::kThroughput ? "time per request" : "whole request", "",
                 format_us(run.predicted_us), format_us(run.measured_us),
                 error_cell(run.measured_us, run.predicted_us, widest)});
  std::string text = table.to_string();
  if (file.plan.steps.size() > kMostRows)
    text += fmt::format("({} more steps; --json has them all)\n", file.plan.steps.size() - kMostRows);
  text += fmt::format("\nmedian of {} after {}, {} in flight\n{} ({})\n", counted(run.repeats, "run"),
                      counted(run.warmups, "warm-up run"), counted(run.requests_in_flight, "request"),
                      bound_text(format_us(file.bound.us)), file.bound.proof.text());
  if (!run.verified && run.precision) {
    return text +
           "outputs of the plan in f32: not compared (the devices' memory holds it in its types alone)\n" +
           precision_text(run.precision);
  }
  if (!run.verified) {
    return text + "outputs: not compared (" +
           (file.problem.model ? "turned off, interrupted, or emulated devices compute nothing"
                               : "the graph has no real model") +
           ")\n";
  }
  return text +
         fmt::format(
             "outputs{}: {} to the unsplit model's ({}, max abs error {:.3g}, max rel error "
             "{:.3g};\n         rtol {:g}, atol {:g})\n",
             run.precision ? " of the plan in f32" : "",
             run.outputs_equal ? painted(Ink::kGreen, "equal") : painted(Ink::kRed, "NOT EQUAL"),
             counted(run.outputs_compared.size(), "tensor"), run.max_abs_error, run.max_rel_error, run.rtol,
             run.atol) +
         precision_text(run.precision);
}

namespace {

// Whether the times of the segments changed by more than what remains unexplained.
bool machine_changed(const Recheck& r) { return std::abs(r.drift) > std::abs(r.error); }

// Whether nothing that is off shows any more when the plan is timed again.
bool has_passed(const Recheck& r) {
  const auto usual = [](double change) { return 1 + change < kUsualBand && kUsualBand * (1 + change) > 1; };
  return usual(r.drift) && usual(r.error) && usual((1 + r.drift) * (1 + r.error) - 1);
}

// Whether the rounds differ too much to tell what the prediction is worth: other work disturbs them.
bool disturbed(const Recheck& r) { return r.error_high - r.error_low > 2 * (kUsualBand - 1); }

enum class Cause { kPassed, kMachine, kDisturbed, kPrediction };

Cause cause_of(const Recheck& r) {
  if (has_passed(r)) return Cause::kPassed;
  if (machine_changed(r)) return Cause::kMachine;
  return disturbed(r) ? Cause::kDisturbed : Cause::kPrediction;
}

}  // namespace

std::string precision_text(const std::optional<PrecisionError>& error) {
  if (!error) return "";
  const auto line = [](const OutputError& e) {
    return fmt::format("largest {:.2g}, mean {:.2g} of the outputs' range, cosine {:.6f}; decisions {}",
                       e.largest(), e.mean(), e.cosine(), agreement_text(e));
  };
  std::string text =
      fmt::format("error of {} against f32, {}:\n  plan           {}\n", precision_name(error->type),
                  counted(static_cast<uint64_t>(error->plan.samples), "sample"), line(error->plan));
  const bool compared = error->unsplit.samples > 0;
  if (compared) text += fmt::format("  unsplit model  {}\n", line(error->unsplit));
  if (error->explained()) return text;
  return text + "  " + painted(Ink::kRed, "NOT EXPLAINED") +
         " by rounding: the plan's mean error is more than " +
         (compared ? fmt::format("{} times the unsplit model's\n", error->allowed_times())
                   : "64 roundings, or 5 % of the range\n");
}

std::string agreement_text(const OutputError& error) {
  return error.decisions() > 0 ? fmt::format("{:.2f} % of {}", 100 * error.agreement(), error.decisions())
                               : "-";
}

Json recheck_json(const Recheck& r) {
  return {{"predicted_us", r.predicted_us},
          {"measured_us", r.measured_us},
          {"error", r.error},
          {"error_low", r.error_low},
          {"error_high", r.error_high},
          {"drift", r.drift},
          {"rounds", r.rounds}};
}

std::string recheck_text(const Recheck& r) {
  return fmt::format(
      "segments timed again in turns with requests: predicted {}, measured {}; median error of a round {}\n"
      "         (quartiles {} to {}, {} rounds); the segments now take {} compared with the profile\n",
      format_us(r.predicted_us), format_us(r.measured_us), signed_percent(r.error),
      signed_percent(r.error_low), signed_percent(r.error_high), r.rounds, signed_percent(r.drift));
}

bool is_off(const RunRecord& run) {
  const double low = std::min(run.measured_us, run.predicted_us);
  return low > 0 && std::max(run.measured_us, run.predicted_us) > kUsualBand * low;
}

Json off_because_json(const Recheck& r) {
  constexpr const char* kNames[] = {"passed", "machine", "disturbed", "prediction"};
  return {{"cause", kNames[static_cast<size_t>(cause_of(r))]}, {"drift", r.drift}, {"error", r.error}};
}

std::string off_because_text(const Recheck& r) {
  const std::string now = signed_percent(r.drift), error = signed_percent(r.error);
  switch (cause_of(r)) {
    case Cause::kPassed:
      return fmt::format(
          "what slowed the run down, or sped it up, has passed: timed again, the plan's segments take {} "
          "compared\n"
          "         with the profile, and the prediction is off by {}\n",
          now, error);
    case Cause::kMachine:
      return fmt::format(
          "the machine is {} than when it was profiled: the plan's segments alone now take {}; with these "
          "times the\n"
          "         prediction is off by {}\n",
          r.drift > 0 ? "slower" : "faster", now, error);
    case Cause::kDisturbed:
      return fmt::format(
          "other work disturbs the machine: timed again, the prediction is off by {} to {} in half of the "
          "rounds,\n"
          "         too far apart to tell whether the prediction is right\n",
          signed_percent(r.error_low), signed_percent(r.error_high));
    case Cause::kPrediction:
      break;
  }
  return fmt::format(
      "the prediction is wrong, not the machine: the plan's segments alone take {} compared with the "
      "profile, and\n"
      "         with these times the prediction is off by {}\n",
      now, error);
}

std::string comparison_text(const Comparison& c, Objective objective) {
  TextTable table({{"engine alone, all cores"},
                   {"time", TextTable::Align::kRight},
                   {"plan / engine", TextTable::Align::kRight},
                   {"quartiles", TextTable::Align::kRight},
                   {"largest error", TextTable::Align::kRight},
                   {"decisions", TextTable::Align::kRight}});
  std::string absent;
  for (const EngineComparison& e : c.engines) {
    if (!e.absent.empty()) {
      absent += fmt::format("{}: {}\n", engine_name(e.engine), e.absent);
      continue;
    }
    table.add_row({engine_name(e.engine), format_us(e.us), fmt::format("{:.3f}", e.ratio),
                   fmt::format("{:.3f} to {:.3f}", e.ratio_low, e.ratio_high),
                   fmt::format("{:.2g}", e.error.largest()), agreement_text(e.error)});
  }
  return fmt::format("\n{}{}this plan: {}; {} in turns{}; errors are parts of the f32 outputs' range\n",
                     table.to_string(), absent, format_us(c.ours_us),
                     counted(static_cast<uint64_t>(c.rounds), "round"),
                     objective == Objective::kThroughput ? ", engines in their throughput mode" : "");
}

Json comparison_json(const Comparison& c) {
  Json engines = Json::array();
  for (const EngineComparison& e : c.engines) {
    Json row = {{"engine", engine_name(e.engine)}};
    if (e.absent.empty()) {
      row.update({{"us", e.us},
                  {"ratio", e.ratio},
                  {"ratio_low", e.ratio_low},
                  {"ratio_high", e.ratio_high},
                  {"requests", e.requests},
                  {"error", output_error_json(e.error)}});
    } else {
      row["absent"] = e.absent;
    }
    engines.push_back(std::move(row));
  }
  return {{"ours_us", c.ours_us}, {"rounds", c.rounds}, {"engines", std::move(engines)}};
}

}  // namespace heddle
