// A few entries that several servers share: the lease of the one that leads, and what a successor needs. An entry is
// only replaced by whoever knows its present revision, so that a server which was overtaken notices.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "heddle/base/file_calls.h"
#include "heddle/base/status.h"

namespace heddle {

// Thread-safe. Errors: kIo when the store does not answer or has no room.
class SharedStore {
 public:
  struct Entry {
    std::string value;
    uint64_t revision = 0;  // grows with each change; 0: there is no entry
  };
  virtual ~SharedStore() = default;
  virtual Result<Entry> get(const std::string& key) = 0;
  // Replaces the entry if its revision still is that (0: if there is none). The new revision, or nullopt if
  // somebody else was first.
  virtual Result<std::optional<uint64_t>> set(const std::string& key, const std::string& value,
                                              uint64_t revision) = 0;
};

// A folder, made if it is missing, on this host or on a file system that they share, with hard links. What set() has
// changed is on the disk when it returns. A server that stands still in a call does not hold up others.
Result<std::shared_ptr<SharedStore>> folder_store(const std::string& path, FileCalls& files = system_files());
// A bucket of JetStream's key-value store on disk, made if it is missing. Unsupported if the program was built
// without NATS's client.
Result<std::shared_ptr<SharedStore>> nats_store(const std::string& url, const std::string& bucket);
// "nats://HOST:PORT" with its bucket, or a folder.
Result<std::shared_ptr<SharedStore>> open_shared_store(const std::string& where, const std::string& bucket);

}  // namespace heddle
