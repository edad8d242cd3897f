// Cold starts: load workers that compile a plan's segments in its order while earlier ones already run
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

class Engine;
struct Accelerator;

// What a load worker has to know about one segment.
struct LoadItem {
  std::string place;  // for messages: segment and device
  RuntimeDevice* device = nullptr;
  SegmentSpec spec;
  int64_t bytes = 0;                         // of its parameters
  const Accelerator* accelerator = nullptr;  // where it runs; null: on the host
  // Whose copies come before its own on a link or bus of its way: of each accelerator, the last in the order.
  std::vector<int32_t> copied_before;
};

// Stands for a segment until, and after, it is compiled. Items and order are fixed; items without a device
// are somebody else's.
class SegmentLoader {
 public:
  // `order`: the items with a device, each once, as the plan runs them. kInfeasible when one of them exceeds
  // the budget alone.
  static Result<std::unique_ptr<SegmentLoader>> create(std::vector<LoadItem> items,
                                                       std::vector<int32_t> order,
                                                       const ColdOptions& options);
  ~SegmentLoader();
  SegmentLoader(const SegmentLoader&) = delete;
  SegmentLoader& operator=(const SegmentLoader&) = delete;

  // To be run by the engine in the segment's place. It belongs to the caller and must not outlive this.
  std::unique_ptr<CompiledSegment> stand_in(int32_t item);

  // Starts the workers. The engine outlives every request.
  void start(Engine& engine);
  // Which segments the coming request has to wait for.
  void close_gates(std::vector<bool>& closed) const;
  // The request has begun: load what is missing, open every gate that was closed.
  void begin(int64_t begin_ns);
  // Gives up every compiled segment; between requests only. Returns when all are destroyed.
  void release_all();
  // Stores what is resident; between requests only.
  Status store();

  std::vector<SegmentLoading> loadings() const;
  int64_t peak_bytes() const;
  // What an accelerator has to wait for before it runs the item; null: nothing. From when its gate is open.
  const DeviceEvent* loaded(int32_t item) const {
    const Slot& slot = slots_[static_cast<size_t>(item)];
    return slot.parameters ? slot.loaded.get() : nullptr;
  }
  bool stays(int32_t item) const { return stays_[static_cast<size_t>(item)]; }

 private:
  class StandIn;
  struct Slot {
    std::vector<TensorView> inputs, outputs;
    // Accelerators: the device's memory for its parameters, when they are there, and when the last run is
    // over.
    std::shared_ptr<std::byte[]> parameters;
    std::unique_ptr<DeviceEvent> loaded;
    std::shared_ptr<DeviceEvent> ran;
    std::unique_ptr<CompiledSegment> compiled;
    bool finished = false;  // made, or failed; under the mutex
  };
  struct Retired {
    std::shared_ptr<std::byte[]> parameters;
    std::shared_ptr<DeviceEvent> ran;
    std::unique_ptr<CompiledSegment> compiled;
    int64_t bytes;

    bool over() const;  // no accelerator works on it
  };

  SegmentLoader(std::vector<LoadItem> items, std::vector<int32_t> order, const ColdOptions& options);
  Status choose_residents();
  void work();
  // `before`: to be waited for first; may be null.
  void load(int32_t item, const DeviceEvent* before);
  Status make(int32_t item, SegmentLoading& loading);
  // Accelerators: memory of the device, null where nothing is copied; then, in the plan's order, the copy.
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
  std::vector<bool> stays_;  // between requests
  std::vector<Slot> slots_;
  Engine* engine_ = nullptr;
  int64_t begin_ns_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int32_t> queue_;
  size_t next_ = 0, ran_ = 0;  // of the queue: taken, and executed
  // Accelerators' items of the queue, in its order, and how many have been copied. One worker at a time goes
  // on with them.
  std::vector<int32_t> copies_;
  size_t next_copy_ = 0;
  bool copying_ = false;
  std::vector<Retired> retired_;
  int64_t used_ = 0, peak_ = 0;  // parameter bytes of what is compiled, being compiled or being destroyed
  int destroying_ = 0;
  bool quit_ = false;
  std::vector<SegmentLoading> loadings_;
  std::vector<std::thread> threads_;
};

}  // namespace heddle
