// Computes segments with libtorch's operators, one by one (docs/torch.md).
//
// Threads. ATen's kernels run on the calling thread and on OpenMP threads that it creates; these inherit the
// cores to which the executor has bound the worker, and there are as many as the device has cores. An
// accelerator's segment enqueues its ops on the device's execution stream.
#include <ATen/Parallel.h>
#include <torch/csrc/api/include/torch/version.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <thread>

#include "backends/segment_cut.h"
#include "heddle/runtime/stream_runtime.h"
#include "streams/accelerator_name.h"
#include "streams/repeated_run.h"
#include "threads/mailbox.h"
#include "torch_cuda.h"
#include "torch_program.h"

namespace heddle {
namespace {

using torch_backend::CudaWorkspace;
using torch_backend::SegmentOps;
using torch_backend::TorchProgram;

// What an accelerator's segments share.
struct TorchAccelerator {
  std::shared_ptr<StreamRuntime> runtime;
  std::unique_ptr<DeviceStream> execution, compiling;
  // Null on the host. One per stream, as memory freed on one stream may still be in use for another one.
  std::unique_ptr<CudaWorkspace> workspace, compile_workspace;
  bool cuda = false, tf32 = false;
  int threads = 0;  // on the host

  // Enqueues libtorch's ops.
  Status call(DeviceStream& stream, const std::function<Status()>& work) const {
    return cuda ? torch_backend::on_cuda_stream(runtime->properties().index, stream, tf32, work) : work();
  }
};

void use_threads(int count) {
  thread_local int current = 0;
  if (current == count) return;
  at::set_num_threads(count);
  current = count;
}

class TorchSegment final : public CompiledSegment {
 public:
  struct SlotTensors {
    std::vector<TensorView> inputs, outputs;  // in the program's order
    RepeatedRun repeated;                     // accelerators
  };
  // `accelerator` is null if ops run on the calling thread.
  TorchSegment(std::unique_ptr<TorchProgram> program, std::vector<int> inputs, std::vector<int> outputs,
               int slots, int threads, SegmentOrigin origin, std::shared_ptr<TorchAccelerator> accelerator)
      : accelerator_(std::move(accelerator)),
        program_(std::move(program)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        slots_(static_cast<size_t>(slots)),
        threads_(threads),
        origin_(origin) {}

  SegmentOrigin origin() const override { return origin_; }

  Status bind(int slot, std::span<const TensorView> inputs, std::span<const TensorView> outputs) override {
    SlotTensors& s = slots_[static_cast<size_t>(slot)];
    s = {};
    for (const int i : inputs_) s.inputs.push_back(inputs[static_cast<size_t>(i)]);
    for (const int i : outputs_) s.outputs.push_back(i < 0 ? TensorView() : outputs[static_cast<size_t>(i)]);
    return {};
  }

  Status run(int slot) override {
    SlotTensors& s = slots_[static_cast<size_t>(slot)];
    if (!accelerator_) return compute(s);
    DeviceStream& stream = *accelerator_->execution;
    return s.repeated.run(stream, [this, &s, &stream] {
      return accelerator_->call(stream, [this, &s] { return compute(s); });
    });
  }

  std::span<std::byte> host_parameters() override { return program_->packed(); }
  Status place_parameters(std::byte* address) override {
    program_->place_parameters(address);
    for (SlotTensors& s : slots_) s.repeated.forget();
    return {};
  }
  void drop_host_parameters() override { program_->drop_packed(); }

 private:
  Status compute(const SlotTensors& s) const {
    use_threads(threads_);
    try {
      return program_->run(s.inputs, s.outputs);
    } catch (const std::exception& e) {
      return unsupported(std::string("libtorch failed at moving tensors: ") + e.what());
    }
  }

  std::shared_ptr<TorchAccelerator> accelerator_;  // must outlive the program's tensors
  std::unique_ptr<TorchProgram> program_;
  std::vector<int> inputs_, outputs_;
  std::vector<SlotTensors> slots_;
  int threads_;
  SegmentOrigin origin_;
};

DType border_type_of(const Device& device) {
  const DType narrow = torch_backend::narrow_dtype(device.precision);
  return narrow == DType::kUndefined ? DType::kF32 : narrow;
}

class TorchDevice final : public RuntimeDevice {
 public:
  TorchDevice(const Device& device, at::Device where, std::shared_ptr<TorchAccelerator> accelerator)
      : device_(device), where_(where), accelerator_(std::move(accelerator)) {}

  Result<std::unique_ptr<CompiledSegment>> compile(const SegmentSpec& spec, int slots) override {
    const int64_t begin = now_ns();
    HEDDLE_ASSIGN_OR_RETURN(SegmentCut cut, cut_segment(spec, device_.name));
    HEDDLE_ASSIGN_OR_RETURN(SegmentOps ops, torch_backend::read_segment(cut.part));
    // The model's own inputs are rounded. Float32 tensors of other segments come in float32 for a reason.
    std::vector<bool> wide;
    for (size_t i = 0; i < cut.inputs.size(); ++i) {
      const bool is_float = spec.inputs[static_cast<size_t>(cut.inputs[i])].dtype == DType::kF32;
      wide.push_back(is_float && cut.model->graph()->tensor(cut.part.inputs[i]).producer.valid());
    }
    // The constants of a cut are in the model's memory.
    ops.memory = std::make_shared<std::pair<std::shared_ptr<const void>, std::shared_ptr<const Model>>>(
        std::move(ops.memory), cut.model);
    const double load_us = static_cast<double>(now_ns() - begin) / 1000;
    HEDDLE_ASSIGN_OR_RETURN(auto program, make_program(std::move(ops), wide));
    return std::unique_ptr<CompiledSegment>(
        std::make_unique<TorchSegment>(std::move(program), std::move(cut.inputs), std::move(cut.outputs),
                                       slots, threads(), SegmentOrigin{load_us, false}, accelerator_));
  }

  std::vector<int> worker_cores() const override { return device_.cores; }
  DType border_type() const override { return border_type_of(device_); }
  StreamRuntime* stream_runtime() const override {
    return accelerator_ ? accelerator_->runtime.get() : nullptr;
  }
  DeviceStream* execution_stream() const override {
    return accelerator_ ? accelerator_->execution.get() : nullptr;
  }
  Status read_in_place(DeviceStream& stream, std::byte* to, const std::byte* mapped, int64_t bytes) override {
    if (!accelerator_) return RuntimeDevice::read_in_place(stream, to, mapped, bytes);
    const Shape elements = {bytes / static_cast<int64_t>(sizeof(float))};
    return stream.compute([=, this, &stream] {
      return accelerator_->call(stream, [&]() -> Status {
        use_threads(threads());
        try {
          at::Tensor written = torch_backend::over_memory(to, elements, at::kFloat, where_);
          auto* read = const_cast<std::byte*>(mapped);
          at::neg_out(written, torch_backend::over_memory(read, elements, at::kFloat, where_));
        } catch (const std::exception& e) {
          return unsupported(std::string("libtorch failed at reading host memory: ") + e.what());
        }
        return {};
      });
    });
  }

 private:
  Result<std::unique_ptr<TorchProgram>> make_program(SegmentOps ops, const std::vector<bool>& wide) const {
    std::unique_ptr<TorchProgram> program;
    const auto make = [&]() -> Status {
      try {
        HEDDLE_ASSIGN_OR_RETURN(program, TorchProgram::make(std::move(ops), where_, device_.precision, wide));
        if (!accelerator_) return {};
        return program->pack_parameters(
            [&](int64_t bytes) { return accelerator_->runtime->allocate_pinned(bytes); });
      } catch (const std::exception& e) {
        return unsupported(std::string("libtorch failed at compiling: ") + e.what());
      }
    };
    if (!accelerator_) {
      HEDDLE_RETURN_IF_ERROR(make());
      return program;
    }
    // Constants are computed on the device, concurrently with running segments.
    HEDDLE_RETURN_IF_ERROR(accelerator_->call(*accelerator_->compiling, make));
    HEDDLE_RETURN_IF_ERROR(accelerator_->compiling->synchronize());
    if (accelerator_->workspace)
      HEDDLE_RETURN_IF_ERROR(accelerator_->workspace->reserve(program->workspace_bytes()));
    return program;
  }

  int threads() const {
    if (accelerator_ && accelerator_->threads > 0) return accelerator_->threads;
    if (!device_.cores.empty()) return static_cast<int>(device_.cores.size());
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }

  Device device_;
  at::Device where_;
  std::shared_ptr<TorchAccelerator> accelerator_;  // null: ops run on the calling thread, in host memory
};

// The number of the machine's cores, or the part's share of it.
int threads_of(const AcceleratorName& name) {
  const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  return name.of == 0 ? cores : std::max(1, cores * (name.last - name.first) / name.of);
}

// A `cpu` runs in its host's memory. Any other device is an accelerator, on the stream runtime of the host or
// of CUDA.
Result<std::unique_ptr<RuntimeDevice>> open_torch_device(const Device& device) {
  const std::string& name = device.backend_device;
  if (device.kind == DeviceKind::kCpu) {
    if (name.empty() || name == "cpu")
      return std::unique_ptr<RuntimeDevice>(std::make_unique<TorchDevice>(device, at::kCPU, nullptr));
    return unsupported("device '" + device.name + "' asks libtorch for '" + name +
                       "'; expected 'cpu' (or nothing), or for a device of the kind gpu "
                       "'cuda:0'");
  }
  auto parsed = parse_accelerator_name(name);
  if (!parsed.ok()) return std::move(parsed).error().with_context("device '" + device.name + "'");
  const bool cuda = parsed->cuda;
  auto accelerator = std::make_shared<TorchAccelerator>();
  accelerator->cuda = cuda;
  accelerator->tf32 = device.precision == Precision::kTf32;
  if (cuda) {
    HEDDLE_ASSIGN_OR_RETURN(accelerator->runtime, torch_backend::open_cuda(name));
  } else {
    accelerator->runtime = make_host_runtime({.name = device.name, .memory_bytes = device.memory_bytes});
    accelerator->threads = threads_of(*parsed);
  }
  HEDDLE_ASSIGN_OR_RETURN(accelerator->execution, accelerator->runtime->make_stream());
  HEDDLE_ASSIGN_OR_RETURN(accelerator->compiling, accelerator->runtime->make_stream());
  if (cuda) {
    accelerator->workspace = torch_backend::make_workspace(accelerator->runtime, *accelerator->execution);
    accelerator->compile_workspace =
        torch_backend::make_workspace(accelerator->runtime, *accelerator->compiling);
  }
  const auto index = static_cast<c10::DeviceIndex>(accelerator->runtime->properties().index);
  const at::Device where = cuda ? at::Device(at::kCUDA, index) : at::Device(at::kCPU);
  return std::unique_ptr<RuntimeDevice>(std::make_unique<TorchDevice>(device, where, std::move(accelerator)));
}

class TorchBackend final : public Backend {
 public:
  std::string name() const override { return "torch"; }
  std::string description() const override {
    return std::string("libtorch's operators ") + torch_backend::where_ops_run() + ", one by one";
  }
  std::string release() const override { return TORCH_VERSION; }
  // Cuts out each op alone and makes its kernel, as for a segment.
  std::vector<std::optional<Error>> refusals(const Device&, const Model& model) const override {
    std::vector<std::optional<Error>> list(model.graph()->num_ops());
    for (size_t i = 0; i < list.size(); ++i) {
      const OpId op(i);
      Status status = check_op(model, op);
      if (!status.ok()) list[i] = std::move(status).error();
    }
    return list;
  }

  // An accelerator on the host rounds as one with the type would, but is no faster.
  Result<std::vector<Precision>> precisions(const Device& device) const override {
    if (device.kind == DeviceKind::kCpu) return std::vector{Precision::kF32};
    HEDDLE_ASSIGN_OR_RETURN(const AcceleratorName name, parse_accelerator_name(device.backend_device));
    if (!name.cuda) return std::vector{Precision::kF32, Precision::kBf16, Precision::kFp16};
    return torch_backend::cuda_precisions(name.index);
  }
  DType border_type(const Device& device) const override { return border_type_of(device); }
  bool narrows_parameters() const override { return true; }
  WideValues wide_values(const Graph& graph) const override { return torch_backend::wide_values_of(graph); }
  // A convolution or product, its normalisation, and its activation.
  int roundings_per_layer() const override { return 3; }

  Result<std::unique_ptr<RuntimeDevice>> open(const Device& device) override {
    return open_torch_device(device);
  }
  GpuTopology gpus() const override { return torch_backend::cuda_topology(); }

 private:
  static Status check_op(const Model& model, OpId op) {
    HEDDLE_ASSIGN_OR_RETURN(const SegmentModel cut, model.cut({&op, 1}));
    HEDDLE_ASSIGN_OR_RETURN(SegmentOps ops, torch_backend::read_segment(cut));
    try {
      HEDDLE_ASSIGN_OR_RETURN(const auto program, TorchProgram::make(std::move(ops), at::Device(at::kCPU)));
    } catch (const std::exception& e) {
      return unsupported(std::string("libtorch failed at compiling: ") + e.what());
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<Backend> make_torch_backend() { return std::make_unique<TorchBackend>(); }

}  // namespace heddle
