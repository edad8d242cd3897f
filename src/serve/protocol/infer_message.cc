#include "heddle/serve/infer_message.h"

namespace heddle {
namespace {

struct Name {
  DType dtype;
  const char* name;
};
constexpr Name kNames[] = {
    {DType::kBool, "BOOL"},  {DType::kU8, "UINT8"}, {DType::kU16, "UINT16"}, {DType::kU32, "UINT32"},
    {DType::kU64, "UINT64"}, {DType::kI8, "INT8"},  {DType::kI16, "INT16"},  {DType::kI32, "INT32"},
    {DType::kI64, "INT64"},  {DType::kF16, "FP16"}, {DType::kBF16, "BF16"},  {DType::kF32, "FP32"},
    {DType::kF64, "FP64"},
};

}  // namespace

const char* protocol_name(DType dtype) {
  for (const auto& n : kNames)
    if (n.dtype == dtype) return n.name;
  return nullptr;
}

std::optional<DType> dtype_from_protocol(std::string_view name) {
  for (const auto& n : kNames)
    if (n.name == name) return n.dtype;
  return std::nullopt;
}

}  // namespace heddle
