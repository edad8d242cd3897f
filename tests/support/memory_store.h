// A store of servers' lease and state in memory, which can fail.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "standby/shared_store.h"

namespace heddle {

// It can also fail after it has done what was asked. Thread-safe, in a simulation, too.
class MemoryStore final : public SharedStore {
 public:
  Result<Entry> get(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    if (away) return Error(Code::kIo, "away");
    return entries_[key];
  }
  Result<std::optional<uint64_t>> set(const std::string& key, const std::string& value,
                                      uint64_t revision) override {
    const std::lock_guard lock(mutex_);
    if (away) return Error(Code::kIo, "away");
    auto& entry = entries_[key];
    if (entry.revision != revision) return std::optional<uint64_t>();
    entry = {value, revision + 1};
    if (loses_answer.exchange(false)) return Error(Code::kIo, "the answer was lost");
    return std::optional(entry.revision);
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    entries_.clear();
  }
  std::atomic<bool> away = false, loses_answer = false;

 private:
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

}  // namespace heddle
