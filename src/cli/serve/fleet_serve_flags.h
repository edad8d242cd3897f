// The flags of `heddle serve FLEET`: workers, and plans that follow what is measured.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "heddle/cluster/cluster.h"
#include "heddle/command/command.h"
#include "heddle/fleet/fleet.h"
#include "heddle/serve/bus.h"
#include "heddle/serve/fleet_control.h"
#include "heddle/serve/worker_pool.h"
#include "heddle/serve/worker_processes.h"

namespace heddle::cli {

struct ServeWorkerFlags {
  std::optional<int64_t> workers, worker_port;
  std::string cluster;  // whose devices the fleet names; workers that are started here are told, too
  std::string worker_host = "127.0.0.1", bus, bucket = "heddle", ca_file, token_file;
  double lease_s = 1, wait_s = 30;

  void declare(Command& command);
  // For connections to workers, which are encrypted where the clients' are.
  Result<WorkerSecurity> security(const std::string& certificate_file, const std::string& key_file) const;
  // --cluster, opened; null without it. Invalid input: the fleet's devices are all emulated.
  Result<std::shared_ptr<const Cluster>> cluster_for(const Fleet& fleet) const;
  // Flags that would do nothing are an error.
  Status check() const;
  bool any() const { return workers || worker_port || !bus.empty(); }
};

// Destroyed behind the service that uses it: the pool, then the processes, then the registry and the bus.
struct ServedWorkers {
  std::shared_ptr<WorkerBus> bus;
  std::unique_ptr<WorkerRegistry> registry;
  WorkerProcesses processes;
  std::shared_ptr<WorkerPool> pool;
};

// Starts what the flags ask for; the opener of a plan waits for workers of other programs.
// They show the certificate of these files, where there are any. `term`: WorkerPoolOptions'.
Result<std::unique_ptr<ServedWorkers>> start_workers(const ServeWorkerFlags& flags, const Fleet& fleet,
                                                     const std::string& certificate_file,
                                                     const std::string& key_file, uint64_t term,
                                                     const CancelToken& cancel);

struct ServeDriftFlags {
  // Below 0: not given.
  double share = -1, drift_time_s = -1, trial_s = -1, margin = -1;
  std::optional<int64_t> drift_runs;
  bool try_changes = false;
  std::string device_times;  // a fleet file

  void declare(Command& command);
  bool any() const;
  // Into the options. Errors: flags that do nothing without others, the fleet file's.
  Status set(FleetControlOptions& options) const;
};

}  // namespace heddle::cli
