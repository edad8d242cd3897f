#include "verify.h"

#include "heddle/runtime/precision_error.h"
#include "inputs.h"

namespace heddle {
namespace {

Status compare_slots(const Verification& v, Executor& executor, int slots, OutputCheck& check) {
  HEDDLE_ASSIGN_OR_RETURN(const auto expected, reference_outputs(*v.model, v.inputs));
  for (int slot = 0; slot < slots; ++slot)
    HEDDLE_RETURN_IF_ERROR(check_outputs(executor.outputs(slot), expected, v.rtol, v.atol, check));
  return {};
}

Status measure_precision(const Verification& v, Precision type, Executor& executor, OutputCheck& check) {
  std::vector<std::vector<TensorValue>> inputs(v.samples.begin(), v.samples.end());
  if (inputs.empty()) inputs.emplace_back(v.inputs.begin(), v.inputs.end());
  HEDDLE_ASSIGN_OR_RETURN(const Samples samples, with_references(*v.model, std::move(inputs)));
  const DecisionRules usual;
  const DecisionRules& rules = v.decisions != nullptr ? *v.decisions : usual;
  PrecisionError& error = check.precision.emplace();
  error.type = type;
  error.roundings = roundings_per_layer(*v.problem, *v.plan);
  HEDDLE_ASSIGN_OR_RETURN(error.plan,
                          executor_error(executor, *v.problem->graph, samples, rules, v.again.deadline));
  HEDDLE_ASSIGN_OR_RETURN(error.unsplit, unsplit_error(*v.model, type, samples, rules));
  return {};
}

}  // namespace

Status verify_plan(const Verification& v, std::unique_ptr<Executor>& executor, int slots,
                   OutputCheck& check) {
  const Precision type = narrowest_type(*v.problem, *v.plan);
  if (type == Precision::kF32) return compare_slots(v, *executor, slots, check);
  HEDDLE_RETURN_IF_ERROR(measure_precision(v, type, *executor, check));
  executor.reset();  // two copies of the parameters may not fit
  ExecutorOptions options = v.again;
  options.open = open_in_float32;
  const auto again = Executor::create(*v.problem, *v.plan, v.model, options);
  if (!again.ok() && again.error().code() == Code::kInfeasible) return {};  // twice the bytes may not fit
  HEDDLE_RETURN_IF_ERROR(again.ok() ? Status() : Status(again.error()));
  HEDDLE_RETURN_IF_ERROR(run_every_slot(**again, v.inputs, v.again.deadline));
  return compare_slots(v, **again, (*again)->slots(), check);
}

}  // namespace heddle
