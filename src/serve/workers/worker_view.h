// One plan's devices in a pool of workers: who has which, what each is to load, and whom to tell. The pool's
// lock guards all but the listener.
#pragma once

#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "device_places.h"
#include "heddle/serve/remote_devices.h"
#include "server_session.h"

namespace heddle {

class WorkerView {
 public:
  WorkerView(uint64_t generation, const Fleet& fleet, const Deployment& deployment);

  // Null: once this returns, nobody is told any more.
  void listen(RemoteListener* listener);
  // Without the pool's lock.
  void forward(const RemoteAnswer& answer);
  void tell_running(uint64_t attempt, TimeNs elapsed, TimeNs waited);
  void forward(const std::vector<uint32_t>& devices, bool back);

  // What a worker is sent that gets these devices.
  worker::ToWorker load_of(const std::vector<uint32_t>& devices) const;

  // Why a device is not for its worker alone: a core of it that is also in a loaded device of another worker
  // on the same host. Empty: it is. `forbidden`: only where one of the two does not say that it shares.
  std::string overlap(uint32_t device, bool forbidden) const;

  const uint64_t generation;
  const std::vector<worker::Role> roles;                 // [virtual device]
  const std::map<std::string, worker::ModelFile> files;  // of the models that are computed, by name
  // Guarded by the pool's lock.
  DevicePlaces places;
  std::vector<char> loaded;          // [virtual device] its worker is there and has loaded it
  std::vector<uint64_t> asked;       // [virtual device] the session that was sent its role; 0: none
  std::vector<worker::Place> place;  // [virtual device] of those that compute, as their worker told
  std::vector<std::string> refused;  // [virtual device] why that session does not load it; empty: it may

 private:
  std::shared_mutex listener_mutex_;
  RemoteListener* listener_ = nullptr;
};

}  // namespace heddle
