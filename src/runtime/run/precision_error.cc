#include "heddle/runtime/precision_error.h"

#include <cmath>
#include <limits>

#include "heddle/base/fields.h"
#include "heddle/cluster/variants.h"
#include "heddle/graph/model.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/executor.h"
#include "inputs.h"
#include "whole_engine.h"

namespace heddle {

double rounding_of(Precision precision) {
  switch (precision) {
    case Precision::kF32:
      return 0x1p-24;
    case Precision::kTf32:
    case Precision::kFp16:
      return 0x1p-11;
    case Precision::kBf16:
      return 0x1p-8;
  }
  return 0;
}

Precision narrowest_type(const Problem& problem, const Plan& plan) {
  Precision narrowest = Precision::kF32;
  for (const Segment& segment : plan.segments) {
    const Device& device = problem.cluster->device(segment.device);
    const Backend* backend = find_backend(device.backend);
    if (backend == nullptr || !backend->computes()) continue;
    if (rounding_of(device.precision) > rounding_of(narrowest)) narrowest = device.precision;
  }
  return narrowest;
}

int roundings_per_layer(const Problem& problem, const Plan& plan) {
  int most = 1;
  for (const Segment& segment : plan.segments) {
    const Backend* backend = find_backend(problem.cluster->device(segment.device).backend);
    if (backend != nullptr) most = std::max(most, backend->roundings_per_layer());
  }
  return most;
}

Result<std::unique_ptr<RuntimeDevice>> open_in_float32(const Device& device) {
  return open_device(as_variant(device, {device.backend, Precision::kF32}));
}

bool PrecisionError::explained() const {
  // Without the unsplit model's: as many roundings as a deep model adds up, and never what a lost output looks like.
  constexpr double kRoundings = 64, kMost = 0.05;
  const double allowed = unsplit.samples > 0 ? allowed_times() * unsplit.mean() + rounding_of(type)
                                             : std::min(kRoundings * rounding_of(type), kMost);
  return plan.mean() <= allowed;
}

Result<Samples> with_references(const Model& model, std::vector<std::vector<TensorValue>> inputs) {
  Samples samples;
  HEDDLE_ASSIGN_OR_RETURN(samples.expected, unsplit_outputs(model, Precision::kF32, inputs));
  samples.inputs = std::move(inputs);
  return samples;
}

Result<OutputError> executor_error(Executor& executor, const Graph& graph, const Samples& samples,
                                   const DecisionRules& rules, const Deadline& deadline) {
  OutputError error;
  for (size_t i = 0; i < samples.inputs.size(); ++i) {
    HEDDLE_RETURN_IF_ERROR(run_every_slot(executor, samples.inputs[i], deadline));
    for (int slot = 0; slot < executor.slots(); ++slot)
      add_samples(error, output_error(graph, executor.outputs(slot), samples.expected[i], rules));
  }
  error.samples = static_cast<int>(samples.inputs.size());  // each of them ran in every slot
  return error;
}

Result<OutputError> unsplit_error(const Model& model, Precision type, const Samples& samples,
                                  const DecisionRules& rules) {
  OutputError error;
  const auto outputs = unsplit_outputs(model, type, samples.inputs);
  if (!outputs.ok() && outputs.error().code() == Code::kUnsupported) return error;
  if (!outputs.ok()) return outputs.error();
  for (size_t i = 0; i < outputs->size(); ++i)
    add_samples(error, output_error(*model.graph(), views_of((*outputs)[i]), samples.expected[i], rules));
  return error;
}

Result<std::vector<TensorValue>> reference_outputs(const Model& model, std::span<const TensorValue> inputs) {
  const std::vector<TensorValue> sample(inputs.begin(), inputs.end());
  HEDDLE_ASSIGN_OR_RETURN(auto outputs, unsplit_outputs(model, Precision::kF32, {&sample, 1}));
  return std::move(outputs.front());
}

namespace {

// JSON has no infinity.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json("infinite"); }

Result<double> number_from_json(const JsonCursor& at) {
  if (at.value().is_string()) return std::numeric_limits<double>::infinity();
  double value = 0;
  HEDDLE_RETURN_IF_ERROR(take(at, value, -1e308, 1e308));
  return value;
}

Result<TensorError> tensor_error_from_json(const JsonCursor& at) {
  TensorError e;
  Fields f(at);
  f.required("output", e.output)
      .required("largest", e.largest, number_from_json)
      .required("mean", e.mean, number_from_json)
      .required("cosine", e.cosine, number_from_json)
      .required("decision", e.kind, decision_kind_named, "a kind of decision, such as argmax")
      .required("decisions", e.decisions, 0, INT64_MAX)
      .required("agreeing", e.agreeing, 0, INT64_MAX)
      .required("top5", e.top5, 0, INT64_MAX)
      .required("top5_agreeing", e.top5_agreeing, 0, INT64_MAX);
  HEDDLE_RETURN_IF_ERROR(f.finish());
  return e;
}

Result<OutputError> output_error_from_json(const JsonCursor& at) {
  OutputError error;
  double ignored = 0;
  Fields f(at);
  f.required("samples", error.samples, 0, 1 << 30)
      .required("largest", ignored, number_from_json)
      .required("mean", ignored, number_from_json)
      .required("cosine", ignored, number_from_json)
      .required("agreement", ignored, 0, 1)
      .required("top5_agreement", ignored, 0, 1)
      .required("outputs", each_into(error.outputs, tensor_error_from_json));
  HEDDLE_RETURN_IF_ERROR(f.finish());
  return error;
}

}  // namespace

Json output_error_json(const OutputError& error) {
  Json outputs = Json::array();
  for (const TensorError& e : error.outputs)
    outputs.push_back({{"output", e.output},
                       {"largest", number(e.largest)},
                       {"mean", number(e.mean)},
                       {"cosine", e.cosine},
                       {"decision", decision_kind_name(e.kind)},
                       {"decisions", e.decisions},
                       {"agreeing", e.agreeing},
                       {"top5", e.top5},
                       {"top5_agreeing", e.top5_agreeing}});
  return {{"samples", error.samples},       {"largest", number(error.largest())},
          {"mean", number(error.mean())},   {"cosine", error.cosine()},
          {"agreement", error.agreement()}, {"top5_agreement", error.top5_agreement()},
          {"outputs", std::move(outputs)}};
}

Json precision_error_json(const PrecisionError& error) {
  Json json = {{"type", precision_name(error.type)}, {"plan", output_error_json(error.plan)}};
  if (error.unsplit.samples > 0) json["unsplit"] = output_error_json(error.unsplit);
  json["roundings"] = error.roundings;
  json["explained"] = error.explained();
  return json;
}

Result<PrecisionError> precision_error_from_json(const JsonCursor& cursor) {
  PrecisionError error;
  bool ignored = false;
  Fields f(cursor);
  f.required("type", error.type, precision_from_name, "a type, such as bf16")
      .required("plan", error.plan, output_error_from_json)
      .optional("unsplit", error.unsplit, output_error_from_json)
      .optional("roundings", error.roundings, 1, 100)
      .required("explained", ignored);
  HEDDLE_RETURN_IF_ERROR(f.finish());
  return error;
}

}  // namespace heddle
