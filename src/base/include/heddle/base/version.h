// The program's version, stored in files that it writes.
#pragma once

namespace heddle {
inline constexpr char kVersion[] = "0.1.0";
}  // namespace heddle
