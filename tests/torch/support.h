// Whole models on a device of the backend torch, and tensors of the corpus.
#pragma once

#include <memory>
#include <openvino/runtime/tensor.hpp>
#include <optional>
#include <string>
#include <vector>

#include "heddle/graph/model.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/tensor.h"

namespace heddle {

// A CPU device of the backend torch on two cores' worth of threads, bound to none.
Device torch_cpu();
// All ops as one segment of one slot.
Result<std::unique_ptr<CompiledSegment>> compile_whole(RuntimeDevice& device,
                                                       const std::shared_ptr<const Model>& model);
// Outputs in the order of the graph's; inputs too.
Result<std::vector<TensorValue>> run_whole(CompiledSegment& segment, const Model& model,
                                           const std::vector<TensorValue>& inputs);
// The type that a tensor of OpenVINO's has with us; nothing where there is none.
std::optional<DType> dtype_of(const ov::element::Type& type);
// A TensorProto file; nothing when there is none or its type is not held.
std::optional<TensorValue> read_value(const std::string& path);
// Over the same memory; nothing when the type is not the value's.
std::optional<ov::Tensor> as_openvino(const TensorValue& value, const ov::element::Type& type);

}  // namespace heddle
