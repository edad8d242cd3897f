// Carries tensors and signals between the processes (ranks) that run one plan together. Within a process
// tensors are passed by reference (docs/runtime.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/status.h"

namespace heddle {

// One rank's endpoint. All calls come from the thread that made it
// (docs/decisions/0012-one-thread-talks-mpi.md). Ranks are numbered from 0.
class Transport {
 public:
  static constexpr int64_t kNoToken = -1;

  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string host_name() const = 0;  // of the machine that this rank runs on
  virtual int max_tag() const = 0;            // tags are 0 .. max_tag
  // True if messages may lie in the memory of accelerators of this family (StreamRuntimeProperties::family).
  virtual bool reaches_memory_of(std::string_view) const { return false; }

  // Starts a message and returns. The memory must stay unchanged until progress() reports the token. kNoToken
  // is never reported; it is only for empty messages and for permanent memory. Messages between the same
  // ranks with the same tag arrive in the order of sending; both sides must state the same size.
  virtual Status send(int to, int tag, std::span<const std::byte> data, int64_t token) = 0;
  virtual Status receive(int from, int tag, std::span<std::byte> data, int64_t token) = 0;
  // Moves what can move without waiting, and appends the tokens of completed messages.
  virtual Status progress(std::vector<int64_t>& done) = 0;

  // Reports this rank's failure to all others, which find the reason in alarm() after progress().
  virtual void raise_alarm(const std::string& reason) = 0;
  // The first alarm of another rank. After it, the ranks can only agree on how to end.
  virtual const std::optional<std::string>& alarm() const = 0;

  // Other ranks have ended or hang: the destructor does not wait for them.
  virtual void abandon() {}

  // For comparison, the same message without Heddle's own work: the time in us of `bytes`, as the median of
  // `repeats` half round trips between ranks `a` and `b`. Both call it; other ranks return 0 at once.
  virtual Result<double> raw_message_us(int a, int b, int64_t bytes, int repeats) = 0;
};

// Number of processes started together and this one's rank, from the environment variables of mpirun and
// similar tools. {0, 1} without them; values that are not numbers are ignored.
struct RankEnvironment {
  int rank = 0, size = 1;
};
RankEnvironment rank_environment();

// The ranks that mpirun started. kUnsupported if Heddle was built without MPI. The first call initialises
// MPI, the destructor finalises it: use one at a time, once per process, on the thread that made it.
Result<std::unique_ptr<Transport>> make_mpi_transport();

// How to wait after `waited_ns` without work. It yields for the first 0.2 ms if other threads of this rank
// compute and could use the core, otherwise for 5 ms. Later it naps for a 16th of the time waited, at most
// 0.1 ms, so that a nap prolongs the wait only slightly.
int64_t nap_ns(int64_t waited_ns, bool others_compute);  // 0: yield

}  // namespace heddle
