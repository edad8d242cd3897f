// The registry of kernels, and helpers for all of them.
#include <algorithm>

#include "kernel.h"

namespace heddle::torch_backend {

const KernelEntry* find_kernel(const std::string& type, int opset) {
  using Family = std::span<const KernelEntry> (*)();
  static constexpr Family kFamilies[] = {
      unary_kernels,  binary_kernels,        reduce_kernels,      shape_kernels,
      slice_kernels,  indexing_kernels,      convolution_kernels, pooling_kernels,
      matrix_kernels, normalisation_kernels, quantise_kernels,    recurrent_kernels,
      image_kernels,  fourier_kernels,       region_kernels,      control_kernels};
  for (const Family family : kFamilies) {
    for (const KernelEntry& entry : family()) {
      if (type == entry.type && entry.first_opset <= opset && opset <= entry.last_opset) return &entry;
    }
  }
  return nullptr;
}

int64_t normal_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) return -1;
  return axis < 0 ? axis + rank : axis;
}

at::ScalarType scalar_type(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return at::kBool;
    case DType::kI8:
      return at::kChar;
    case DType::kU8:
      return at::kByte;
    case DType::kI16:
      return at::kShort;
    case DType::kI32:
      return at::kInt;
    case DType::kI64:
      return at::kLong;
    case DType::kF16:
      return at::kHalf;
    case DType::kBF16:
      return at::kBFloat16;
    case DType::kF32:
      return at::kFloat;
    case DType::kF64:
      return at::kDouble;
    default:
      return at::ScalarType::Undefined;
  }
}

at::ScalarType carrier(DType dtype) {
  switch (dtype) {
    case DType::kF4:
    case DType::kF8:
    case DType::kF16:
    case DType::kBF16:
      return at::kFloat;
    case DType::kI4:
      return at::kChar;
    case DType::kU4:
      return at::kByte;
    case DType::kU16:
      return at::kInt;
    case DType::kU32:
    case DType::kU64:
      return at::kLong;
    default:
      return scalar_type(dtype);
  }
}

Error OpSite::refuse(const std::string& why) const {
  return {Code::kUnsupported, "op '" + node.name + "' (" + node.type + ") cannot run on libtorch: " + why};
}

bool OpSite::floating(size_t i) const { return at::isFloatingType(carrier(node.inputs[i].dtype)); }

Result<std::vector<int64_t>> OpSite::integers(size_t i) const {
  if (i >= constants.size() || !constants[i].defined())
    return refuse("its input " + std::to_string(i) + " is computed; expected a constant");
  const at::Tensor flat = constants[i].to(at::kCPU, at::kLong).contiguous().reshape({-1});
  const auto* data = flat.data_ptr<int64_t>();
  return std::vector<int64_t>(data, data + flat.numel());
}

Result<double> OpSite::number(size_t i) const {
  if (i >= constants.size() || !constants[i].defined() || constants[i].numel() != 1)
    return refuse("its input " + std::to_string(i) + " is not one constant number");
  return constants[i].to(at::kCPU, at::kDouble).item<double>();
}

Result<int64_t> OpSite::axis(size_t i, int64_t rank) const {
  HEDDLE_ASSIGN_OR_RETURN(const auto list, integers(i));
  if (list.size() != 1) return refuse("expected one axis, not " + std::to_string(list.size()));
  const int64_t axis = normal_axis(list[0], rank);
  if (axis < 0) return refuse("axis " + std::to_string(list[0]) + " is none of its tensor");
  return axis;
}

Result<std::vector<int64_t>> OpSite::axes(size_t i, int64_t rank) const {
  HEDDLE_ASSIGN_OR_RETURN(auto list, integers(i));
  for (int64_t& axis : list) {
    const int64_t normal = normal_axis(axis, rank);
    if (normal < 0) return refuse("axis " + std::to_string(axis) + " is none of its tensor");
    axis = normal;
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

Result<int64_t> OpSite::axis_attribute(const std::string& name, int64_t otherwise, int64_t rank) const {
  const int64_t given = node.attribute<int64_t>(name, otherwise);
  const int64_t axis = normal_axis(given, rank);
  if (axis < 0) return refuse("axis " + std::to_string(given) + " is none of its tensor");
  return axis;
}

}  // namespace heddle::torch_backend
