// What the OpenVINO adapter shares with those that measure and compare: the core, configurations, tensors.
// Everything here catches what OpenVINO throws.
#pragma once

#include <openvino/openvino.hpp>
#include <span>
#include <string>
#include <vector>

#include "heddle/base/status.h"
#include "heddle/cluster/cluster.h"
#include "heddle/runtime/tensor.h"

namespace heddle::openvino {

// One per process: plugins load once. Never destroyed, for compiled models may outlive statics.
ov::Core& core();

// Latency, f32 throughout and no dynamic quantization: a cut model computes what the whole one does. On a CPU
// device with as many threads as it has cores; binding them is ours (see openvino_backend.cc).
ov::AnyMap latency_config(const Device& device);
// The same numerics for a whole CPU, under one of OpenVINO's own hints.
ov::AnyMap whole_cpu_config(ov::hint::PerformanceMode mode);
std::string device_name(const Device& device);  // OpenVINO's

std::optional<DType> dtype_of(const ov::element::Type& type);
Result<ov::Tensor> wrap(const TensorView& view);

// Turns what is being thrown into an Error; call inside a catch block.
Error current_error(const std::string& doing);

}  // namespace heddle::openvino
