// The workers that a server knows: found on the bus, connected, given devices of the plans that are served,
// watched and, when they go, replaced.
//
// How a worker is lost: its connection ends (a process that died: at once), or no message comes from it for a
// lease (hung, stopped, cut off: at most 1.25 leases). It is connected again when it is next announced.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "heddle/base/cancel.h"
#include "heddle/base/status.h"
#include "heddle/fleet/deployment.h"
#include "heddle/serve/bus.h"
#include "heddle/serve/remote_devices.h"
#include "heddle/serve/worker_security.h"

namespace heddle {

class WorkerNetwork;

struct WorkerPoolOptions {
  double lease_s = 1;                           // silence that ends a session; 0.1 to 3600
  size_t max_outbox_bytes = size_t{256} << 20;  // waiting for one worker: more, and its session ends
  WorkerSecurity security;
  uint64_t term =
      0;  // in which this server leads (Leadership); workers refuse older terms. 0: no other can lead
  std::shared_ptr<WorkerNetwork> network;  // to the workers; null: gRPC
};

struct WorkerState {
  std::string name, address, state;  // "connecting", "connected", "lost"
  std::string reason;                // why it was lost, what it refuses to load, or whose cores it shares
  std::map<std::string, int64_t> devices;  // by class, as it announced them
  int64_t pid = 0;
  uint32_t virtual_devices = 0;  // of the plan, that it has
  uint64_t sessions = 0, losses = 0, runs = 0;
  double heard_s = 0;  // since its last message, connected or not
  double busy_s = 0;   // measured by the worker
};

class WorkerPool {
 public:
  // Looks for workers on the bus from here on. Errors: options out of range.
  static Result<std::shared_ptr<WorkerPool>> create(std::shared_ptr<WorkerBus> bus,
                                                    const WorkerPoolOptions& options);
  virtual ~WorkerPool() = default;

  // Gives the deployment's whole devices to workers, each to the one with the most devices of its class free,
  // and has them load their partitions; what a worker that joins later can take over is given to it then.
  // Waits at most `seconds` until every device has loaded, or with `all` false every device that has a
  // worker; a device that has none then is absent until one comes. A part that a worker refuses is not
  // waited for (RemoteDevices::refusal()). The feature maps' sizes and the models' files are those of
  // `fleet`. The pool outlives what this returns.
  virtual std::shared_ptr<RemoteDevices> open(const Fleet& fleet, const Deployment& deployment,
                                              double seconds, bool all, const CancelToken& cancel) = 0;
  // Of a plan's whole devices, those without a worker at present, by class.
  virtual std::map<std::string, int64_t> missing(const Deployment& deployment) const = 0;
  virtual std::vector<WorkerState> workers() const = 0;  // by name
};

}  // namespace heddle
