// What the engine asks whoever drives the accelerators' streams. Without accelerators there is none.
#pragma once

#include <cstdint>
#include <span>

#include "heddle/base/status.h"

namespace heddle {

// Called from the thread that does the task; for different tasks from several threads at once.
class TaskHooks {
 public:
  virtual ~TaskHooks() = default;
  // The request's clock starts.
  virtual Status begin_request(int slot, int64_t begin_ns) = 0;
  // Around run() of a segment.
  virtual Status before_run(int slot, int32_t task) = 0;
  virtual Status after_run(int slot, int32_t task) = 0;
  // Does a task that enqueues without a segment.
  virtual Status enqueue(int slot, int32_t task) = 0;
  // Several ranks: has all been done that the task enqueued or, where it enqueues nothing, that it follows?
  // Never waits. Also true of what was passed over after a failure.
  virtual Result<bool> reached(int slot, int32_t task) = 0;
  // The request's tasks are done or, where it `failed`, passed over: afterwards nothing of it is under way.
  // Puts the times at which what was enqueued began and ended (CLOCK_MONOTONIC, ns) in the place of the
  // host's.
  virtual Status end_request(int slot, bool failed, std::span<int64_t> start_ns,
                             std::span<int64_t> finish_ns) = 0;
};

}  // namespace heddle
