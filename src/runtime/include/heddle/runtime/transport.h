// How tensors and signals go between the processes (ranks) that run one plan together. Within a process they
// go by reference (docs/runtime.md); a transport is what lies between.
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

// One rank's end. All calls come from one thread, the one that made it
// (docs/decisions/0012-one-thread-talks-mpi.md). Ranks are numbered from 0.
class Transport {
 public:
  static constexpr int64_t kNoToken = -1;

  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string host_name() const = 0;  // of the machine that this rank runs on
  virtual int max_tag() const = 0;            // tags are 0 .. max_tag
  // May messages lie in the memory of accelerators of this family (StreamRuntimeProperties::family)?
  virtual bool reaches_memory_of(std::string_view) const { return false; }

  // Starts a message and returns. The memory stays as it is until progress() reports the token (kNoToken:
  // never reported; only for empty messages and for memory that stays for good). Two messages between the
  // same ranks with one tag arrive in the order in which they were sent; both sides state the same size.
  virtual Status send(int to, int tag, std::span<const std::byte> data, int64_t token) = 0;
  virtual Status receive(int from, int tag, std::span<std::byte> data, int64_t token) = 0;
  // Moves what can be moved without waiting and appends the tokens of what has completed.
  virtual Status progress(std::vector<int64_t>& done) = 0;

  // Tells every other rank that this one failed; they find the reason in alarm() after a progress().
  virtual void raise_alarm(const std::string& reason) = 0;
  // The first alarm of another rank. After one the ranks can only agree on how to end.
  virtual const std::optional<std::string>& alarm() const = 0;

  // The same round trips without any of Heddle's own work, for comparison: us of one message of `bytes`, the
  // median of `repeats` halved round trips between ranks `a` and `b`. Called by both; others return 0 at
  // once.
  virtual Result<double> raw_message_us(int a, int b, int64_t bytes, int repeats) = 0;
};

// `ranks` ends in one process: a message is copied once. Each end belongs to one thread, as above. With
// `device_memory` messages may lie in that of the host's stream runtimes.
std::vector<std::unique_ptr<Transport>> make_local_transports(int ranks, bool device_memory = false);

// How many processes were started together and which one this is, as mpirun and its like say it in the
// environment. {0, 1} without them; values that are no numbers count as absent.
struct RankEnvironment {
  int rank = 0, size = 1;
};
RankEnvironment rank_environment();

// The ranks that mpirun started. kUnsupported when Heddle was built without MPI. The first call initialises
// MPI, the destructor ends it: one at a time, once in a process, and on the thread that goes on to use it.
Result<std::unique_ptr<Transport>> make_mpi_transport();

// What a thread does that has found nothing to do for `waited_ns`: yields at first, for 0.2 ms where other
// threads of this rank compute and could use the core, else for 5 ms; later naps for a 16th of what it has
// waited, at most 0.1 ms, so that a wait is never much longer than what it waits for.
int64_t nap_ns(int64_t waited_ns, bool others_compute);  // 0: yield

}  // namespace heddle
