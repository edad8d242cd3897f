// Drives the accelerators of a plan: enqueues copies on the streams of their roles, orders streams by events
// along the program's edges, and afterwards reads when everything happened.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "accelerators.h"
#include "heddle/plan/plan.h"
#include "heddle/plan/problem.h"
#include "plan_buffers.h"
#include "program.h"
#include "task_hooks.h"

namespace heddle {

struct IssuerSetup {
  const Problem* problem = nullptr;
  const Plan* plan = nullptr;
  const Accelerators* accelerators = nullptr;
  const std::vector<Program>* programs = nullptr;  // per lane; only create() reads it
  std::vector<int> slot_lane;
  std::vector<DeviceStream*> execution;  // per segment; null: not on an accelerator
  std::vector<ParameterBlock> parameters;
  // Cold starts: an event that a segment's run awaits besides the program's; null: none. May be empty.
  std::function<const DeviceEvent*(int32_t segment)> loaded;
  // Address of a tensor in a memory.
  std::function<std::byte*(size_t slot, TensorId tensor, int32_t memory)> address;
};

class DeviceIssuer final : public TaskHooks {
 public:
  static Result<std::unique_ptr<DeviceIssuer>> create(const IssuerSetup& setup);

  Status begin_request(int slot, int64_t begin_ns) override;
  Status before_run(int slot, int32_t task) override;
  Status after_run(int slot, int32_t task) override;
  Status enqueue(int slot, int32_t task) override;
  Result<bool> reached(int slot, int32_t task) override;
  Status end_request(int slot, bool failed, std::span<int64_t> start_ns,
                     std::span<int64_t> finish_ns) override;

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
  struct Work {
    bool enqueues = false, done = false;
    bool passes = false;                  // takes no time and enqueues nothing, but follows such tasks
    bool fetches = false, sends = false;  // copies to the host; sends to another rank
    int32_t segment = -1;                 // the segment that it runs
    DeviceStream *first = nullptr, *last = nullptr;
    int32_t first_memory = 0, last_memory = 0;
    std::unique_ptr<DeviceEvent> start, end, halfway;
    std::vector<Copy> copies;
    std::vector<const Work*> waits;
    std::string what;  // for error messages
  };
  struct Slot {
    int64_t begin_ns = 0;
    std::vector<Work> works;  // per task
    // Per memory: event at the request's start, on that device's clock, and its host time.
    std::vector<std::unique_ptr<DeviceEvent>> base;
    std::vector<int64_t> base_ns;
    std::shared_ptr<std::byte[]> staging;
  };

  explicit DeviceIssuer(const IssuerSetup& setup)
      : accelerators_(*setup.accelerators), loaded_(setup.loaded) {}
  Status prepare(const IssuerSetup& setup, size_t slot);
  Status prepare_work(const IssuerSetup& setup, size_t slot, const Task& task, Work& work, int64_t& staging);
  void transfer(const IssuerSetup& setup, size_t slot, const Step& step, Work& work, int64_t& staging);
  Status start(Work& work);
  Status issue(Work& work);
  Status wait_on_host(const Work& work);
  Work& work(int slot, int32_t task) {
    return slots_[static_cast<size_t>(slot)].works[static_cast<size_t>(task)];
  }

  const Accelerators& accelerators_;
  std::function<const DeviceEvent*(int32_t segment)> loaded_;
  std::vector<Slot> slots_;
};

}  // namespace heddle
