#include "openvino_session.h"

#include <algorithm>
#include <cstring>
#include <openvino/runtime/intel_cpu/properties.hpp>
#include <thread>

#include "heddle/cluster/discover.h"
#include "heddle/graph/region_faults.h"
#include "heddle/runtime/backend.h"

namespace heddle::openvino {

ov::Core& core() {
  static auto* const instance = new ov::Core();
  return *instance;
}

std::string device_name(const Device& device) {
  return device.backend_device.empty() ? "CPU" : device.backend_device;
}

namespace {

struct PrecisionPair {
  Precision ours;
  ov::element::Type_t theirs;
  const char* capability;  // ov::device::capability
};
// OpenVINO has no name for tf32.
constexpr PrecisionPair kPrecisions[] = {{Precision::kF32, ov::element::Type_t::f32, "FP32"},
                                         {Precision::kBf16, ov::element::Type_t::bf16, "BF16"},
                                         {Precision::kFp16, ov::element::Type_t::f16, "FP16"}};

ov::AnyMap numerics(ov::element::Type precision) {
  return {ov::hint::inference_precision(precision), ov::hint::dynamic_quantization_group_size(0)};
}

}  // namespace

ov::element::Type element_of(Precision precision) {
  for (const PrecisionPair& pair : kPrecisions) {
    if (pair.ours == precision) return pair.theirs;
  }
  return ov::element::dynamic;
}

std::vector<Precision> device_precisions(const std::string& device) {
  const auto has = core().get_property(device, ov::device::capabilities);
  // Without a wish, the plugin states the type that it takes by itself; undefined is the model's own.
  const auto usual = core().get_property(device, ov::hint::inference_precision);
  std::vector<Precision> list;
  for (const PrecisionPair& pair : kPrecisions) {
    // Every device computes float32, and not every plugin lists it.
    if (pair.ours != Precision::kF32 && std::find(has.begin(), has.end(), pair.capability) == has.end())
      continue;
    list.insert(usual == ov::element::Type(pair.theirs) ? list.begin() : list.end(), pair.ours);
  }
  return list;
}

ov::AnyMap latency_config(const Device& device, int callers) {
  if (device_name(device) != "CPU") {
    return {ov::hint::performance_mode(ov::hint::PerformanceMode::LATENCY),
            ov::hint::inference_precision(element_of(device.precision))};
  }
  ov::AnyMap config = numerics(element_of(device.precision));
  config.insert({ov::hint::performance_mode(ov::hint::PerformanceMode::LATENCY), ov::num_streams(callers),
                 ov::hint::enable_cpu_pinning(false), ov::hint::allow_auto_batching(false)});
  if (!device.cores.empty())
    config.insert(ov::inference_num_threads(static_cast<int32_t>(device.cores.size()) * callers));
  return config;
}

ov::AnyMap whole_cpu_config(ov::hint::PerformanceMode mode, std::optional<Precision> precision) {
  ov::AnyMap config;
  if (precision) config = numerics(element_of(*precision));
  config.insert(ov::hint::performance_mode(mode));
  return config;
}

namespace {

struct TypePair {
  DType ours;
  ov::element::Type_t theirs;
};
constexpr TypePair kTypes[] = {
    {DType::kBool, ov::element::Type_t::boolean}, {DType::kU1, ov::element::Type_t::u1},
    {DType::kI4, ov::element::Type_t::i4},        {DType::kU4, ov::element::Type_t::u4},
    {DType::kI8, ov::element::Type_t::i8},        {DType::kU8, ov::element::Type_t::u8},
    {DType::kI16, ov::element::Type_t::i16},      {DType::kU16, ov::element::Type_t::u16},
    {DType::kI32, ov::element::Type_t::i32},      {DType::kU32, ov::element::Type_t::u32},
    {DType::kI64, ov::element::Type_t::i64},      {DType::kU64, ov::element::Type_t::u64},
    {DType::kF16, ov::element::Type_t::f16},      {DType::kBF16, ov::element::Type_t::bf16},
    {DType::kF32, ov::element::Type_t::f32},      {DType::kF64, ov::element::Type_t::f64},
};

}  // namespace

std::optional<DType> dtype_of(const ov::element::Type& type) {
  for (const TypePair& pair : kTypes) {
    if (type == ov::element::Type(pair.theirs)) return pair.ours;
  }
  return std::nullopt;
}

ov::element::Type element_of(DType dtype) {
  for (const TypePair& pair : kTypes) {
    if (pair.ours == dtype) return pair.theirs;
  }
  return ov::element::dynamic;
}

Result<ov::Tensor> wrap(const TensorView& view) {
  const ov::element::Type type = element_of(view.dtype);
  if (type == ov::element::dynamic)
    return unsupported(std::string("tensors of ") + dtype_name(view.dtype) + " cannot be handed to OpenVINO");
  return ov::Tensor(type, ov::Shape(view.shape.begin(), view.shape.end()), view.data);
}

std::vector<std::string> other_devices() {
  try {
    auto devices = core().get_available_devices();
    std::erase_if(devices, [](const std::string& name) { return name.starts_with("CPU"); });
    return devices;
  } catch (...) {
    return {};  // a device whose driver fails counts as absent
  }
}

Status infer(ov::InferRequest& request) {
  const RegionFaults faults;
  request.infer();
  return faults.status();
}

Status copy_inputs(ov::InferRequest& request, std::span<const TensorValue> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    ov::Tensor target = request.get_input_tensor(i);
    if (target.get_byte_size() != static_cast<size_t>(values[i].bytes))
      return internal_error("an input's size differs from the model's");
    std::memcpy(target.data(), values[i].data.get(), target.get_byte_size());
  }
  return {};
}

Error current_error(const std::string& doing) {
  try {
    throw;
  } catch (const std::exception& e) {
    std::string what = e.what();
    std::replace(what.begin(), what.end(), '\n', ' ');
    return unsupported("OpenVINO failed at " + doing + ": " + what);
  } catch (...) {
    return unsupported("OpenVINO failed at " + doing + " without saying why");
  }
}

}  // namespace heddle::openvino

namespace heddle {

Result<std::shared_ptr<const Cluster>> discover_machine() {
  return discover_local(openvino::other_devices(), local_gpus());
}

}  // namespace heddle
