// Segments computed by libtorch's operators, one by one (docs/torch.md).
//
// Threads. ATen's kernels run on the calling thread and on OpenMP threads that it makes; those inherit the
// cores that the executor bound the worker to, and there are as many as the device has cores.
#include <ATen/Parallel.h>

#include <algorithm>
#include <map>
#include <memory>
#include <thread>

#include "backends/torch/torch_program.h"
#include "heddle/graph/model.h"
#include "heddle/runtime/backend.h"
#include "mailbox.h"

namespace heddle {
namespace {

using torch_backend::SegmentOps;
using torch_backend::TorchProgram;

// "cpu", or what libtorch calls another device.
Result<at::Device> device_of(const Device& device) {
  const std::string& name = device.backend_device;
  if (name.empty() || name == "cpu") return at::Device(at::kCPU);
  return Error(Code::kUnsupported, "device '" + device.name + "' asks libtorch for '" + name +
                                       "'; this program has 'cpu' (leave backend_device out or set it so)");
}

// Which of the wanted tensors each of the cut's is; -1: nobody asked for it.
Result<std::vector<int>> match(const Graph& graph, std::span<const TensorId> ports,
                               std::span<const SegmentTensor> wanted, bool inputs) {
  std::map<std::string_view, int> by_name;
  for (size_t i = 0; i < wanted.size(); ++i) by_name[wanted[i].name] = static_cast<int>(i);
  std::vector<int> found;
  size_t count = 0;
  for (const TensorId port : ports) {
    const auto it = by_name.find(graph.tensor(port).name);
    if (it == by_name.end() && inputs)
      return Error(Code::kInternal,
                   "the cut reads tensor '" + graph.tensor(port).name + "', which the plan does not feed");
    found.push_back(it == by_name.end() ? -1 : it->second);
    count += it == by_name.end() ? 0 : 1;
  }
  if (!inputs && count < wanted.size())
    return Error(Code::kInternal, "the cut makes " + std::to_string(count) + " of the " +
                                      std::to_string(wanted.size()) + " tensors that the plan expects of it");
  return found;
}

void use_threads(int count) {
  thread_local int current = 0;
  if (current == count) return;
  at::set_num_threads(count);
  current = count;
}

class TorchSegment final : public CompiledSegment {
 public:
  struct Slot {
    std::vector<TensorView> inputs, outputs;  // in the program's order
  };
  TorchSegment(std::unique_ptr<TorchProgram> program, std::vector<int> inputs, std::vector<int> outputs,
               int slots, int threads, SegmentOrigin origin)
      : program_(std::move(program)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        slots_(static_cast<size_t>(slots)),
        threads_(threads),
        origin_(origin) {}

  SegmentOrigin origin() const override { return origin_; }

  Status bind(int slot, std::span<const TensorView> inputs, std::span<const TensorView> outputs) override {
    Slot& s = slots_[static_cast<size_t>(slot)];
    s = {};
    for (const int i : inputs_) s.inputs.push_back(inputs[static_cast<size_t>(i)]);
    for (const int i : outputs_) s.outputs.push_back(i < 0 ? TensorView() : outputs[static_cast<size_t>(i)]);
    return {};
  }

  Status run(int slot) override {
    use_threads(threads_);
    const Slot& s = slots_[static_cast<size_t>(slot)];
    try {
      return program_->run(s.inputs, s.outputs);
    } catch (const std::exception& e) {
      return Error(Code::kUnsupported, std::string("libtorch failed at moving tensors: ") + e.what());
    }
  }

 private:
  std::unique_ptr<TorchProgram> program_;
  std::vector<int> inputs_, outputs_;
  std::vector<Slot> slots_;
  int threads_;
  SegmentOrigin origin_;
};

class TorchDevice final : public RuntimeDevice {
 public:
  TorchDevice(const Device& device, at::Device where) : device_(device), where_(where) {}

  Result<std::unique_ptr<CompiledSegment>> compile(const SegmentSpec& spec, int slots) override {
    const int64_t begin = now_ns();
    std::shared_ptr<const Model> model = spec.model;
    if (!model && spec.read_model) {
      HEDDLE_ASSIGN_OR_RETURN(model, spec.read_model());
    }
    if (!model) {
      return Error(Code::kInvalidInput, "device '" + device_.name +
                                            "' runs real models only; this plan's graph has none behind it "
                                            "(give the model, or a cluster with emulated devices)");
    }
    HEDDLE_ASSIGN_OR_RETURN(const SegmentModel cut, model->cut(spec.finest_ops));
    const Graph& graph = *model->graph();
    HEDDLE_ASSIGN_OR_RETURN(auto inputs, match(graph, cut.inputs, spec.inputs, true));
    HEDDLE_ASSIGN_OR_RETURN(auto outputs, match(graph, cut.outputs, spec.outputs, false));
    HEDDLE_ASSIGN_OR_RETURN(SegmentOps ops, torch_backend::read_segment(cut));
    // The constants of a cut lie in the model's memory.
    ops.memory = std::make_shared<std::pair<std::shared_ptr<const void>, std::shared_ptr<const Model>>>(
        std::move(ops.memory), model);
    const double load_us = static_cast<double>(now_ns() - begin) / 1000;
    try {
      HEDDLE_ASSIGN_OR_RETURN(auto program, TorchProgram::make(std::move(ops), where_));
      return std::unique_ptr<CompiledSegment>(
          std::make_unique<TorchSegment>(std::move(program), std::move(inputs), std::move(outputs), slots,
                                         threads(), SegmentOrigin{load_us, false}));
    } catch (const std::exception& e) {
      return Error(Code::kUnsupported, std::string("libtorch failed at compiling: ") + e.what());
    }
  }

  std::vector<int> worker_cores() const override { return device_.cores; }

 private:
  int threads() const {
    if (!device_.cores.empty()) return static_cast<int>(device_.cores.size());
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }

  Device device_;
  at::Device where_;
};

class TorchBackend final : public Backend {
 public:
  std::string name() const override { return "torch"; }
  std::string description() const override { return "libtorch's operators on the CPU, one by one"; }
  bool supports(const Device& device) const override { return device.backend == "torch"; }
  // Each op is cut out alone and its kernel made, as it will be in a segment.
  std::vector<std::optional<Error>> refusals(const Device&, const Model& model) const override {
    std::vector<std::optional<Error>> list(model.graph()->num_ops());
    for (size_t i = 0; i < list.size(); ++i) {
      const OpId op(i);
      Status status = check_op(model, op);
      if (!status.ok()) list[i] = std::move(status).error();
    }
    return list;
  }

  Result<std::unique_ptr<RuntimeDevice>> open(const Device& device) override {
    HEDDLE_ASSIGN_OR_RETURN(const at::Device where, device_of(device));
    return std::unique_ptr<RuntimeDevice>(std::make_unique<TorchDevice>(device, where));
  }

 private:
  static Status check_op(const Model& model, OpId op) {
    HEDDLE_ASSIGN_OR_RETURN(const SegmentModel cut, model.cut({&op, 1}));
    HEDDLE_ASSIGN_OR_RETURN(SegmentOps ops, torch_backend::read_segment(cut));
    try {
      HEDDLE_ASSIGN_OR_RETURN(const auto program, TorchProgram::make(std::move(ops), at::Device(at::kCPU)));
    } catch (const std::exception& e) {
      return Error(Code::kUnsupported, std::string("libtorch failed at compiling: ") + e.what());
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<Backend> make_torch_backend() { return std::make_unique<TorchBackend>(); }

}  // namespace heddle
