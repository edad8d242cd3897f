// A plan that is compiled once and then runs requests with the caller's inputs.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "heddle/base/control.h"
#include "heddle/base/status.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "heddle/runtime/run_record.h"
#include "heddle/runtime/tensor.h"

namespace heddle {

class Executor;
class Model;

struct RequestResult {
  // Of the model's file, in its order: the graph's, where those whose size depends on data have their true
  // shapes (file_outputs()). Empty if the devices are emulated.
  std::vector<TensorValue> outputs;
  RunRecord record;  // of this one request; its outputs were compared with nothing
};

// Any thread may call run(); requests run one after the other.
class CompiledPlan {
 public:
  // Compiles every segment on its device. `model` may be null if the devices are emulated. Cancellation is an
  // error.
  static Result<std::unique_ptr<CompiledPlan>> create(const Problem& problem, const Plan& plan,
                                                      std::shared_ptr<const Model> model,
                                                      const Control& control);
  ~CompiledPlan();

  // False if the devices are emulated: they take the predicted time and compute nothing.
  bool moves_data() const;
  // In the order of the graph's inputs, copied. Invalid input, with the tensor's name, if the number, an
  // element type or a shape differs. Emulated devices take no inputs.
  Result<RequestResult> run(std::span<const TensorView> inputs, const Control& control);

 private:
  CompiledPlan(Problem problem, Plan plan, double predicted_us, std::unique_ptr<Executor> executor);
  Status take_inputs(std::span<const TensorView> inputs);

  Problem problem_;
  Plan plan_;
  double predicted_us_;
  std::shared_ptr<const Model> model_;
  std::unique_ptr<Executor> executor_;
  std::mutex mutex_;
};

}  // namespace heddle
