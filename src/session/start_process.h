// What a process that exists for one cold start does before anything else.
#pragma once

namespace heddle {

// Both change settings of the whole process and are to be called while it has one thread.

// OpenVINO asks hwloc for the cores, and the system's hwloc, which Open MPI brings in, loads plugins for X11,
// OpenCL and PCI: 15 libraries that a program with OpenVINO alone does not load. A user's HWLOC_PLUGINS_PATH
// stays.
void leave_out_hwloc_plugins();

// Memory is asked for in large pieces and kept (`keep`: also what could be given back), and threads share few
// of malloc's arenas: otherwise load workers that compile at once wait for the system's lock on the process's
// memory, thousands of times in a start (docs/decisions/0026).
void prepare_memory_for_start(int load_workers, bool keep);

}  // namespace heddle
