#include "names.h"

#include "heddle/base/spelling.h"

namespace heddle {
namespace {

// In the enums' order.
constexpr const char* kKindNames[] = {"cpu", "gpu", "npu", "fpga"};
constexpr const char* kPrecisionNames[] = {"f32", "tf32", "bf16", "fp16"};
constexpr const char* kDuplexNames[] = {"full", "half", "one-way"};

}  // namespace

bool is_engine(std::string_view name) {
  return name == "openvino" || name == "onnxruntime" || name == "torch" || name == "emulated";
}

const char* device_kind_name(DeviceKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

std::optional<DeviceKind> device_kind_from_name(std::string_view name) {
  return enum_named<DeviceKind>(kKindNames, name);
}

const char* precision_name(Precision precision) { return kPrecisionNames[static_cast<size_t>(precision)]; }

std::optional<Precision> precision_from_name(std::string_view name) {
  return enum_named<Precision>(kPrecisionNames, name);
}

const char* duplex_name(Duplex duplex) { return kDuplexNames[static_cast<size_t>(duplex)]; }

std::optional<Duplex> duplex_from_name(std::string_view name) {
  return enum_named<Duplex>(kDuplexNames, name);
}

std::string core_ranges(const std::vector<int>& cores, char separator) {
  std::string text;
  for (size_t i = 0; i < cores.size();) {
    size_t j = i;
    while (j + 1 < cores.size() && cores[j + 1] == cores[j] + 1) ++j;
    if (i > 0) text += separator;
    text += std::to_string(cores[i]);
    if (j > i) text += '-' + std::to_string(cores[j]);
    i = j + 1;
  }
  return text;
}

}  // namespace heddle
