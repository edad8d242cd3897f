// `heddle plan` on files that bring their own devices, times and rules: placement workloads
// (heddle/plan/dnn_workload.h) and flow workloads (heddle/plan/flow_workload.h).
#pragma once

#include <optional>
#include <string>

#include "command.h"
#include "heddle/base/status.h"
#include "heddle/planners/dnn_planner.h"
#include "model_flags.h"

namespace heddle::cli {

struct WorkloadFlags {
  bool contiguous = false;  // placement workloads, throughput
  int64_t pieces = 1;       // placement workloads, latency
  void declare(Command& command);
};

enum class WorkloadKind { kNone, kPlacement, kFlow };
// By the file's members; kNone when it cannot be read (the model readers say so).
Result<WorkloadKind> workload_kind(const std::string& path);

// The rules that the flags ask for. Flags that cannot be meant for a placement workload are errors.
Result<DnnRules> placement_rules(const std::string& path, const WorkloadFlags& flags,
                                 const ProblemFlags& problem);

// The exit status; nullopt when the file is no such workload (or cannot be read: the model readers say so).
// Flags that cannot be meant for a workload are errors.
Result<std::optional<int>> plan_workload(const std::string& path, const WorkloadFlags& flags,
                                         const ProblemFlags& problem, const SearchFlags& search,
                                         const std::string& output, const Invocation& invocation);

}  // namespace heddle::cli
