// Backends: what really executes a segment. One folder under backends/ each, one generated list
// (CMakeLists.txt).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/base/ids.h"
#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/cluster/gpu_topology.h"
#include "heddle/runtime/tensor.h"

namespace heddle {

class DeviceStream;
class Model;
class SegmentCache;
class StreamRuntime;

// One tensor that enters or leaves a segment.
struct SegmentTensor {
  std::string name;  // unique in the graph; the same in the plan's graph and the model's
  DType dtype = DType::kUndefined;
  Shape shape;
  int64_t bytes = 0;
};

// What is to be compiled.
struct SegmentSpec {
  std::string name;                    // for messages
  std::shared_ptr<const Model> model;  // null when there is none (generated graphs)
  // Cold starts: reads the model when it is first needed, once for all segments; empty otherwise. A segment
  // that comes out of the cache needs no model.
  std::function<Result<std::shared_ptr<const Model>>()> read_model;
  SegmentCache* cache = nullptr;               // where compiled segments are kept; null: nowhere
  uint64_t model_key = 0;                      // names the model's content and shapes in the cache
  std::vector<OpId> finest_ops;                // of the model's graph, ascending
  std::vector<SegmentTensor> inputs, outputs;  // the order in which bind() gets them
  double cost_us = 0;                          // the plan's time for it
  bool host_access = false;                    // it reads its parameters in place, from mapped host memory
};

// The time that compile() spent before compiling (reading the model or mapping the cached file, cutting), and
// whether a cached file took the place of most of the compiling.
struct SegmentOrigin {
  double load_us = 0;
  bool cached = false;
};

// A segment ready to run, with one instance per slot (a request in flight). bind() before the first run() of
// a slot; two slots' runs never overlap in time on one device, for a device is exclusive. Destroyed on any
// thread.
class CompiledSegment {
 public:
  virtual ~CompiledSegment() = default;
  // The memory that this slot reads and writes from now on. It outlives the segment.
  virtual Status bind(int slot, std::span<const TensorView> inputs, std::span<const TensorView> outputs) = 0;
  // Blocks until the outputs are written. Called on the device's worker thread.
  virtual Status run(int slot) = 0;
  // A time that passes without a thread of ours (emulated devices): the executor waits that long and then
  // calls run(), which must be quick. Zero takes no time at all. nullopt: run() itself takes the time, on a
  // worker thread.
  virtual std::optional<double> timed_us() const { return std::nullopt; }
  // How compile() came by it.
  virtual SegmentOrigin origin() const { return {}; }
  // Puts it into the cache that compile() was given, where it did not come from there; nothing where there is
  // none. Not while it runs.
  virtual Status store() { return {}; }

  // Accelerators only. The parameters, in one block of memory that the device's runtime has pinned; empty
  // where there are none.
  virtual std::span<std::byte> host_parameters() { return {}; }
  // Where the device will find that block when the segment runs: before the first run().
  virtual Status place_parameters(std::byte*) { return {}; }
  // The copy on the device is the only one from now on.
  virtual void drop_host_parameters() {}
};

// An opened device. compile() may be called from any thread, and from several at once.
class RuntimeDevice {
 public:
  virtual ~RuntimeDevice() = default;
  virtual Result<std::unique_ptr<CompiledSegment>> compile(const SegmentSpec& spec, int slots) = 0;
  // False: no data moves, so no buffers are made.
  virtual bool moves_data() const { return true; }
  // Cores that the worker thread must be bound to; empty: any.
  virtual std::vector<int> worker_cores() const { return {}; }
  // An accelerator has memory of its own: bind() gets addresses there, and run() returns when its work is
  // enqueued on the execution stream. Both live as long as the device; null: run() blocks and all memory is
  // the host's.
  virtual StreamRuntime* stream_runtime() const { return nullptr; }
  virtual DeviceStream* execution_stream() const { return nullptr; }
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;         // Device::backend
  virtual std::string description() const = 0;  // one line
  // Cheap, no side effects; open() may still fail.
  virtual bool supports(const Device& device) const = 0;
  // False: takes a plan's times as they are, and computes and measures nothing.
  virtual bool computes() const { return true; }
  // For planning, by op of the model's graph: why the device cannot run it; nothing where it can. Empty: it
  // runs whatever the importer lets through. O(ops).
  virtual std::vector<std::optional<Error>> refusals(const Device&, const Model&) const { return {}; }
  virtual Result<std::unique_ptr<RuntimeDevice>> open(const Device& device) = 0;
  // GPUs of this machine that it can open; none where there is no driver.
  virtual GpuTopology gpus() const { return {}; }
};

// Every backend built into the program; they live as long as it.
std::span<const std::unique_ptr<Backend>> backend_registry();
// The GPUs of the first backend that has any.
GpuTopology local_gpus();
Backend* find_backend(std::string_view name);  // nullptr when there is none
// Opens a device with the backend that it names; unknown names are an error with the nearest spelling.
Result<std::unique_ptr<RuntimeDevice>> open_device(const Device& device);

}  // namespace heddle
