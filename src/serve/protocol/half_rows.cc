#include "half_rows.h"

#include <cstring>
#include <openvino/core/type/float16.hpp>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace heddle {
namespace {

// Eight at a time where the processor can: maps have millions of elements. Returns how many it has done.
#if defined(__x86_64__)
bool has_f16c() {
  // Not every compiler's __builtin_cpu_supports() knows f16c; that of avx knows that the system keeps its
  // registers.
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  }();
  return has;
}

__attribute__((target("avx,f16c"))) size_t narrow_eights(const std::byte* from, size_t count, std::byte* to) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256 values = _mm256_loadu_ps(reinterpret_cast<const float*>(from) + i);
    _mm_storeu_si128(reinterpret_cast<__m128i_u*>(to + i * sizeof(uint16_t)),
                     _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
  }
  return i;
}

__attribute__((target("avx,f16c"))) size_t widen_eights(const std::byte* from, size_t count, std::byte* to) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i_u*>(from + i * sizeof(uint16_t)));
    _mm256_storeu_ps(reinterpret_cast<float*>(to) + i, _mm256_cvtph_ps(bits));
  }
  return i;
}
#else
bool has_f16c() { return false; }
size_t narrow_eights(const std::byte*, size_t, std::byte*) { return 0; }
size_t widen_eights(const std::byte*, size_t, std::byte*) { return 0; }
#endif

}  // namespace

// Rows stand anywhere in a buffer: nothing is aligned.
void floats_to_halves(const std::byte* from, size_t count, std::byte* to) {
  for (size_t i = has_f16c() ? narrow_eights(from, count, to) : 0; i < count; ++i) {
    float value;
    std::memcpy(&value, from + i * sizeof value, sizeof value);
    const uint16_t bits = ov::float16(value).to_bits();
    std::memcpy(to + i * sizeof bits, &bits, sizeof bits);
  }
}

void halves_to_floats(const std::byte* from, size_t count, std::byte* to) {
  for (size_t i = has_f16c() ? widen_eights(from, count, to) : 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, from + i * sizeof bits, sizeof bits);
    const float value = ov::float16::from_bits(bits);
    std::memcpy(to + i * sizeof value, &value, sizeof value);
  }
}

}  // namespace heddle
