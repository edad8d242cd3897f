// Connects libtorch to CUDA: current stream, allocator, precision.
#include "backends/torch/torch_cuda.h"

#include <ATen/Context.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/cuda/CUDAPluggableAllocator.h>

#include <array>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "cuda_driver.h"
#include "cuda_stream_runtime.h"
#include "streams/workspace.h"

namespace heddle::torch_backend {
namespace {

// libtorch has one allocator per process, which finds each stream's workspace here. Requests on other streams
// go to the driver.
class Workspaces {
 public:
  static Workspaces& instance() {
    static auto* all = new Workspaces;  // never destroyed: libtorch frees memory until the very end
    return *all;
  }
  void add(void* stream, std::shared_ptr<Workspace> workspace) {
    const std::lock_guard lock(mutex_);
    of_stream_[stream] = std::move(workspace);
  }
  void remove(void* stream) {
    const std::lock_guard lock(mutex_);
    of_stream_.erase(stream);
  }
  void* take(size_t bytes, int device, cudaStream_t stream) {
    std::shared_ptr<Workspace> workspace = find(stream);
    if (!workspace) workspace = other(device);
    if (!workspace) return nullptr;
    const auto part = workspace->take(static_cast<int64_t>(bytes));
    if (!part.ok()) return nullptr;
    const std::lock_guard lock(mutex_);
    owner_[*part] = std::move(workspace);
    return *part;
  }
  void give_back(void* part) {
    std::shared_ptr<Workspace> workspace;
    {
      const std::lock_guard lock(mutex_);
      const auto it = owner_.find(static_cast<std::byte*>(part));
      if (it == owner_.end()) return;
      workspace = std::move(it->second);
      owner_.erase(it);
    }
    workspace->give_back(static_cast<std::byte*>(part));
  }

 private:
  std::shared_ptr<Workspace> find(void* stream) {
    const std::lock_guard lock(mutex_);
    const auto it = of_stream_.find(stream);
    return it == of_stream_.end() ? nullptr : it->second;
  }
  std::shared_ptr<Workspace> other(int device) {
    const std::lock_guard lock(mutex_);
    auto& workspace = of_device_[device];
    if (!workspace) {
      auto runtime = make_cuda_runtime({.index = device});
      if (!runtime.ok()) return nullptr;
      workspace = std::make_shared<Workspace>(
          [runtime = *runtime](int64_t bytes) { return runtime->allocate(bytes); });
    }
    return workspace;
  }

  std::mutex mutex_;
  std::map<void*, std::shared_ptr<Workspace>> of_stream_;
  std::map<int, std::shared_ptr<Workspace>> of_device_;
  std::map<std::byte*, std::shared_ptr<Workspace>> owner_;
};

// libtorch's base class for external allocators does not know the largest free block, so state one.
class WorkspaceAllocator final : public torch::cuda::CUDAPluggableAllocator::CUDAPluggableAllocator {
 public:
  using CUDAPluggableAllocator::CUDAPluggableAllocator;
  void cacheInfo(c10::DeviceIndex, size_t* largest_block) override {
    constexpr size_t kConvolutionWorkspace = size_t{256} << 20;
    *largest_block = kConvolutionWorkspace;
  }
};

// Runs once, before libtorch's first allocation on a device.
Status set_up_libtorch() {
  static const Status done = []() -> Status {
    try {
      const std::shared_ptr<c10::cuda::CUDACachingAllocator::CUDAAllocator> allocator =
          std::make_shared<WorkspaceAllocator>(
              [](size_t bytes, int device, cudaStream_t stream) -> void* {
                void* part = Workspaces::instance().take(bytes, device, stream);
                TORCH_CHECK_WITH(OutOfMemoryError, part != nullptr, "no device memory for a tensor of ",
                                 bytes, " bytes between two ops");
                return part;
              },
              [](void* part, size_t, int, cudaStream_t) { Workspaces::instance().give_back(part); });
      torch::cuda::CUDAPluggableAllocator::changeCurrentAllocator(allocator);
      at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
      // Plain f32, so that a cut model computes the same as the whole one.
      at::globalContext().setAllowTF32CuDNN(false);
      at::globalContext().setAllowTF32CuBLAS(false);
      return {};
    } catch (const std::exception& e) {
      return unsupported(std::string("libtorch cannot start on CUDA: ") + e.what());
    }
  }();
  return done;
}

// While it lives, libtorch enqueues with or without tf32.
class Tf32Use {
 public:
  explicit Tf32Use(bool on) {
    Turns& t = turns();
    std::unique_lock lock(t.mutex);
    ++t.waiting[on];
    // Who comes later lets those with the other setting go first.
    t.changed.wait(lock, [&t, on] { return t.users == 0 || (t.on == on && t.waiting[!on] == 0); });
    --t.waiting[on];
    if (t.on != on) {
      at::globalContext().setAllowTF32CuDNN(on);
      at::globalContext().setAllowTF32CuBLAS(on);
      t.on = on;
    }
    ++t.users;
  }
  ~Tf32Use() {
    Turns& t = turns();
    const std::lock_guard lock(t.mutex);
    if (--t.users == 0) t.changed.notify_all();
  }
  Tf32Use(const Tf32Use&) = delete;
  Tf32Use& operator=(const Tf32Use&) = delete;

 private:
  struct Turns {
    std::mutex mutex;
    std::condition_variable changed;
    bool on = false;  // as set_up_libtorch() leaves it
    int users = 0;
    std::array<int, 2> waiting{};  // [with tf32]
  };
  static Turns& turns() {
    static Turns all;
    return all;
  }
};

class StreamWorkspace final : public CudaWorkspace {
 public:
  StreamWorkspace(std::shared_ptr<StreamRuntime> runtime, DeviceStream& stream)
      : stream_(stream.native()),
        workspace_(std::make_shared<Workspace>(
            [runtime = std::move(runtime)](int64_t bytes) { return runtime->allocate(bytes); })) {
    Workspaces::instance().add(stream_, workspace_);
  }
  ~StreamWorkspace() override { Workspaces::instance().remove(stream_); }
  Status reserve(int64_t bytes) override { return workspace_->reserve(bytes); }

 private:
  void* stream_;
  std::shared_ptr<Workspace> workspace_;
};

}  // namespace

const char* where_ops_run() { return "on the CPU and on CUDA devices"; }

GpuTopology cuda_topology() { return read_cuda_topology(); }

Result<std::shared_ptr<StreamRuntime>> open_cuda(const std::string& name) {
  HEDDLE_ASSIGN_OR_RETURN(const AcceleratorName parsed, parse_accelerator_name(name));
  HEDDLE_ASSIGN_OR_RETURN(auto runtime, make_cuda_runtime(parsed));
  HEDDLE_RETURN_IF_ERROR(set_up_libtorch());
  return runtime;
}

std::unique_ptr<CudaWorkspace> make_workspace(std::shared_ptr<StreamRuntime> runtime, DeviceStream& stream) {
  return std::make_unique<StreamWorkspace>(std::move(runtime), stream);
}

std::vector<Precision> cuda_precisions(int device) {
  // Tensor cores have float16 since Volta, and tf32 and bf16 since Ampere (CUDA C++ Programming Guide).
  constexpr int kVolta = 7, kAmpere = 8;
  const int major = compute_capability_major(device);
  std::vector<Precision> list = {Precision::kF32};
  if (major >= kAmpere) list.insert(list.end(), {Precision::kTf32, Precision::kBf16});
  if (major >= kVolta) list.push_back(Precision::kFp16);
  return list;
}

Status on_cuda_stream(int device, DeviceStream& stream, bool tf32, const std::function<Status()>& work) {
  const Tf32Use use(tf32);
  const auto index = static_cast<c10::DeviceIndex>(device);
  const c10::cuda::CUDAStreamGuard guard(
      c10::cuda::getStreamFromExternal(static_cast<cudaStream_t>(stream.native()), index));
  return work();
}

}  // namespace heddle::torch_backend
