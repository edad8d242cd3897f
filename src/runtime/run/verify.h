// Compares what a plan computes with the unsplit model.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "heddle/runtime/executor.h"
#include "heddle/runtime/run.h"

namespace heddle {

struct Verification {
  const Problem* problem = nullptr;
  const Plan* plan = nullptr;
  std::shared_ptr<const Model> model;
  std::span<const TensorValue> inputs;
  std::span<const std::vector<TensorValue>> samples;  // for the error of narrower types; empty: `inputs`
  const DecisionRules* decisions = nullptr;           // null: usual ones
  double rtol = 0, atol = 0;
  ExecutorOptions again;  // for the plan in float32
};

// `executor` has just run `inputs` in its first `slots` slots. Plans in float32 are compared as they are. Otherwise the
// error of the plan's types is measured. Then the plan is compiled again with all devices in float32 and compared, if
// it fits their memory so; `executor` is null afterwards.
Status verify_plan(const Verification& v, std::unique_ptr<Executor>& executor, int slots, OutputCheck& check);

}  // namespace heddle
