// OpenVINO's devices on this machine other than the CPU.
#pragma once

#include <string>
#include <vector>

namespace heddle {

// "GPU.0", "NPU": names that discover_local() accepts. Empty if there are none or OpenVINO cannot tell. The
// first call loads OpenVINO's plugins (some 10 ms).
std::vector<std::string> openvino_other_devices();

}  // namespace heddle
