// What a server that takes over needs, in the store that the servers share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "heddle/base/sync.h"
#include "shared_store.h"

namespace heddle {

// Thread-safe.
class ServerState {
 public:
  explicit ServerState(std::shared_ptr<SharedStore> store) : store_(std::move(store)) {}

  // FleetControl's state as it was saved for a fleet file with this content; "": none was saved, or the file is
  // another one by now, and has precedence.
  Result<std::string> load(uint64_t fleet_file_hash);
  // Replaces what was loaded or saved here before. kCancelled: another server has saved since, so it leads.
  Status save(uint64_t fleet_file_hash, const std::string& state);

 private:
  const std::shared_ptr<SharedStore> store_;
  Mutex mutex_;  // guards what follows
  uint64_t revision_ = 0;
};

}  // namespace heddle
