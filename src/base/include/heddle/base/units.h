// Units used throughout. Time is in microseconds (double, suffix _us), sizes are in bytes (int64_t, suffix _bytes),
// bandwidth is in bytes per second, work in floating-point operations (double, suffix _flops).
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace heddle {

inline constexpr double kUsPerSecond = 1e6;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// For people: "12.3 us", "4.56 ms", "1.20 s". Four significant digits at most.
std::string format_us(double us);
// For people, binary multiples: "512 B", "1.5 KiB", "2.0 GiB".
std::string format_bytes(int64_t bytes);
// For people: "60.7 req/s", "2,064 req/s".
std::string format_requests(double per_s);
// For people, decimal multiples with a unit: format_si(3.2e9, "FLOP") is "3.20 GFLOP".
std::string format_si(double value, std::string_view unit);

// "16GiB", "512 MB", "1024" (bytes), "1.5GB": decimal and binary multiples. nullopt when malformed or out of
// range.
std::optional<int64_t> parse_bytes(std::string_view text);
// "12GB/s", "100Gbit/s", "25 Gbps", "1e9" (bytes/s) to bytes per second. nullopt when malformed.
std::optional<double> parse_bandwidth(std::string_view text);
// "5us", "1.5ms", "2s", "7" (us) to microseconds. nullopt when malformed.
std::optional<double> parse_time_us(std::string_view text);
// "10s", "500ms", "2min", "1.5" (s) to seconds. nullopt when malformed.
std::optional<double> parse_seconds(std::string_view text);
// "200/s", "12k/s", "600/min", "200" (per s) to events per second. nullopt when malformed.
std::optional<double> parse_rate(std::string_view text);
// "200", "10k", "2M". nullopt when malformed, not whole or out of range.
std::optional<int64_t> parse_count(std::string_view text);
// "15.7TFLOPS", "1e12" to flops per second. nullopt when malformed.
std::optional<double> parse_flops(std::string_view text);

}  // namespace heddle
