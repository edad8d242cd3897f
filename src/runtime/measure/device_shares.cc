#include "heddle/runtime/device_shares.h"

#include <algorithm>

#include "executor/seats.h"
#include "streams/accelerator_name.h"

namespace heddle {

int most_shares(const Device& device) {
  if (!device.cores.empty()) return static_cast<int>(device.cores.size());
  if (device.kind == DeviceKind::kCpu || device.backend != "torch") return 1;
  const auto name = parse_accelerator_name(device.backend_device);
  return name.ok() ? most_parts(*name) : 1;
}

Device device_part(const Device& device, int index, int of) {
  Device part = device;
  if (most_shares(device) < of) return part;
  if (device.cores.empty() && of > 1) {
    const auto name = parse_accelerator_name(device.backend_device);
    part.backend_device = accelerator_name(part_of(*name, index, of));
    part.memory_bytes /= of;
    return part;
  }
  std::sort(part.cores.begin(), part.cores.end());
  part.cores = part_of_cores(part.cores, index, of);
  return part;
}

}  // namespace heddle
