// Cold starts: load workers compile a plan's segments in its order while earlier ones already run
// (docs/cold-start.md).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "heddle/runtime/executor.h"
#include "heddle/runtime/stream_runtime.h"

namespace heddle {

class TaskRunner;
struct Accelerator;

// What a load worker needs to know about one segment.
struct LoadItem {
  std::string place;  // segment and device, for error messages
  RuntimeDevice* device = nullptr;
  SegmentSpec spec;
  int64_t bytes = 0;                         // size of its parameters
  const Accelerator* accelerator = nullptr;  // where it runs; null: on the host
  // Items whose copies share a link or bus with this one's and come before it: the last one per accelerator.
  std::vector<int32_t> copied_before;
};

// Represents segments before and after they are compiled. Items and order are fixed; items without a device
// are not loaded here.
class SegmentLoader {
 public:
  // `order`: every item with a device, once, in the order of runs. kInfeasible if one of them alone exceeds
  // the budget.
  static Result<std::unique_ptr<SegmentLoader>> create(std::vector<LoadItem> items,
                                                       std::vector<int32_t> order,
                                                       const ColdOptions& options);
  ~SegmentLoader();
  SegmentLoader(const SegmentLoader&) = delete;
  SegmentLoader& operator=(const SegmentLoader&) = delete;

  // The task runner runs this in the segment's place. The caller owns it; it must not outlive the loader.
  std::unique_ptr<CompiledSegment> stand_in(int32_t item);

  // Starts the workers. The task runner must outlive every request.
  void start(TaskRunner& tasks);
  // Marks the segments that the coming request must wait for.
  void close_gates(std::vector<bool>& closed) const;
  // The request has begun: loads missing segments and opens every closed gate.
  void begin(int64_t begin_ns);
  // Drops all compiled segments and returns when they are destroyed; only between requests.
  void release_all();
  // Stores the resident segments; only between requests.
  Status store();

  std::vector<SegmentLoading> loadings() const;
  int64_t peak_bytes() const;
  // The event that an accelerator awaits before it runs the item; null: none. Valid once its gate is open.
  const DeviceEvent* loaded(int32_t item) const {
    const LoadedSegment& segment = loaded_[static_cast<size_t>(item)];
    return segment.parameters ? segment.loaded.get() : nullptr;
  }

 private:
  class StandIn;
  struct LoadedSegment {
    std::vector<TensorView> inputs, outputs;
    // Accelerators: device memory for the parameters, event of their copy, event of the last run's end.
    std::shared_ptr<std::byte[]> parameters;
    std::unique_ptr<DeviceEvent> loaded;
    std::shared_ptr<DeviceEvent> ran;
    std::unique_ptr<CompiledSegment> compiled;
    bool finished = false;  // made or failed; guarded by the mutex
  };
  struct Retired {
    std::shared_ptr<std::byte[]> parameters;
    std::shared_ptr<DeviceEvent> ran;
    std::unique_ptr<CompiledSegment> compiled;
    int64_t bytes;

    bool over() const;  // no accelerator is using it
  };

  SegmentLoader(std::vector<LoadItem> items, std::vector<int32_t> order, const ColdOptions& options);
  Status choose_residents();
  void work();
  // Waits for `before` first; it may be null.
  void load(int32_t item, const DeviceEvent* before);
  Status make(int32_t item, SegmentLoading& loading);
  // Accelerators: allocates device memory (null: nothing to copy); copies follow in the plan's order.
  Result<std::shared_ptr<std::byte[]>> make_room(int32_t item, CompiledSegment& compiled);
  Status copy_parameters(int32_t item);
  void copy_in_order(int32_t item);
  Status run(int32_t item, int slot);
  Retired retire(int32_t item);
  void ran(int32_t item);
  bool may_load(int32_t item) const;
  void destroy(size_t retired, std::unique_lock<std::mutex>& lock);

  std::vector<LoadItem> items_;
  std::vector<int32_t> order_;
  int load_workers_;
  int64_t budget_;
  bool overlap_;
  std::vector<bool> stay_resident_;  // between requests
  std::vector<LoadedSegment> loaded_;
  TaskRunner* tasks_ = nullptr;
  int64_t begin_ns_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int32_t> queue_;
  size_t next_ = 0, ran_ = 0;  // items of the queue that were taken, and that have run
  // The queue's items on accelerators, in its order, and the number of copied ones. One worker at a time
  // continues with the copies.
  std::vector<int32_t> copies_;
  size_t next_copy_ = 0;
  bool copying_ = false;
  std::vector<Retired> retired_;
  int64_t used_ = 0, peak_ = 0;  // parameter bytes from the start of compiling to the end of destruction
  int destroying_ = 0;
  bool quit_ = false;
  std::vector<SegmentLoading> loadings_;
  std::vector<std::thread> threads_;
};

}  // namespace heddle
