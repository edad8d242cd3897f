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

// A device that computes, as its worker has reported it.
struct DeviceCores {
  uint32_t device = 0;  // of the plan, virtual
  std::string model, device_class;
  std::string host;        // the same for all processes of one running kernel
  std::vector<int> cores;  // its own
  std::vector<int> bound;  // that its thread may use, if these are others; else empty
  bool shared = false;     // it may share them with other workers' devices
  bool loaded = false;
  std::string refused;  // why it has not loaded its part; empty: it has, or is about to
};

// What one worker has sent to another since its session began.
struct WorkerLink {
  std::string to;  // the other's name; its address if nobody has it any more
  uint64_t maps = 0, bytes = 0, failed = 0;
  double seconds = 0;  // of all maps, from the first byte until the receiver had it all
};

struct WorkerState {
  std::string name, address, state;  // "connecting", "connected", "lost"
  std::string reason;                // why it was lost, what it refuses to load, or whose cores it shares
  std::map<std::string, int64_t> devices;  // by class, as it announced them
  int64_t pid = 0;
  uint32_t virtual_devices = 0;  // of the plan, that it has
  uint64_t sessions = 0, losses = 0, runs = 0;
  double heard_s = 0;     // since its last message, connected or not
  double busy_s = 0;      // measured by the worker
  std::string program;    // the version of its program; empty: it does not say
  uint32_t protocol = 0;  // kWorkerProtocol of it; 0: it has not answered yet
  // By the last pings of its session, of which there were `pings`.
  size_t pings = 0;
  double round_trip_s = 0, median_trip_s = 0;   // the least, and the median
  bool has_clock = false;                       // it says what time it has
  double clock_ahead_s = 0, clock_error_s = 0;  // of the server's: by so much, give or take
  double compute_s = 0, waited_s = 0;  // of devices that compute: all runs; of these the time without a core
  std::vector<WorkerLink> links;
  std::vector<DeviceCores> cores;  // of the newest plan
};

// Which devices of a plan have to be loaded before it serves.
enum class WaitFor {
  kAll,    // every one
  kThere,  // those that have a worker; others are absent until one comes
  // For a successor of another server: all, but after half a lease those that have a worker, once every model
  // can run. There is no limit of time, for nobody else serves.
  kEnough,
};

class WorkerPool {
 public:
  // Looks for workers on the bus from here on. Errors: options out of range.
  static Result<std::shared_ptr<WorkerPool>> create(std::shared_ptr<WorkerBus> bus,
                                                    const WorkerPoolOptions& options);
  virtual ~WorkerPool() = default;

  // Gives the deployment's whole devices to workers, each to the one with the most devices of its class free,
  // and has them load their partitions; what a worker that joins later can take over is given to it then.
  // Waits at most `seconds` for the devices of `what`. A part that a worker refuses is not waited for
  // (RemoteDevices::refusal()). The feature maps' sizes and the models' files are those of `fleet`. The pool
  // outlives what this returns.
  virtual std::shared_ptr<RemoteDevices> open(const Fleet& fleet, const Deployment& deployment,
                                              double seconds, WaitFor what, const CancelToken& cancel) = 0;
  // Of a plan's whole devices, those without a worker at present, by class.
  virtual std::map<std::string, int64_t> missing(const Deployment& deployment) const = 0;
  virtual std::vector<WorkerState> workers() const = 0;  // by name
};

}  // namespace heddle
