#include "heddle/serve/remote_devices.h"

namespace heddle {

uint64_t payload_digest(const std::byte* data, size_t bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ static_cast<uint64_t>(data[i])) * 0x100000001b3;
  return hash;
}

}  // namespace heddle
