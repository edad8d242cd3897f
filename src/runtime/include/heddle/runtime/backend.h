// Backends, which execute segments. Each has one folder under backends/; CMake generates the list of them
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
class Graph;
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

// Input of compile().
struct SegmentSpec {
  std::string name;                    // for messages
  std::shared_ptr<const Model> model;  // null when there is none (generated graphs)
  // Cold starts: reads the model on first use, once for all segments; otherwise empty. A segment from the
  // cache needs no model.
  std::function<Result<std::shared_ptr<const Model>>()> read_model;
  SegmentCache* cache = nullptr;               // holds compiled segments; null: no cache
  uint64_t model_key = 0;                      // identifies the model's content and shapes in the cache
  std::vector<OpId> finest_ops;                // of the model's graph, ascending
  std::vector<SegmentTensor> inputs, outputs;  // the order in which bind() gets them
  double cost_us = 0;                          // the plan's time for the segment
  bool host_access = false;                    // reads its parameters in place, from mapped host memory
  int callers = 1;  // devices that run it at once; more than 1 only if shares_segments()
};

// Time that compile() spent before compiling (reading the model or mapping the cached file, cutting), and
// whether a cached file replaced most of the compilation.
struct SegmentOrigin {
  double load_us = 0;
  bool cached = false;
};

// A segment that is ready to run, with one instance per slot (a request in flight). Call bind() before a
// slot's first run(). Devices are exclusive, so at most SegmentSpec::callers runs of different slots overlap. Any
// thread may destroy the segment.
class CompiledSegment {
 public:
  virtual ~CompiledSegment() = default;
  // Sets the memory that this slot reads and writes from now on. The memory outlives the segment.
  virtual Status bind(int slot, std::span<const TensorView> inputs, std::span<const TensorView> outputs) = 0;
  // Blocks until the outputs are written. Called on the device's worker thread.
  virtual Status run(int slot) = 0;
  // Emulated devices: the time that the run takes without occupying a thread. The executor waits that long,
  // then calls run(), which must be quick. Zero takes no time at all. nullopt: run() itself takes the time,
  // on a worker thread.
  virtual std::optional<double> timed_us() const { return std::nullopt; }
  // Where compile() took the segment from.
  virtual SegmentOrigin origin() const { return {}; }
  // Stores the segment in the cache given to compile(), unless it came from there; does nothing without a
  // cache. Not while it runs.
  virtual Status store() { return {}; }

  // Accelerators only: the parameters, in one block of memory that the device's runtime has pinned; empty if
  // there are none.
  virtual std::span<std::byte> host_parameters() { return {}; }
  // Sets the address at which the device will find that block. Call it before the first run().
  virtual Status place_parameters(std::byte*) { return {}; }
  // Frees the host's block; from now on only the device has the parameters.
  virtual void drop_host_parameters() {}
};

// An opened device. compile() may be called from several threads at once.
class RuntimeDevice {
 public:
  virtual ~RuntimeDevice() = default;
  virtual Result<std::unique_ptr<CompiledSegment>> compile(const SegmentSpec& spec, int slots) = 0;
  // True: a segment compiled here may also run on other devices of this host, class, engine and precision, by their
  // worker threads.
  virtual bool shares_segments() const { return false; }
  // False if no data moves; then no buffers are allocated.
  virtual bool moves_data() const { return true; }
  // Backend::border_type() of the device that was opened. compile() finds the types of tensors in the spec, and casts
  // are part of the segment.
  virtual DType border_type() const { return DType::kF32; }
  // Cores that the worker thread must be bound to; empty: any.
  virtual std::vector<int> worker_cores() const { return {}; }
  // An accelerator has memory of its own: bind() gets addresses there, and run() returns when its work is
  // enqueued on the execution stream. Runtime and stream live as long as the device. Null: run() blocks and
  // all memory is the host's.
  virtual StreamRuntime* stream_runtime() const { return nullptr; }
  virtual DeviceStream* execution_stream() const { return nullptr; }
  // Accelerators with mapped_memory: enqueues a kernel that reads `bytes` (a multiple of 4) of mapped host memory and
  // writes as many to `to`, as ops read parameters in place. Unsupported by default.
  virtual Status read_in_place(DeviceStream& stream, std::byte* to, const std::byte* mapped, int64_t bytes);
};

// Of a model's graph: float32 tensors and parameters that stay in float32 on devices of a narrower type. Empty: none.
struct WideValues {
  std::vector<bool> tensors, params;
  bool is_wide(TensorId t) const { return t.index() < tensors.size() && tensors[t.index()]; }
  bool is_wide(ParamId p) const { return p.index() < params.size() && params[p.index()]; }
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;         // Device::backend
  virtual std::string description() const = 0;  // one line
  // Of the engine: its times may differ from those of another release. Empty: it has none.
  virtual std::string release() const { return {}; }
  // False: the backend takes the plan's times as they are, and neither computes nor measures.
  virtual bool computes() const { return true; }
  // For planning: [op of the model's graph] the reason why the device cannot run the op, or nullopt. Empty:
  // the device runs every op that the importer accepts. O(ops).
  virtual std::vector<std::optional<Error>> refusals(const Device&, const Model&) const { return {}; }
  // The types in which the device of this machine can compute float32 models in hardware. The first is the one
  // that the engine takes by itself.
  virtual Result<std::vector<Precision>> precisions(const Device&) const {
    return std::vector{Precision::kF32};
  }
  // The type in which float32 tensors pass between segments of devices that all say the same.
  virtual DType border_type(const Device&) const { return DType::kF32; }
  // Whether devices keep parameters in that type alone, not beside the model's own.
  virtual bool narrows_parameters() const { return false; }
  virtual WideValues wide_values(const Graph&) const { return {}; }
  // How often a device of a narrower type rounds what OpenVINO fuses into one layer.
  virtual int roundings_per_layer() const { return 1; }
  virtual Result<std::unique_ptr<RuntimeDevice>> open(const Device& device) = 0;
  // GPUs of this machine that the backend can open; empty without a driver.
  virtual GpuTopology gpus() const { return {}; }
};

// All backends built into the program; they live as long as the program.
std::span<const std::unique_ptr<Backend>> backend_registry();
// The GPUs of the first backend that has any.
GpuTopology local_gpus();
// What measured times hold for: machine_fingerprint(), and the release of each engine that has one.
std::string measuring_fingerprint();
// This machine as a cluster: its cores, and the devices that the backends find.
Result<std::shared_ptr<const Cluster>> discover_machine();
Backend* find_backend(std::string_view name);  // nullptr when there is none
// Invalid input, with the reason, if the device cannot compute in its precision.
Status check_precision(const Device& device);
// Opens a device with the backend that it names. An unknown name is an error that suggests the nearest one.
// check_precision() holds for the opened device.
Result<std::unique_ptr<RuntimeDevice>> open_device(const Device& device);

}  // namespace heddle
