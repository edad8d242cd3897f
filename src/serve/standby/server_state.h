// What a server that takes over needs, in the store that the servers share. Each write has the term of its server, and
// one of an older term than what is there is refused.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "heddle/base/sync.h"
#include "shared_store.h"

namespace heddle {

struct StateEntry;

// Thread-safe.
class ServerState {
 public:
  explicit ServerState(std::shared_ptr<SharedStore> store) : store_(std::move(store)) {}

  // FleetControl's state as it was saved for a fleet file with this content; "": none was saved, or the file is
  // another one by now, and has precedence. From now on servers of older terms cannot save. kCancelled: a server of a
  // newer term has done the same.
  Result<std::string> load(uint64_t fleet_file_hash, uint64_t term);
  // kCancelled: a server of a newer term leads.
  Status save(uint64_t fleet_file_hash, const std::string& state, uint64_t term);

 private:
  // Changes the entry, which is empty if there is none, and gives it this term.
  Status write(uint64_t term, const std::function<void(StateEntry&)>& change);

  const std::shared_ptr<SharedStore> store_;
  Mutex mutex_;  // held while the store is asked: writes of one server are in order
};

}  // namespace heddle
