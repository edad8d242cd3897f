// Versions of the protocol in worker.proto. Each end says its own in its first message.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>

namespace heddle {

// Increase this with each change of worker.proto or of what its messages mean. An end of the new version must work
// with ends of the version before; the newer end adapts.
inline constexpr uint32_t kWorkerProtocol = 1;

// True for the same version and those beside it. Ends from before versions existed say 0: their protocols differ,
// so nobody works with them.
bool works_with(uint32_t theirs, uint32_t ours = kWorkerProtocol);
// Of an end that does not: both versions, and what to upgrade. `they`, `we`: such as "the worker".
std::string version_refusal(const std::string& they, uint32_t theirs, const std::string& we,
                            uint32_t ours = kWorkerProtocol);

// Logs each text once, and no more than a few of them: strangers may choose them. Thread-safe.
class RareErrors {
 public:
  void log(const std::string& text);

 private:
  std::mutex mutex_;
  std::set<std::string> logged_;
};

}  // namespace heddle
