// The trace that a request belongs to, as W3C's header `traceparent` says it (https://www.w3.org/TR/trace-context/).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace heddle {

struct TraceContext {
  uint64_t trace_high = 0, trace_low = 0;  // not both 0
  uint64_t span = 0;                       // of the caller; 0: it has none
  bool sampled = false;
};

// nullopt: it is malformed, and a new trace begins. Versions above 00 may have further fields.
std::optional<TraceContext> parse_traceparent(std::string_view text);

// As trace formats write ids: digits in lower case.
std::string hex_text(uint64_t value);

}  // namespace heddle
