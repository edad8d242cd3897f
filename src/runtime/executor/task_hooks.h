// The engine's interface to the driver of accelerator streams. Plans without accelerators have none.
#pragma once

#include <cstdint>
#include <span>

#include "heddle/base/status.h"

namespace heddle {

// Called from the thread that runs the task, concurrently for different tasks.
class TaskHooks {
 public:
  virtual ~TaskHooks() = default;
  // The request's clock starts.
  virtual Status begin_request(int slot, int64_t begin_ns) = 0;
  // Around run() of a segment.
  virtual Status before_run(int slot, int32_t task) = 0;
  virtual Status after_run(int slot, int32_t task) = 0;
  // Runs a task that enqueues work other than a segment.
  virtual Status enqueue(int slot, int32_t task) = 0;
  // Several ranks: true if the task's enqueued work is done or, if it enqueues nothing, the work that it
  // follows. Never waits. Also true for work skipped after a failure.
  virtual Result<bool> reached(int slot, int32_t task) = 0;
  // The request's tasks are done or, if `failed`, skipped. After the call none of its work is in flight.
  // Replaces the host's times of enqueued work by the times at which it began and ended on the device
  // (CLOCK_MONOTONIC, ns).
  virtual Status end_request(int slot, bool failed, std::span<int64_t> start_ns,
                             std::span<int64_t> finish_ns) = 0;
};

}  // namespace heddle
