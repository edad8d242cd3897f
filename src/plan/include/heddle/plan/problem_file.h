// Files that hold a whole problem, with devices and times: plan files and the workloads of papers.
#pragma once

#include <optional>
#include <string>

#include "heddle/base/status.h"
#include "heddle/plan/placement_workload.h"
#include "heddle/plan/problem.h"

namespace heddle {

struct ProblemFile {
  Problem problem;
  std::string kind;  // "plan file", "flow workload", "placement workload"
};

// nullopt when the file is of another kind, or cannot be read as JSON (readers of models say why). Errors of a
// file of one of these kinds carry the path. `options` are for placement workloads; with others, options other
// than the defaults are errors, but for an objective that is the problem's own.
Result<std::optional<ProblemFile>> read_problem_file(const std::string& path,
                                                     const PlacementOptions& options = {});

}  // namespace heddle
