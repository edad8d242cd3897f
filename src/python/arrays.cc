// NumPy arrays, and anything else that speaks DLPack, as tensors.
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>

#include "errors.h"
#include "heddle/base/spelling.h"
#include "objects.h"

namespace heddle::python {
namespace {

namespace nb = nanobind;

using dlpack_code = nb::dlpack::dtype_code;
using InputArray = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

struct KnownType {
  DType dtype;
  dlpack_code code;
};
constexpr KnownType kTypes[] = {
    {DType::kBool, dlpack_code::Bool},  {DType::kI8, dlpack_code::Int},    {DType::kI16, dlpack_code::Int},
    {DType::kI32, dlpack_code::Int},    {DType::kI64, dlpack_code::Int},   {DType::kU8, dlpack_code::UInt},
    {DType::kU16, dlpack_code::UInt},   {DType::kU32, dlpack_code::UInt},  {DType::kU64, dlpack_code::UInt},
    {DType::kF16, dlpack_code::Float},  {DType::kF32, dlpack_code::Float}, {DType::kF64, dlpack_code::Float},
    {DType::kBF16, dlpack_code::Bfloat}};

DType dtype_of(const nb::dlpack::dtype& type) {
  if (type.lanes != 1) return DType::kUndefined;
  for (const auto& [dtype, code] : kTypes)
    if (static_cast<uint8_t>(code) == type.code && dtype_bits(dtype) == type.bits) return dtype;
  return DType::kUndefined;
}

std::vector<std::string> input_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const TensorId id : graph.inputs()) names.push_back(graph.tensor(id).name);
  return names;
}

TensorView to_view(const std::string& name, const nb::handle& object, nb::list& keep) {
  InputArray array;
  if (!nb::try_cast(object, array))
    raise(invalid_input("input " + quote_text(name) +
                        ": expected a NumPy array or another array with DLPack in the host's memory"));
  TensorView view;
  view.dtype = dtype_of(array.dtype());
  for (size_t i = 0; i < array.ndim(); ++i) view.shape.push_back(static_cast<int64_t>(array.shape(i)));
  // Only read.
  view.data = static_cast<std::byte*>(const_cast<void*>(array.data()));
  view.bytes = static_cast<int64_t>(array.nbytes());
  keep.append(nb::cast(array));
  return view;
}

}  // namespace

std::vector<TensorView> to_views(const Graph& graph, const nb::object& inputs, nb::list& keep) {
  const auto names = input_names(graph);
  if (!nb::isinstance<nb::dict>(inputs)) {
    if (names.size() != 1)
      raise(invalid_input("the model has the inputs " + join_names(names) + "; give a dictionary with each"));
    return {to_view(names[0], inputs, keep)};
  }
  const auto given = nb::borrow<nb::dict>(inputs);
  for (const auto& [key, value] : given) {
    const auto name = utf8_of(key);
    if (std::find(names.begin(), names.end(), name) == names.end())
      raise(invalid_input("the model has no input " + quote_text(name) + did_you_mean(name, names) +
                          "; it has " + join_names(names)));
  }
  std::vector<TensorView> views;
  for (const auto& name : names) {
    if (!given.contains(name.c_str())) raise(invalid_input("input " + quote_text(name) + " is missing"));
    views.push_back(to_view(name, given[name.c_str()], keep));
  }
  return views;
}

nb::object to_array(const TensorValue& value) {
  const auto type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                 [&](const KnownType& known) { return known.dtype == value.dtype; });
  if (type == std::end(kTypes))
    raise(
        unsupported(std::string("an output of type ") + dtype_name(value.dtype) + " cannot become an array"));
  auto* const data = new std::shared_ptr<std::byte[]>(value.data);
  const nb::capsule owner(data,
                          [](void* p) noexcept { delete static_cast<std::shared_ptr<std::byte[]>*>(p); });
  std::vector<size_t> shape(value.shape.begin(), value.shape.end());
  const nb::dlpack::dtype dtype{static_cast<uint8_t>(type->code),
                                static_cast<uint8_t>(dtype_bits(value.dtype)), 1};
  // NumPy has no bfloat16; such outputs stay DLPack's.
  if (value.dtype == DType::kBF16)
    return nb::cast(nb::ndarray<>(data->get(), shape.size(), shape.data(), owner, nullptr, dtype));
  return nb::cast(nb::ndarray<nb::numpy>(data->get(), shape.size(), shape.data(), owner, nullptr, dtype));
}

nb::object data_frame(const nb::list& rows) { return nb::module_::import_("pandas").attr("DataFrame")(rows); }

}  // namespace heddle::python
