// Runs segments on OpenVINO's devices.
//
// Cores. With a stream for each calling thread and pinning off, a synchronous inference runs on that thread, plus TBB
// workers if the device has more than one thread. The executor binds the calling thread to the device's cores
// (worker_cores()), so a device with one core uses only that core and creates no other thread. TBB workers
// inherit the affinity of the thread that first needed them. Compilation happens on an unbound thread, so
// they may use all of the process's cores. The scheduler puts them on the idle ones, which are the cores that
// the plan gave to this device.
#include <algorithm>
#include <memory>
#include <openvino/core/model.hpp>
#include <openvino/core/preprocess/pre_post_process.hpp>
#include <openvino/core/version.hpp>
#include <sstream>

#include "backends/segment_cut.h"
#include "heddle/base/hash.h"
#include "heddle/runtime/segment_cache.h"
#include "openvino_session.h"
#include "threads/mailbox.h"

namespace heddle {
namespace {

using openvino::current_error;

// SegmentCut's inputs or outputs, by the port names that the compiled model has kept from the cut.
Result<std::vector<int>> match_names(const std::vector<ov::Output<const ov::Node>>& ports,
                                     std::span<const SegmentTensor> wanted) {
  std::vector<int> match(ports.size(), -1);
  size_t found = 0;
  for (size_t p = 0; p < ports.size(); ++p) {
    const auto& names = ports[p].get_names();
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (match[p] >= 0 || !names.contains(wanted[i].name)) continue;
      match[p] = static_cast<int>(i);
      ++found;
    }
  }
  if (found < wanted.size())
    return internal_error("a cached segment does not have the tensors that the plan expects of it");
  return match;
}

// Cache key of a compiled segment: model content, ops, ports, device and compiler.
uint64_t cache_key(const SegmentSpec& spec, const Device& device) {
  Hasher hasher;
  hasher.text(ov::get_openvino_version().buildNumber).text(openvino::device_name(device));
  hasher.text(openvino::core().get_property(openvino::device_name(device), ov::device::full_name));
  // Keys of f32 stay as they were before there were other types.
  if (device.precision != Precision::kF32) hasher.text(precision_name(device.precision));
  hasher.number(device.cores.size()).number(spec.model_key).number(spec.finest_ops.size());
  for (const OpId op : spec.finest_ops) hasher.number(static_cast<uint64_t>(op.value));
  for (const auto* list : {&spec.inputs, &spec.outputs}) {
    hasher.number(list->size());
    for (const SegmentTensor& tensor : *list) {
      hasher.text(tensor.name);
      if (tensor.dtype == DType::kBF16 || tensor.dtype == DType::kF16) hasher.text(dtype_name(tensor.dtype));
    }
  }
  return hasher.value();
}

// Parts that ONNX Runtime computes, which OpenVINO cannot write to a file.
bool has_regions(const ov::Model& model) {
  const auto ops = model.get_ops();
  return std::ranges::any_of(
      ops, [](const auto& op) { return op->get_type_name() == std::string_view("OnnxRegion"); });
}

// Lets the cut model take and return float32 tensors in the types that the spec has for them. Throws what OpenVINO
// throws.
void set_border_types(SegmentCut& cut, const SegmentSpec& spec) {
  ov::Model& model = *cut.part.model;
  ov::preprocess::PrePostProcessor casts(cut.part.model);
  bool any = false;
  const auto cast = [&](const ov::Output<ov::Node>& port, DType wanted, auto& tensor) {
    if (port.get_element_type() != ov::element::f32 || wanted == DType::kF32) return;
    tensor.set_element_type(openvino::element_of(wanted));
    any = true;
  };
  for (size_t i = 0; i < cut.inputs.size(); ++i)
    cast(model.input(i), spec.inputs[static_cast<size_t>(cut.inputs[i])].dtype, casts.input(i).tensor());
  for (size_t i = 0; i < cut.outputs.size(); ++i) {
    if (cut.outputs[i] >= 0)
      cast(model.output(i), spec.outputs[static_cast<size_t>(cut.outputs[i])].dtype,
           casts.output(i).tensor());
  }
  if (any) cut.part.model = casts.build();
}

// The CPU keeps feature maps in its type anyway: a float32 tensor at a border costs two casts and twice the bytes.
DType border_type_of(const Device& device) {
  if (openvino::device_name(device) != "CPU") return DType::kF32;
  return openvino::dtype_of(openvino::element_of(device.precision)).value_or(DType::kF32);
}

struct CachePlace {
  SegmentCache* cache = nullptr;
  uint64_t key = 0;
};

class OpenVinoSegment final : public CompiledSegment {
 public:
  OpenVinoSegment(ov::CompiledModel compiled, std::vector<int> inputs, std::vector<int> outputs,
                  SegmentOrigin origin, CachePlace place, std::shared_ptr<const void> memory)
      : memory_(std::move(memory)),
        compiled_(std::move(compiled)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        origin_(origin),
        place_(place) {}

  SegmentOrigin origin() const override { return origin_; }

  Status store() override {
    if (place_.cache == nullptr || origin_.cached) return {};
    try {
      std::ostringstream blob;
      compiled_.export_model(blob);
      return place_.cache->store(place_.key, blob.view());
    } catch (...) {
      return current_error("exporting");
    }
  }

  void add_request() { requests_.push_back(compiled_.create_infer_request()); }

  // Producer and consumer are bound to the same memory, so a tensor is passed on without a copy.
  Status bind(int slot, std::span<const TensorView> inputs, std::span<const TensorView> outputs) override {
    try {
      ov::InferRequest& request = requests_[static_cast<size_t>(slot)];
      for (size_t i = 0; i < inputs_.size(); ++i) {
        HEDDLE_ASSIGN_OR_RETURN(const ov::Tensor tensor,
                                openvino::wrap(inputs[static_cast<size_t>(inputs_[i])]));
        request.set_input_tensor(i, tensor);
      }
      for (size_t i = 0; i < outputs_.size(); ++i) {
        if (outputs_[i] < 0) continue;
        HEDDLE_ASSIGN_OR_RETURN(const ov::Tensor tensor,
                                openvino::wrap(outputs[static_cast<size_t>(outputs_[i])]));
        request.set_output_tensor(i, tensor);
      }
      return {};
    } catch (...) {
      return current_error("binding tensors");
    }
  }

  Status run(int slot) override {
    try {
      return openvino::infer(requests_[static_cast<size_t>(slot)]);
    } catch (...) {
      return current_error("running");
    }
  }

 private:
  // Memory that the compiled model may use without a copy: the model's mapped weights or the cached file.
  // Destroyed last.
  std::shared_ptr<const void> memory_;
  ov::CompiledModel compiled_;
  std::vector<int> inputs_, outputs_;
  std::vector<ov::InferRequest> requests_;
  SegmentOrigin origin_;
  CachePlace place_;
};

class OpenVinoDevice final : public RuntimeDevice {
 public:
  explicit OpenVinoDevice(const Device& device) : device_(device) {}

  Result<std::unique_ptr<CompiledSegment>> compile(const SegmentSpec& spec, int slots) override {
    const int64_t begin = now_ns();
    CachePlace place{spec.cache, 0};
    if (spec.cache != nullptr) {
      try {
        place.key = cache_key(spec, device_);
      } catch (...) {
        return current_error("naming the device");
      }
      if (auto cached = from_cache(spec, slots, place, begin)) return cached;
    }
    HEDDLE_ASSIGN_OR_RETURN(SegmentCut cut, cut_segment(spec, device_.name));
    if (has_regions(*cut.part.model)) place.cache = nullptr;
    const double load_us = static_cast<double>(now_ns() - begin) / 1000;
    try {
      set_border_types(cut, spec);
      ov::CompiledModel compiled = openvino::core().compile_model(
          cut.part.model, openvino::device_name(device_), openvino::latency_config(device_, spec.callers));
      HEDDLE_RETURN_IF_ERROR(check_type(compiled, spec.name));
      return finished(std::make_unique<OpenVinoSegment>(std::move(compiled), std::move(cut.inputs),
                                                        std::move(cut.outputs), SegmentOrigin{load_us, false},
                                                        place, cut.model),
                      slots);
    } catch (...) {
      return current_error("compiling for " + openvino::device_name(device_));
    }
  }

  // The streams of one compiled model read the same weights. Other devices' drivers choose for themselves.
  bool shares_segments() const override { return openvino::device_name(device_) == "CPU"; }
  std::vector<int> worker_cores() const override { return device_.cores; }
  DType border_type() const override { return border_type_of(device_); }

 private:
  static std::unique_ptr<CompiledSegment> finished(std::unique_ptr<OpenVinoSegment> segment, int slots) {
    for (int i = 0; i < slots; ++i) segment->add_request();
    return segment;
  }

  // A plugin may ignore the hint, and the device's measured times would be those of another type.
  Status check_type(const ov::CompiledModel& compiled, const std::string& segment) const {
    if (device_.precision == Precision::kF32) return {};
    const auto type = compiled.get_property(ov::hint::inference_precision);
    if (type == openvino::element_of(device_.precision)) return {};
    return unsupported("OpenVINO compiled segment '" + segment + "' for " + openvino::device_name(device_) +
                       " in " + type.get_type_name() + ", not in " + precision_name(device_.precision) +
                       "; plan again in the precision f32");
  }

  // Null if the cache has no entry or OpenVINO rejects it; then the segment is compiled.
  std::unique_ptr<CompiledSegment> from_cache(const SegmentSpec& spec, int slots, CachePlace place,
                                              int64_t begin) const {
    auto entry = place.cache->find(place.key);
    if (!entry) return nullptr;
    const std::string_view bytes = entry->contents();
    const double load_us = static_cast<double>(now_ns() - begin) / 1000;
    try {
      // The mapping is read-only, and OpenVINO only reads it.
      const ov::Tensor blob(ov::element::u8, {bytes.size()}, const_cast<char*>(bytes.data()));
      ov::CompiledModel compiled = openvino::core().import_model(
          blob, openvino::device_name(device_), openvino::latency_config(device_, spec.callers));
      auto inputs = match_names(compiled.inputs(), spec.inputs);
      auto outputs = match_names(compiled.outputs(), spec.outputs);
      if (!inputs.ok() || !outputs.ok()) return nullptr;
      return finished(
          std::make_unique<OpenVinoSegment>(std::move(compiled), std::move(*inputs), std::move(*outputs),
                                            SegmentOrigin{load_us, true}, place, std::move(entry)),
          slots);
    } catch (...) {
      return nullptr;
    }
  }

  Device device_;
};

class OpenVinoBackend final : public Backend {
 public:
  std::string name() const override { return "openvino"; }
  std::string description() const override {
    return "OpenVINO's CPU (bound to core sets), GPU and NPU devices";
  }
  std::string release() const override { return ov::get_openvino_version().buildNumber; }

  Result<std::vector<Precision>> precisions(const Device& device) const override {
    try {
      return openvino::device_precisions(openvino::device_name(device));
    } catch (...) {
      return current_error("asking for the types of " + openvino::device_name(device));
    }
  }

  DType border_type(const Device& device) const override { return border_type_of(device); }

  Result<std::unique_ptr<RuntimeDevice>> open(const Device& device) override {
    const std::string wanted = openvino::device_name(device);
    try {
      if (is_present(wanted)) return std::unique_ptr<RuntimeDevice>(std::make_unique<OpenVinoDevice>(device));
      std::string present;
      for (const std::string& name : openvino::core().get_available_devices())
        present += (present.empty() ? "" : ", ") + name;
      return unsupported("device '" + device.name + "' needs OpenVINO's " + wanted +
                         ", which this machine does not have; it has " + present);
    } catch (...) {
      return current_error("listing devices");
    }
  }

 private:
  // Asks only the plugin of this device kind: loading every plugin takes about a second, a large part of a
  // cold start.
  static bool is_present(const std::string& wanted) {
    const size_t dot = wanted.find('.');
    const std::string kind = wanted.substr(0, dot);
    const std::string id = dot == std::string::npos ? "" : wanted.substr(dot + 1);
    try {
      for (const std::string& found : openvino::core().get_property(kind, ov::available_devices)) {
        if (found == id || (id.empty() && found == "0") || (id == "0" && found.empty())) return true;
      }
      return false;
    } catch (...) {
      return false;  // no such plugin, or it finds no driver
    }
  }
};

}  // namespace

std::unique_ptr<Backend> make_openvino_backend() { return std::make_unique<OpenVinoBackend>(); }

}  // namespace heddle
