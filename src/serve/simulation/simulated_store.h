// What several simulated servers share: their lease and the leader's state, on a disk of another host.
#pragma once

#include <map>
#include <memory>
#include <set>
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

// What the servers were told of their entries.
struct StoreLedger {
  struct Confirmed {
    uint64_t revision = 0;
    std::string value;
    std::set<std::string> tried;  // all values that were to be set
    std::set<uint64_t> set;       // all revisions that a server was told to have set
    uint64_t term = 0;            // the newest of the leaders that have saved a state
  };
  std::map<std::string, Confirmed> entries;
};

// Fails the run when an entry is older than what was confirmed before it was asked for, or was never to be set so, or
// cannot be read, when two have set the same revision, or when a leader that was replaced still saves its state.
std::shared_ptr<SharedStore> checked_store(std::shared_ptr<SharedStore> store,
                                           std::shared_ptr<StoreLedger> ledger);

// A server's way to the disk. A call whose answer does not come in time fails, and may still be carried out, now or
// later.
std::shared_ptr<SharedStore> simulated_store(std::shared_ptr<SimulatedDisk> disk, SimulatedNetwork& network);

}  // namespace heddle
