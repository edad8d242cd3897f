// The decisions that two outputs lead to.
#pragma once

#include "heddle/runtime/output_error.h"

namespace heddle {

// Counts them in `error`. Nothing if the tensors differ in type or shape, or the rule does not fit the shape.
void compare_decisions(const DecisionRule& rule, const TensorView& actual, const TensorView& expected,
                       TensorError& error);

}  // namespace heddle
