// One plan's devices in a pool of workers: which worker has which, what each loads, and who is notified. The pool's
// lock guards all but the listener.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "heddle/base/sync.h"
#include "heddle/fleet/deployment.h"
#include "heddle/serve/remote_devices.h"
#include "server_session.h"

namespace heddle {

// Which worker has which whole devices of a plan.
class DevicePlaces {
 public:
  explicit DevicePlaces(const Deployment& deployment);

  // Gives devices without a worker, and those of workers that are not there, to workers that are there and
  // have devices of the class free: each to the one with the most, the first by name on ties. What a worker
  // has stays with it, as far as it has so many. `there`: by worker's name its devices by class. O(devices * workers).
  using Capacities = std::map<std::string, std::map<std::string, int64_t>>;
  void assign(const Capacities& there);
  // The worker of a virtual device, there or not; empty: none.
  const std::string& worker_of(uint32_t virtual_device) const { return owner_[device_of_[virtual_device]]; }
  // Whole devices by class whose worker is none of `there`.
  std::map<std::string, int64_t> missing(const Capacities& there) const;

 private:
  std::vector<std::string> class_of_;  // [whole device]
  std::vector<std::string> owner_;     // [whole device]
  std::vector<uint32_t> device_of_;    // [virtual device]
};

class WorkerView {
 public:
  WorkerView(uint64_t generation, const Fleet& fleet, const Deployment& deployment);

  // Null: after this returns, no listener is called.
  void listen(RemoteListener* listener);
  // Without the pool's lock.
  void forward(const RemoteAnswer& answer);
  void report_running(uint64_t attempt, TimeNs elapsed, TimeNs waited);
  void forward(const std::vector<uint32_t>& devices, bool back);

  // What a worker is sent that gets these devices, but for `open`.
  worker::ToWorker load_of(const std::vector<uint32_t>& devices) const;

  // Why a device is not for its worker alone: a core of it that is also in a loaded device of another worker
  // on the same host. Empty: it is. `forbidden`: only where one of the two does not say that it shares.
  std::string overlap(uint32_t device, bool forbidden) const;

  const uint64_t generation;
  const std::vector<worker::Role> roles;                 // [virtual device]
  const std::map<std::string, worker::ModelFile> files;  // of the models that are computed, by name
  // Guarded by the pool's lock.
  DevicePlaces places;
  std::vector<char> loaded;     // [virtual device] its worker is there and has loaded it
  std::vector<uint64_t> asked;  // [virtual device] the session that was sent its role; 0: none
  std::vector<uint64_t>
      before;  // [virtual device] the last attempt before it was loaded: of an earlier session
  std::vector<worker::Place> place;  // [virtual device] of those that compute, as their worker reported
  std::vector<std::string> refused;  // [virtual device] why that session does not load it; empty: it may

 private:
  SharedMutex listener_mutex_;
  RemoteListener* listener_ = nullptr;
};

}  // namespace heddle
