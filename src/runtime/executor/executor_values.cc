#include <cstring>

#include "heddle/runtime/executor.h"

namespace heddle {

Result<std::vector<TensorValue>> Executor::run(std::span<const TensorValue> values,
                                               const Deadline& deadline) {
  const auto targets = inputs(0);
  if (moves_data() && values.size() != targets.size()) {
    return Error(Code::kInvalidInput, "the model has " + std::to_string(targets.size()) + " inputs, " +
                                          std::to_string(values.size()) + " were given");
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    if (values[i].dtype != targets[i].dtype || values[i].shape != targets[i].shape) {
      return Error(Code::kInvalidInput, "input " + std::to_string(i) + " must be " +
                                            dtype_name(targets[i].dtype) + " " +
                                            shape_text(targets[i].shape) + ", not " +
                                            dtype_name(values[i].dtype) + " " + shape_text(values[i].shape));
    }
    std::memcpy(targets[i].data, values[i].data.get(), static_cast<size_t>(targets[i].bytes));
  }
  HEDDLE_ASSIGN_OR_RETURN([[maybe_unused]] const RequestTiming timing, run(deadline));
  std::vector<TensorValue> results;
  for (const TensorView& view : outputs(0)) {
    HEDDLE_ASSIGN_OR_RETURN(TensorValue value, make_tensor(view.dtype, view.shape));
    std::memcpy(value.data.get(), view.data, static_cast<size_t>(view.bytes));
    results.push_back(std::move(value));
  }
  return results;
}

}  // namespace heddle
