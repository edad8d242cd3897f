// A stable 64-bit hash (FNV-1a with a final mix) for signatures and fingerprints that are stored in files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace heddle {

class Hasher {
 public:
  Hasher& bytes(const void* data, size_t size) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < size; ++i) h_ = (h_ ^ p[i]) * 0x100000001b3ULL;
    return *this;
  }
  // Includes the length, so that ("ab","c") and ("a","bc") differ.
  Hasher& text(std::string_view s) { return number(s.size()).bytes(s.data(), s.size()); }
  Hasher& number(uint64_t v) {
    for (int i = 0; i < 8; ++i) h_ = (h_ ^ ((v >> (8 * i)) & 0xff)) * 0x100000001b3ULL;
    return *this;
  }
  uint64_t value() const {
    uint64_t z = h_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

 private:
  uint64_t h_ = 0xcbf29ce484222325ULL;
};

// 16 lower-case hexadecimal digits.
std::string hex64(uint64_t value);
std::optional<uint64_t> hex64_from_text(std::string_view text);
inline constexpr char kHex64Expected[] = "16 lower-case hexadecimal digits";

}  // namespace heddle
