// All CUDA calls for streams, events, memory and copies. This layer is thin: decisions are made above the
// interface, where they are tested on the host's implementation.
#include "cuda_stream_runtime.h"

#include <vector>

#include "cuda_driver.h"
#include "heddle/base/units.h"

namespace heddle::torch_backend {
namespace {

constexpr std::string_view kCudaFamily = "cuda";

CUdeviceptr address(const std::byte* p) { return reinterpret_cast<CUdeviceptr>(p); }

// A device's primary context and, for a share, the green context whose streams use some of its
// multiprocessors.
class CudaContext {
 public:
  CudaContext(const CudaDriver& cuda, int at) : driver(cuda), index(at) {}
  ~CudaContext() {
    if (green != nullptr) driver.cuGreenCtxDestroy(green);
    if (primary != nullptr) driver.cuDevicePrimaryCtxRelease(device);
  }
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  Status open() {
    HEDDLE_RETURN_IF_ERROR(check(driver.cuDeviceGet(&device, index), "opening it"));
    char text[256] = {};
    HEDDLE_RETURN_IF_ERROR(check(driver.cuDeviceGetName(text, sizeof text, device), "reading its name"));
    name = text;
    return check(driver.cuDevicePrimaryCtxRetain(&primary, device), "retaining its context");
  }
  // Makes this thread's calls use this device or share: streams, events and kernels must belong to one
  // context.
  Status use() const {
    return check(driver.cuCtxSetCurrent(part != nullptr ? part : primary), "choosing it");
  }
  Status check(CUresult result, const char* what) const {
    if (result == CUDA_SUCCESS) return {};
    return driver.check(result, std::string(what) + " (device " + std::to_string(index) + ")");
  }
  // Calls a function of the driver for this device or share.
  template <class F, class... Args>
  Status call(F f, const char* what, Args... args) const {
    HEDDLE_RETURN_IF_ERROR(use());
    return check(f(args...), what);
  }

  const CudaDriver& driver;
  int index;
  CUdevice device = 0;
  std::string name;
  CUcontext primary = nullptr, part = nullptr;  // part: the green context as a context
  CUgreenCtx green = nullptr;
};

class CudaEvent final : public DeviceEvent {
 public:
  CudaEvent(std::shared_ptr<const CudaContext> context, CUevent event)
      : context_(std::move(context)), event_(event) {}
  ~CudaEvent() override {
    if (context_->use().ok()) context_->driver.cuEventDestroy(event_);
  }
  Status synchronize() const override {
    return context_->call(context_->driver.cuEventSynchronize, "waiting for an event", event_);
  }
  Result<bool> done() const override {
    HEDDLE_RETURN_IF_ERROR(context_->use());
    const CUresult result = context_->driver.cuEventQuery(event_);
    if (result == CUDA_ERROR_NOT_READY) return false;
    HEDDLE_RETURN_IF_ERROR(context_->check(result, "asking for an event"));
    return true;
  }
  std::string_view family() const override { return kCudaFamily; }
  CUevent event() const { return event_; }

 private:
  std::shared_ptr<const CudaContext> context_;
  CUevent event_;
};

CUevent event_of(const DeviceEvent& event) { return static_cast<const CudaEvent&>(event).event(); }

class CudaGraph final : public DeviceGraph {
 public:
  CudaGraph(std::shared_ptr<const CudaContext> context, CUgraphExec exec)
      : context_(std::move(context)), exec_(exec) {}
  ~CudaGraph() override {
    if (context_->use().ok()) context_->driver.cuGraphExecDestroy(exec_);
  }
  CUgraphExec exec() const { return exec_; }

 private:
  std::shared_ptr<const CudaContext> context_;
  CUgraphExec exec_;
};

class CudaStream final : public DeviceStream {
 public:
  CudaStream(std::shared_ptr<const CudaContext> context, CUstream stream)
      : context_(std::move(context)), stream_(stream) {}
  ~CudaStream() override {
    if (!context_->use().ok()) return;
    context_->driver.cuStreamSynchronize(stream_);
    context_->driver.cuStreamDestroy(stream_);
  }
  Status record(DeviceEvent& event) override {
    return context_->call(cuda().cuEventRecord, "recording an event", event_of(event), stream_);
  }
  Status wait(const DeviceEvent& event) override {
    if (event.family() != kCudaFamily) return event.synchronize();
    return context_->call(cuda().cuStreamWaitEvent, "letting a stream wait", stream_, event_of(event), 0U);
  }
  Status copy(CopyKind kind, std::byte* to, const std::byte* from, int64_t bytes) override {
    const auto size = static_cast<size_t>(bytes);
    if (size == 0) return {};
    switch (kind) {
      case CopyKind::kHostToDevice:
        return context_->call(cuda().cuMemcpyHtoDAsync, "copying to the device", address(to), from, size,
                              stream_);
      case CopyKind::kDeviceToHost:
        return context_->call(cuda().cuMemcpyDtoHAsync, "copying to the host", to, address(from), size,
                              stream_);
      case CopyKind::kDeviceToDevice:
        break;
    }
    return context_->call(cuda().cuMemcpyDtoDAsync, "copying on the device", address(to), address(from), size,
                          stream_);
  }
  Status copy_peer(std::byte* to, const StreamRuntime& source, const std::byte* from, int64_t bytes) override;
  Status compute(std::function<Status()> work) override {
    HEDDLE_RETURN_IF_ERROR(context_->use());
    return work();
  }
  Status begin_capture() override {
    // Relaxed mode, because libtorch's kernels may allocate memory during the capture.
    return context_->call(cuda().cuStreamBeginCapture, "capturing a graph", stream_,
                          CU_STREAM_CAPTURE_MODE_RELAXED);
  }
  Result<std::unique_ptr<DeviceGraph>> end_capture() override {
    CUgraph graph = nullptr;
    HEDDLE_RETURN_IF_ERROR(context_->call(cuda().cuStreamEndCapture, "ending a capture", stream_, &graph));
    CUgraphExec exec = nullptr;
    Status made = context_->call(cuda().cuGraphInstantiateWithFlags, "making a graph", &exec, graph, 0ULL);
    cuda().cuGraphDestroy(graph);
    if (!made.ok()) return std::move(made).error();
    return std::unique_ptr<DeviceGraph>(std::make_unique<CudaGraph>(context_, exec));
  }
  Status launch(DeviceGraph& graph) override {
    return context_->call(cuda().cuGraphLaunch, "launching a graph", static_cast<CudaGraph&>(graph).exec(),
                          stream_);
  }
  Status synchronize() override {
    return context_->call(cuda().cuStreamSynchronize, "waiting for a stream", stream_);
  }
  void* native() const override { return stream_; }

 private:
  const CudaDriver& cuda() const { return context_->driver; }

  std::shared_ptr<const CudaContext> context_;
  CUstream stream_;
};

class CudaRuntime final : public StreamRuntime {
 public:
  explicit CudaRuntime(std::shared_ptr<CudaContext> context) : context_(std::move(context)) {}

  Status open(const AcceleratorName& name) {
    size_t total = 0;
    int mapped = 0;
    HEDDLE_RETURN_IF_ERROR(
        context_->call(cuda().cuDeviceTotalMem, "reading its memory", &total, context_->device));
    HEDDLE_RETURN_IF_ERROR(context_->call(cuda().cuDeviceGetAttribute, "reading its attributes", &mapped,
                                          CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, context_->device));
    properties_ = {.family = std::string(kCudaFamily),
                   .name = context_->name,
                   .index = context_->index,
                   .memory_bytes = static_cast<int64_t>(total),
                   .mapped_memory = mapped != 0};
    return name.of == 0 ? Status() : take_share(name);
  }

  const StreamRuntimeProperties& properties() const override { return properties_; }
  Result<std::unique_ptr<DeviceStream>> make_stream() override {
    HEDDLE_RETURN_IF_ERROR(context_->use());
    CUstream stream = nullptr;
    const CUresult made =
        context_->green != nullptr
            ? cuda().cuGreenCtxStreamCreate(&stream, context_->green, CU_STREAM_NON_BLOCKING, 0)
            : cuda().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    HEDDLE_RETURN_IF_ERROR(context_->check(made, "making a stream"));
    return std::unique_ptr<DeviceStream>(std::make_unique<CudaStream>(context_, stream));
  }
  Result<std::unique_ptr<DeviceEvent>> make_event() override {
    CUevent event = nullptr;
    HEDDLE_RETURN_IF_ERROR(context_->call(cuda().cuEventCreate, "making an event", &event, CU_EVENT_DEFAULT));
    return std::unique_ptr<DeviceEvent>(std::make_unique<CudaEvent>(context_, event));
  }
  Result<std::shared_ptr<std::byte[]>> allocate(int64_t bytes) override {
    CUdeviceptr memory = 0;
    const std::string what = "taking " + format_bytes(bytes) + " of its memory";
    HEDDLE_RETURN_IF_ERROR(context_->call(cuda().cuMemAlloc, what.c_str(), &memory,
                                          static_cast<size_t>(std::max<int64_t>(bytes, 1))));
    return std::shared_ptr<std::byte[]>(reinterpret_cast<std::byte*>(memory),
                                        [context = context_](std::byte* p) {
                                          if (context->use().ok()) context->driver.cuMemFree(address(p));
                                        });
  }
  Result<std::shared_ptr<std::byte[]>> allocate_pinned(int64_t bytes) override {
    void* memory = nullptr;
    const unsigned flags =
        CU_MEMHOSTALLOC_PORTABLE | (properties_.mapped_memory ? CU_MEMHOSTALLOC_DEVICEMAP : 0U);
    const std::string what = "pinning " + format_bytes(bytes) + " of host memory";
    HEDDLE_RETURN_IF_ERROR(context_->call(cuda().cuMemHostAlloc, what.c_str(), &memory,
                                          static_cast<size_t>(std::max<int64_t>(bytes, 1)), flags));
    return std::shared_ptr<std::byte[]>(static_cast<std::byte*>(memory), [context = context_](std::byte* p) {
      if (context->use().ok()) context->driver.cuMemFreeHost(p);
    });
  }
  Result<std::byte*> mapped_address(std::byte* pinned) const override {
    if (!properties_.mapped_memory)
      return unsupported("device '" + properties_.name + "' cannot read host memory in place");
    HEDDLE_RETURN_IF_ERROR(context_->use());
    CUdeviceptr device = 0;
    HEDDLE_RETURN_IF_ERROR(
        context_->check(cuda().cuMemHostGetDevicePointer(&device, pinned, 0), "mapping host memory"));
    return reinterpret_cast<std::byte*>(device);
  }
  bool reaches(const StreamRuntime& other) const override {
    if (other.properties().family != kCudaFamily) return false;
    const auto& theirs = static_cast<const CudaRuntime&>(other);
    if (theirs.context_->device == context_->device) return true;
    int can = 0;
    if (cuda().cuDeviceCanAccessPeer(&can, context_->device, theirs.context_->device) != CUDA_SUCCESS ||
        can == 0)
      return false;
    if (!context_->use().ok()) return false;
    const CUresult enabled = cuda().cuCtxEnablePeerAccess(theirs.context_->primary, 0);
    return enabled == CUDA_SUCCESS || enabled == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  }
  Result<double> elapsed_us(const DeviceEvent& from, const DeviceEvent& to) const override {
    float ms = 0;
    HEDDLE_RETURN_IF_ERROR(context_->call(cuda().cuEventElapsedTime, "reading the time between events", &ms,
                                          event_of(from), event_of(to)));
    return static_cast<double>(ms) * 1000;
  }
  Status use_on_this_thread() const override { return context_->use(); }
  Status drain() override { return context_->call(cuda().cuCtxSynchronize, "waiting for the device"); }
  CUcontext primary() const { return context_->primary; }

 private:
  const CudaDriver& cuda() const { return context_->driver; }

  // Divides the multiprocessors into as many equal groups as the hardware allows. The share has the groups
  // from first / of up to last / of.
  Status take_share(const AcceleratorName& name) {
    if (!cuda().has_green) return unsupported("shares of a CUDA device need a driver of CUDA 12.4 or later");
    CUdevResource all{};
    HEDDLE_RETURN_IF_ERROR(context_->check(
        cuda().cuDeviceGetDevResource(context_->device, &all, CU_DEV_RESOURCE_TYPE_SM), "reading its parts"));
    unsigned count = 0;
    HEDDLE_RETURN_IF_ERROR(context_->check(
        cuda().cuDevSmResourceSplitByCount(nullptr, &count, &all, nullptr, 0, 1), "dividing it"));
    std::vector<CUdevResource> groups(count);
    CUdevResource rest{};
    HEDDLE_RETURN_IF_ERROR(context_->check(
        cuda().cuDevSmResourceSplitByCount(groups.data(), &count, &all, &rest, 0, 1), "dividing it"));
    const unsigned of = static_cast<unsigned>(name.of);
    const unsigned first = static_cast<unsigned>(name.first) * count / of;
    const unsigned last = static_cast<unsigned>(name.last) * count / of;
    if (first >= last) {
      return unsupported("device '" + context_->name + "' has " + std::to_string(count) +
                         " groups of multiprocessors; 1/" + std::to_string(name.of) +
                         " of it is less than one: ask for fewer parts");
    }
    CUdevResourceDesc description{};
    HEDDLE_RETURN_IF_ERROR(
        context_->check(cuda().cuDevResourceGenerateDesc(&description, groups.data() + first, last - first),
                        "naming a share"));
    HEDDLE_RETURN_IF_ERROR(context_->check(
        cuda().cuGreenCtxCreate(&context_->green, description, context_->device, CU_GREEN_CTX_DEFAULT_STREAM),
        "making a share"));
    return context_->check(cuda().cuCtxFromGreenCtx(&context_->part, context_->green), "entering a share");
  }

  std::shared_ptr<CudaContext> context_;
  StreamRuntimeProperties properties_;
};

Status CudaStream::copy_peer(std::byte* to, const StreamRuntime& source, const std::byte* from,
                             int64_t bytes) {
  const auto& theirs = static_cast<const CudaRuntime&>(source);
  return context_->call(cuda().cuMemcpyPeerAsync, "copying between devices", address(to), context_->primary,
                        address(from), theirs.primary(), static_cast<size_t>(bytes), stream_);
}

}  // namespace

Result<std::shared_ptr<StreamRuntime>> make_cuda_runtime(const AcceleratorName& name) {
  HEDDLE_ASSIGN_OR_RETURN(const CudaDriver* driver, cuda_driver());
  int count = 0;
  HEDDLE_RETURN_IF_ERROR(driver->check(driver->cuDeviceGetCount(&count), "counting the devices"));
  if (name.index >= count) {
    return unsupported("there is no CUDA device " + std::to_string(name.index) + ": this machine has " +
                       std::to_string(count) + " (counted from 0, those of CUDA_VISIBLE_DEVICES)");
  }
  auto context = std::make_shared<CudaContext>(*driver, name.index);
  HEDDLE_RETURN_IF_ERROR(context->open());
  auto runtime = std::make_shared<CudaRuntime>(std::move(context));
  HEDDLE_RETURN_IF_ERROR(runtime->open(name));
  return std::shared_ptr<StreamRuntime>(std::move(runtime));
}

}  // namespace heddle::torch_backend
