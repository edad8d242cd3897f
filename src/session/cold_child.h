// One cold start in a process of its own.
#pragma once

#include <string>

#include "heddle/runtime/cold.h"
#include "heddle/runtime/cold_plan.h"
#include "heddle/session/cold_start.h"

namespace heddle {

// A start as the settings ask for it, without a comparison of outputs.
ColdRunOptions start_options(const ColdSettings& settings, const Control& control);
// The same with nothing overlapping: one request, each segment loaded when the one before it ran.
ColdRunOptions without_overlap(ColdRunOptions options);
// This machine as the prediction needs it.
ColdMachine machine_of(const ColdSettings& settings);

// Reads the plan, which is part of the start's time, and starts. An empty folder: no cache.
Result<ColdRun> cold_start_in_child(const std::string& plan_path, const ColdRunOptions& options,
                                    const std::string& cache_folder, int64_t cache_bytes);

// The plan could be read, so settings and files are right, and a failure of the start is infeasible.
Error cold_start_failed(const std::string& what, const Error& why);

// Settings of a process that exists for one cold start. Call both while it has one thread.

// OpenVINO asks hwloc for the cores, and the system's hwloc, which Open MPI brings in, loads plugins for X11,
// OpenCL and PCI: 15 libraries that a program with OpenVINO alone does not load. A user's HWLOC_PLUGINS_PATH
// stays.
void leave_out_hwloc_plugins();
// Memory is asked for in large pieces and kept (`keep`: also what could be given back), and threads share few
// of malloc's arenas: otherwise load workers that compile at once wait for the system's lock on the process's
// memory, thousands of times in a start (docs/decisions/0026).
void prepare_memory_for_start(int load_workers, bool keep);

}  // namespace heddle
