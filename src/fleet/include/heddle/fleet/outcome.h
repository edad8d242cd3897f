// The outcome of a request: each has exactly one, in the simulator, in a server and for a client.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle {

// In the order of badness.
enum class Outcome : uint8_t {
  kOpen,       // none yet
  kInTime,     // answered by its deadline
  kLate,       // answered after it
  kDropped,    // the deadline could not be met any more
  kFailed,     // the device that served it was lost or failed
  kWithdrawn,  // the server was full, changing or stopping
  kInvalid,    // refused before it was queued
};
inline constexpr size_t kOutcomes = 7;
// "open", "in_time", "late", "dropped", "failed", "withdrawn", "invalid"
const char* outcome_name(Outcome outcome);

}  // namespace heddle
