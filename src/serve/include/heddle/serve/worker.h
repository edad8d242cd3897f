// A worker: a process with devices that a server's fleet uses. It announces itself, takes one server's
// session at a time, loads the partitions that it is given, runs the batches that it is sent and sends
// feature maps to the next worker. Partitions of models with files are read from this host's files, compiled
// for its core sets and really run. Other devices are timed: a run takes its planned time and computes
// nothing but payload_digest(); the bytes of feature maps really travel, and are checked.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "heddle/base/status.h"
#include "heddle/base/sync.h"
#include "heddle/base/version.h"
#include "heddle/cluster/cluster.h"
#include "heddle/serve/bus.h"

namespace heddle {

class WorkerNetwork;

// Most bytes that travel for one batch's feature map of a timed device: beyond it the link's time alone is
// emulated.
inline constexpr uint64_t kMostFeatureBytes = uint64_t{64} << 20;

struct WorkerOptions {
  std::string name;                        // unique on the bus; see check_bus_key()
  std::string host = "127.0.0.1";          // to listen on, for the server and the other workers
  int port = 0;                            // 0: any free one
  std::string advertise;                   // HOST that others reach it by; empty: `host`
  std::map<std::string, int64_t> devices;  // by class
  // Its devices' names on this host ("cpu0"), by class, as many as `devices` has; a class that is not here
  // takes the names of the fleet file.
  std::map<std::string, std::vector<std::string>> device_names;
  std::shared_ptr<const Cluster> cluster;  // whose devices these are; null: this host's, as they are found
  std::string models;  // folder with the models' files, by their names; empty: by the fleet file's paths
  double slowdown =
      1;  // factor on the times of its devices; .01 to 1000, at least 1 for devices that compute
  // Asked at the end of each run of a timed device, which has the plan's number for it: why the run fails; empty: it
  // does not. Must not block. Null: none fails.
  std::function<std::string(uint32_t device)> timed_run_error;
  // Its devices may have cores in common with those of other workers on this host that say so, too. Otherwise
  // a worker whose devices overlap with those of one that is there is refused: a plan takes them for two.
  bool share_cores = false;
  WorkerSecurity security;
  std::shared_ptr<WorkerNetwork> network;  // by which others reach it; null: gRPC
  // What it tells the server of itself: the version of its program, and the time in ns since 1970.
  std::string program = kVersion;
  int64_t (*clock)() = wall_ns;
};

struct WorkerCounters {
  uint64_t sessions = 0, runs = 0, rows = 0;
  uint64_t maps_sent = 0, maps_received = 0, map_bytes_received = 0;
  uint64_t maps_kept = 0;  // now, for devices that may ask for them
  // Of the session that has the worker, now: plans that it has parts of, steps that have begun and not ended, messages
  // that wait to be sent, and batches whose inputs have come before their run.
  uint64_t plans = 0, steps = 0, unsent = 0, open_inputs = 0;
  // Of timed devices: runs that have ended without an error, of all sessions and of the one that has the worker, and
  // runs under way for others than that one. A device that works for two sessions shows in the last.
  uint64_t timed_runs = 0, session_runs = 0, stray_runs = 0;
  bool connected = false;          // a server's session is open
  std::string announcement_error;  // of the last announcement; empty: it was taken
};

class Worker {
 public:
  // Listens and announces itself from here on. `announcer` outlives it. Errors: a malformed name, no devices,
  // an address that is taken. A server that does not accept its announcements is no error: see counters().
  static Result<std::unique_ptr<Worker>> start(const WorkerOptions& options, Announcer& announcer);
  virtual ~Worker() = default;  // withdraws, and ends the session
  // Tells the server, which gives later runs to other devices; those that come after its answer are refused. Waits
  // until what came before has run and the next workers have taken its feature maps; at most so many seconds.
  virtual void drain(double seconds) = 0;
  virtual int port() const = 0;
  virtual WorkerCounters counters() const = 0;
};

// What a worker announces, as JSON under its name.
struct WorkerEntry {
  std::string name, address, incarnation;
  int64_t pid = 0;
  std::map<std::string, int64_t> devices;
};
std::string worker_entry_text(const WorkerEntry& entry);
Result<WorkerEntry> worker_entry_from_text(const std::string& name, const std::string& text);

}  // namespace heddle
