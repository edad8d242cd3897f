// Names of enum values in files, and of sets of cores.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/cluster/cluster.h"

namespace heddle {

// True for the engines that Heddle knows, whether or not this program has them.
bool is_engine(std::string_view name);
inline constexpr const char* kEnginesText = "'openvino', 'onnxruntime', 'torch' or 'emulated'";
std::optional<DeviceKind> device_kind_from_name(std::string_view name);
const char* duplex_name(Duplex duplex);  // "full", "half", "one-way"
std::optional<Duplex> duplex_from_name(std::string_view name);
// "0-3" and "8" for {0, 1, 2, 3, 8}, joined by `separator`; ascending cores.
std::string core_ranges(const std::vector<int>& cores, char separator);

}  // namespace heddle
