// What OpenVINO finds on this machine beside the CPU.
#pragma once

#include <string>
#include <vector>

namespace heddle {

// "GPU.0", "NPU": names that discover_local() takes. Empty where there are none, and where OpenVINO cannot
// tell. Loads OpenVINO's plugins on the first call (some 10 ms).
std::vector<std::string> openvino_other_devices();

}  // namespace heddle
