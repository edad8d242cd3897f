// Shared parts of the OpenVINO adapter: the core, configurations, tensors. Every function here catches what
// OpenVINO throws.
#pragma once

#include <openvino/openvino.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/runtime/tensor.h"

namespace heddle::openvino {

// One per process, so plugins load once. Never destroyed, since compiled models may outlive static objects.
ov::Core& core();

// The types that the device's plugin lists as its capabilities; first the one that it takes by itself. Throws
// what OpenVINO throws.
std::vector<Precision> device_precisions(const std::string& device);
ov::element::Type element_of(Precision precision);

// Latency hint, the device's precision throughout, no dynamic quantization: in f32 a cut model computes the
// same as the whole one. A CPU device gets as many threads as it has cores, once for each of `callers` (a stream each);
// the executor binds them (see openvino_backend.cc).
ov::AnyMap latency_config(const Device& device, int callers);
// For a whole CPU, with one of OpenVINO's own hints. With a precision: the numerics of latency_config(); else
// OpenVINO's own, e.g. bf16 on processors that compute in it.
ov::AnyMap whole_cpu_config(ov::hint::PerformanceMode mode, std::optional<Precision> precision);
std::string device_name(const Device& device);  // OpenVINO's name of the device

// Runs it. Throws, or gives the error of a region (RegionFaults).
Status infer(ov::InferRequest& request);

std::optional<DType> dtype_of(const ov::element::Type& type);
ov::element::Type element_of(DType dtype);  // dynamic if OpenVINO has no such type
Result<ov::Tensor> wrap(const TensorView& view);
// Copies the values into the request's own input tensors.
Status copy_inputs(ov::InferRequest& request, std::span<const TensorValue> values);

// OpenVINO's devices on this machine other than the CPU: "GPU.0", "NPU". Empty if there are none or OpenVINO
// cannot tell. The first call loads OpenVINO's plugins (some 10 ms).
std::vector<std::string> other_devices();

// Converts the exception in flight to an Error; call it inside a catch block.
Error current_error(const std::string& doing);

}  // namespace heddle::openvino
