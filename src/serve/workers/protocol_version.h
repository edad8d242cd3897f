// Versions of the protocol in worker.proto. Each end says its own in its first message.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <string>

namespace heddle {

// Increase this with each change of worker.proto or of what its messages mean. An end of the new version must work
// with ends of the version before; the newer end adapts.
inline constexpr uint32_t kWorkerProtocol = 4;

// True for the same version and those beside it. Ends from before versions existed say 0: their protocols differ,
// so nobody works with them.
bool works_with(uint32_t theirs, uint32_t ours = kWorkerProtocol);
// Of an end that does not: both versions, and what to upgrade. `they`, `we`: such as "the worker".
std::string version_refusal(const std::string& they, uint32_t theirs, const std::string& we,
                            uint32_t ours = kWorkerProtocol);

// Epochs of sessions. A server that may be replaced by another has terms, which grow from leader to leader: its epochs
// are above those by the clock, and those of a later term above all of an earlier one.
inline constexpr uint64_t kMostTerm = 0x7fffffff;  // that an epoch has room for
constexpr uint64_t epoch_of(uint64_t term, uint64_t session) {
  return (uint64_t{1} << 63) | (term << 32) | (session & 0xffffffff);
}
// 0 of an epoch by the clock.
constexpr uint64_t term_of(uint64_t epoch) { return epoch >> 63 == 0 ? 0 : (epoch << 1) >> 33; }

// Logs each text once, and no more than a few of them: strangers may choose them. Thread-safe.
class RareErrors {
 public:
  void log(const std::string& text);

 private:
  std::mutex mutex_;
  std::set<std::string> logged_;
};

}  // namespace heddle
