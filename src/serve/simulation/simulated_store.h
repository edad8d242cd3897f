// What several simulated servers share: their lease and the leader's state, on a disk of another host.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "simulated_network.h"
#include "standby/shared_store.h"

namespace heddle {

// Its process can be cut off or stand still, as each other one can. An entry that is set stays: a disk that loses what
// it has confirmed is not simulated.
struct SimulatedDisk {
  const Simulation::Process process = Simulation::current().new_process("store");
  std::map<std::string, SharedStore::Entry> entries;
  uint64_t revisions = 0;
  bool full = false;  // nothing can be set
};

// A server's way to the disk. A call whose answer does not come in time fails, and may still be carried out, now or
// later.
std::shared_ptr<SharedStore> simulated_store(std::shared_ptr<SimulatedDisk> disk, SimulatedNetwork& network);

}  // namespace heddle
