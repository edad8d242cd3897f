// Sessions of files that hold a whole problem (heddle/plan/problem_file.h): nothing is grouped or measured.
#pragma once

#include <optional>

#include "heddle/plan/problem_edit.h"
#include "heddle/session/session.h"

namespace heddle {

// nullopt when the file is of another kind. Settings that the file decides are errors.
Result<std::optional<Session>> open_given(const ModelSpec& source, const ProblemSettings& settings);

}  // namespace heddle
