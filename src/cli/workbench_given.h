// Workbench for files that hold a whole problem (heddle/plan/problem_file.h): nothing is grouped or measured.
#pragma once

#include <optional>

#include "heddle/plan/problem_edit.h"
#include "workbench.h"

namespace heddle::cli {

// nullopt when the file is of another kind. Flags that cannot be meant for it are errors.
Result<std::optional<Workbench>> given_workbench(const ModelFlags& model, const ProblemFlags& flags);

// The workbench's problem with one change of its hardware.
Result<Problem> with_edit(const Workbench& bench, const ProblemEdit& edit, const ProblemFlags& flags);

}  // namespace heddle::cli
