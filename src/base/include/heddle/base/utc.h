// Points in time as text: ISO 8601 in UTC.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace heddle {

std::string utc_now();     // "2026-01-02T03:04:05Z"
std::string utc_now_ms();  // "2026-01-02T03:04:05.678Z"
// Seconds since 1970; nullopt if `text` does not begin with such a time.
std::optional<int64_t> utc_seconds(const std::string& text);

}  // namespace heddle
