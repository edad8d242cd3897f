// `heddle whatif` on placement workloads, and what it shares with that on clusters.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan_workload.h"

namespace heddle::cli {

// "gpu0=2": name and factor, above 0 and at most a million.
Result<std::pair<std::string, double>> parse_scale(const std::string& text);

struct WhatifChanges {
  std::vector<std::string> add, remove, scale;
};

// The exit status; nullopt when the file is no placement workload. Its devices are "accelerator" and "cpu"
// (their number changes with --add and --remove, the times on them with --scale), "link" (the time to move
// tensors) and "memory" (of each accelerator). Flow workloads, whose devices cannot be changed one by one,
// and flags that cannot be meant are errors.
Result<std::optional<int>> whatif_workload(const std::string& path, const WorkloadFlags& flags,
                                           const WhatifChanges& changes, const ProblemFlags& problem,
                                           const SearchFlags& search, const Invocation& invocation);

}  // namespace heddle::cli
