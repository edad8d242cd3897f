// A stable 64-bit hash of large contents, at memory speed. Detects damage and mix-ups, not forgery.
#pragma once

#include <cstdint>
#include <string_view>

namespace heddle {

// Four 64-bit lanes over the bytes, mixed at the end with the length. Stored in files: it must not change.
// Little-endian machines only. O(size).
uint64_t content_hash(std::string_view bytes);

}  // namespace heddle
