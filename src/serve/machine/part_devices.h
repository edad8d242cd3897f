// The devices of a worker that really compute: parts of models that are loaded from this host's files, and
// run on its core sets.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "machine_devices.h"
#include "model_parts.h"
#include "part_rows.h"
#include "plane/device_thread.h"
#include "watched_runner.h"
#include "worker.pb.h"

namespace heddle {

// A compiled part and the thread that runs it, for as long as the worker keeps it.
class PartDevice {
 public:
  using Ended = std::function<void(std::vector<PartRow>& rows, const Status& status, TimeNs measured)>;

  // Throws std::system_error when no thread can be started.
  explicit PartDevice(std::shared_ptr<PlanRunner> runner);
  const PlanRunner& runner() const { return *runner_; }
  // In order, one after the other; `ended` on the device's thread.
  void run(uint64_t attempt, std::vector<PartRow> rows, Ended ended);
  // What is under way, if anything is.
  struct Progress {
    uint64_t attempt = 0;
    TimeNs elapsed = 0, waited = 0;
  };
  std::optional<Progress> running() const;
  const WatchedRunner& watched() const { return *watched_; }

 private:
  struct Job {
    uint64_t attempt = 0;
    std::vector<PartRow> rows;
    Ended ended;
    TimeNs given = 0;
  };
  void ended(const Status& status);

  const std::shared_ptr<PlanRunner> runner_;
  const std::shared_ptr<WatchedRunner> watched_;
  mutable std::mutex mutex_;  // guards what follows
  std::deque<Job> jobs_;
  TimeNs idle_since_ = 0;
  DeviceThread thread_;
};

// A part as rows are unpacked and packed for it.
struct PartContent {
  std::shared_ptr<const LocalModel> model;
  FleetModelFile file;
  int block_to = 0;
  PartCargo cargo;
};
// What a device of a plan needs to run its part. A run's end may keep the content and not the device, which
// must not end on its own thread.
struct PartRole {
  std::shared_ptr<const PartContent> content;
  std::shared_ptr<PartDevice> device;
};

// Whether the server that sent `load` has the plan no more. Loads may come in another order than they were made, so a
// plan that is newer than all that it names is not closed.
bool is_closed(uint64_t generation, const worker::Load& load);

// A role that was loaded, or why not.
struct LoadedRole {
  uint32_t device = 0;
  PartRole part;
  std::string refusal;  // empty: it was loaded
};

struct PartDevicesOptions {
  std::map<std::string, std::vector<std::string>> names;  // of this worker's own devices, by class
  std::string models;   // folder in which files are looked for by their names; empty: by their paths
  double slowdown = 1;  // on top of what roles say
  std::shared_ptr<const Cluster> cluster;  // whose devices are named; null: this machine's, as it is found
};

// Loads on a thread of its own, in order: reading and compiling take seconds, and the session must go on.
class PartDevices {
 public:
  using OnLoaded = std::function<void(std::vector<LoadedRole>)>;  // on that thread

  explicit PartDevices(PartDevicesOptions options);
  // Waits for the part that is being compiled, and for what runs. Nobody has a role any more.
  ~PartDevices();
  PartDevices(const PartDevices&) = delete;
  PartDevices& operator=(const PartDevices&) = delete;

  // The load's roles that compute. `session` names who asks: what a plan's devices are called holds within
  // it. Parts stay until the next load after their roles are gone.
  void load(uint64_t session, const worker::Load& load, OnLoaded loaded);

 private:
  struct Job {
    uint64_t session = 0;
    worker::Load load;
    OnLoaded loaded;
  };
  // One plan's whole devices and what they are here.
  struct Plan {
    std::unique_ptr<MachineDevices> devices;
    std::map<std::string, std::vector<uint32_t>> whole;  // by class, in the order of the names
  };
  void work();
  void forget_closed(uint64_t session, const worker::Load& load);
  Result<PartRole> load_role(Plan& plan, const worker::Role& role, const worker::Load& load);
  Result<std::string> name_of(Plan& plan, const worker::Role& role) const;

  const PartDevicesOptions options_;
  // Of the loading thread.
  std::shared_ptr<const Cluster> cluster_;
  ModelParts parts_;
  std::map<std::pair<uint64_t, uint64_t>, Plan> plans_;  // by session and generation
  std::map<const PlanRunner*, std::shared_ptr<PartDevice>> devices_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool quit_ = false;
  std::thread thread_;
};

}  // namespace heddle
