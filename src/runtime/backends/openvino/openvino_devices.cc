#include "heddle/runtime/openvino_devices.h"

#include "openvino_session.h"

namespace heddle {

std::vector<std::string> openvino_other_devices() {
  try {
    auto devices = openvino::core().get_available_devices();
    std::erase_if(devices, [](const std::string& name) { return name.starts_with("CPU"); });
    return devices;
  } catch (...) {
    return {};  // a device whose driver fails counts as absent
  }
}

}  // namespace heddle
