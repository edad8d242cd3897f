// The registry of kernels, and helpers for all of them.
#include <algorithm>

#include "heddle/base/spelling.h"
#include "kernel.h"

namespace heddle::torch_backend {

const KernelEntry* find_kernel(const std::string& type, int opset) {
  using Family = std::span<const KernelEntry> (*)();
  static constexpr Family kFamilies[] = {elementwise_kernels, reduce_kernels,    shape_kernels,
                                         slice_kernels,       indexing_kernels,  window_kernels,
                                         layer_kernels,       recurrent_kernels, image_kernels,
                                         fourier_kernels,     control_kernels};
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

namespace {

// ATen's types for a dtype.
struct AtenTypes {
  DType dtype;
  at::ScalarType own, stored, carrier;
};
constexpr at::ScalarType kNone = at::ScalarType::Undefined;
constexpr AtenTypes kTypes[] = {
    {DType::kBool, at::kBool, at::kBool, at::kBool},
    {DType::kI4, kNone, kNone, at::kChar},
    {DType::kU4, kNone, kNone, at::kByte},
    {DType::kI8, at::kChar, at::kChar, at::kChar},
    {DType::kU8, at::kByte, at::kByte, at::kByte},
    {DType::kI16, at::kShort, at::kShort, at::kShort},
    {DType::kU16, kNone, at::kShort, at::kInt},
    {DType::kI32, at::kInt, at::kInt, at::kInt},
    {DType::kU32, kNone, at::kInt, at::kLong},
    {DType::kI64, at::kLong, at::kLong, at::kLong},
    {DType::kU64, kNone, at::kLong, at::kLong},
    {DType::kF4, kNone, kNone, at::kFloat},
    {DType::kF8, kNone, kNone, at::kFloat},
    {DType::kF16, at::kHalf, at::kHalf, at::kFloat},
    {DType::kBF16, at::kBFloat16, at::kBFloat16, at::kFloat},
    {DType::kF32, at::kFloat, at::kFloat, at::kFloat},
    {DType::kF64, at::kDouble, at::kDouble, at::kDouble},
};

AtenTypes types_of(DType dtype) {
  for (const AtenTypes& types : kTypes) {
    if (types.dtype == dtype) return types;
  }
  return {dtype, kNone, kNone, kNone};
}

}  // namespace

at::ScalarType scalar_type(DType dtype) { return types_of(dtype).own; }
at::ScalarType stored_type(DType dtype) { return types_of(dtype).stored; }
at::ScalarType carrier(DType dtype) { return types_of(dtype).carrier; }

Error OpSite::refuse(const std::string& why) const {
  return {Code::kUnsupported, "op '" + node.name + "' (" + node.type + ") cannot run on libtorch: " + why};
}

bool OpSite::floating(size_t i) const { return at::isFloatingType(carrier(node.inputs[i].dtype)); }

Status OpSite::expect_floating(int64_t least_rank, size_t i) const {
  if (floating(i) && rank(i) >= least_rank) return {};
  return refuse("its input " + std::to_string(i) + " is " + dtype_name(node.inputs[i].dtype) + " " +
                shape_text(in(i)) + "; expected floating-point numbers of rank " +
                std::to_string(least_rank) + " or more");
}

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

Result<int64_t> OpSite::axis_of(int64_t given, int64_t rank) const {
  const int64_t axis = normal_axis(given, rank);
  if (axis >= 0) return axis;
  return refuse("axis " + std::to_string(given) + " is outside its tensor of rank " + std::to_string(rank));
}

Result<int64_t> OpSite::axis(size_t i, int64_t rank) const {
  HEDDLE_ASSIGN_OR_RETURN(const auto list, integers(i));
  if (list.size() == 1) return axis_of(list[0], rank);
  return refuse("it has " + std::to_string(list.size()) + " axes; expected one");
}

Result<std::vector<int64_t>> OpSite::axes(size_t i, int64_t rank) const {
  HEDDLE_ASSIGN_OR_RETURN(auto list, integers(i));
  for (int64_t& axis : list) {
    HEDDLE_ASSIGN_OR_RETURN(axis, axis_of(axis, rank));
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

Result<int64_t> OpSite::axis_attribute(const std::string& name, int64_t otherwise, int64_t rank) const {
  return axis_of(node.attribute<int64_t>(name, otherwise), rank);
}

Result<std::string> OpSite::choice(const std::string& name, const std::string& otherwise,
                                   std::initializer_list<std::string_view> supported) const {
  auto value = node.attribute<std::string>(name, otherwise);
  if (std::find(supported.begin(), supported.end(), value) != supported.end()) return value;
  return refuse("its attribute " + name + " is '" + value + "'; expected " +
                join_names(std::vector<std::string>(supported.begin(), supported.end())));
}

}  // namespace heddle::torch_backend
