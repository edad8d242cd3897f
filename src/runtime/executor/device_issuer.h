// Drives the accelerators of a plan: enqueues copies on the streams of their roles, orders streams by events
// along the program's edges, and afterwards reads when everything happened.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "accelerators.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "plan_buffers.h"
#include "program.h"

namespace heddle {

struct IssuerSetup {
  const Problem* problem = nullptr;
  const Plan* plan = nullptr;
  const Accelerators* accelerators = nullptr;
  const std::vector<Program>* programs = nullptr;        // per lane; only create() reads it
  std::span<const std::shared_ptr<const Graph>> graphs;  // per lane, as lane_graphs() made them
  std::vector<int> slot_lane;
  std::vector<DeviceStream*> execution;  // per segment; null: not on an accelerator
  std::vector<ParameterBlock> parameters;
  // Cold starts: an event that a segment's run awaits besides the program's; null: none. May be empty.
  std::function<const DeviceEvent*(int32_t segment)> loaded;
  // Address of a tensor in a memory.
  std::function<std::byte*(size_t slot, TensorId tensor, int32_t memory)> address;
};

// The engine calls it from the thread that runs the task, concurrently for different tasks.
class DeviceIssuer {
 public:
  static Result<std::unique_ptr<DeviceIssuer>> create(const IssuerSetup& setup);

  // The request's clock starts.
  Status begin_request(int slot, int64_t begin_ns);
  // Around run() of a segment.
  Status before_run(int slot, int32_t task);
  Status after_run(int slot, int32_t task);
  // Runs a task that enqueues work other than a segment.
  Status enqueue(int slot, int32_t task);
  // Several ranks: true if the task's enqueued work is done or, if it enqueues nothing, the work that it
  // follows. Never waits. Also true for work skipped after a failure.
  Result<bool> reached(int slot, int32_t task);
  // The request's tasks are done or, if `failed`, skipped. After the call none of its work is in flight.
  // Replaces the host's times of enqueued work by the times at which it began and ended on the device
  // (CLOCK_MONOTONIC, ns).
  Status end_request(int slot, bool failed, std::span<int64_t> start_ns, std::span<int64_t> finish_ns);

 private:
  struct Copy {
    DeviceStream* stream = nullptr;
    CopyKind kind = CopyKind::kHostToDevice;
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    int64_t bytes = 0;
    const StreamRuntime* peer = nullptr;  // the source's device, for a copy from another device's memory
  };
  // A task of one slot. A tensor that goes through the host is enqueued on two streams: `first` and `last`.
  struct TaskWork {
    bool enqueues = false, done = false;
    bool passes = false;                  // takes no time and enqueues nothing, but follows such tasks
    bool fetches = false, sends = false;  // copies to the host; sends to another rank
    int32_t segment = -1;                 // the segment that it runs
    DeviceStream *first = nullptr, *last = nullptr;
    int32_t first_memory = 0, last_memory = 0;
    std::unique_ptr<DeviceEvent> start, end, halfway;
    std::vector<Copy> copies;
    std::vector<const TaskWork*> waits;
    std::string what;  // for error messages
  };
  struct SlotWork {
    int64_t begin_ns = 0;
    uint64_t faults = 0;          // of all accelerators, when the request began
    std::vector<TaskWork> works;  // per task
    // Per memory: event at the request's start, on that device's clock, and its host time.
    std::vector<std::unique_ptr<DeviceEvent>> base;
    std::vector<int64_t> base_ns;
    std::shared_ptr<std::byte[]> staging;
  };

  explicit DeviceIssuer(const IssuerSetup& setup)
      : accelerators_(*setup.accelerators), loaded_(setup.loaded) {}
  uint64_t faults() const;
  // Waits for all work on the accelerators; the first error since the last time.
  Status drain();
  Status prepare(const IssuerSetup& setup, size_t slot);
  Status prepare_work(const IssuerSetup& setup, size_t slot, const Task& task, TaskWork& work,
                      int64_t& staging);
  void transfer(const IssuerSetup& setup, size_t slot, const Step& step, TaskWork& work, int64_t& staging);
  Status start(TaskWork& work);
  Status issue(TaskWork& work);
  Status wait_on_host(const TaskWork& work);
  TaskWork& work(int slot, int32_t task) {
    return slots_[static_cast<size_t>(slot)].works[static_cast<size_t>(task)];
  }

  const Accelerators& accelerators_;
  std::function<const DeviceEvent*(int32_t segment)> loaded_;
  std::vector<SlotWork> slots_;
};

}  // namespace heddle
